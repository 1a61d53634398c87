"""How are figures shown, and kept?"""

from collections.abc import Mapping, Sequence
from math import isnan
from pathlib import Path
from statistics import median, quantiles

import orjson

Row = Mapping[str, str | float]


def percentile(values: Sequence[float], percent: int) -> float:
    """Return the value that so many percent of them are at or below, between two of them where need be."""
    return quantiles(values, n=100, method="inclusive")[percent - 1] if len(values) > 1 else values[0]


def medians(rows: Sequence[Row], named_by: Sequence[str], ranged: str) -> list[Row]:
    """Return a row for each thing that was measured in several rounds: its medians, and the range of one figure."""
    groups: dict[tuple[str | float, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row[name] for name in named_by), []).append(row)
    return [_median(group, named_by, ranged) for group in groups.values()]


def _median(rows: Sequence[Row], named_by: Sequence[str], ranged: str) -> Row:
    values = [float(row[ranged]) for row in rows]
    rest = [name for name in rows[0] if name not in (*named_by, ranged, "round")]
    return {
        **{name: rows[0][name] for name in named_by},
        ranged: median(values),
        f"least {ranged}": min(values),
        f"most {ranged}": max(values),
        **{name: median(float(row[name]) for row in rows) for name in rest},
    }


def table(rows: Sequence[Row]) -> str:
    """Put rows of the same columns under each other."""
    lines = [list(rows[0]), *([shown(value) for value in row.values()] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) for line in lines)


def write(path: Path, rows: Sequence[Row]) -> None:
    """Write the rows as JSON."""
    path.write_bytes(orjson.dumps(list(rows), option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))


def shown(value: str | float) -> str:
    """Return a figure as the table has it; what is not a number is left out."""
    if isinstance(value, str):
        return value
    return "" if isnan(value) else f"{value:.3f}".rstrip("0").rstrip(".")
