"""How fast does a cost grow? The exponent is 1 in proportion to size, 2 where twice the size is four times the cost."""

from collections.abc import Sequence
from math import log, nan

from e2e.bench.report import Row


def with_exponents(rows: Sequence[Row], *, by: str, cost: str = "ms") -> list[Row]:
    """Add to each row the exponent since the one before it, and since the first; `by` is the column of sizes."""
    sizes, costs = [[float(row[column]) for row in rows] for column in (by, cost)]

    def exponent(first: int, last: int) -> float:
        return log(costs[last] / costs[first]) / log(sizes[last] / sizes[first]) if first < last else nan

    return [
        {**row, "exponent": exponent(max(0, number - 1), number), "from the first": exponent(0, number)}
        for number, row in enumerate(rows)
    ]
