"""What do costs grow with? The bench on sizes so small that its figures mean nothing: only that they are there."""

from math import isnan, nan

import pytest

from e2e.bench.growth.exponent import with_exponents
from e2e.bench.growth.parts import PARTS, Sizes

TINY = Sizes(nodes=(20, 40), members=(6, 12), usual=(40, 12), clusters=(20, 40), pods_per_node=10, tries=1)


@pytest.mark.parametrize("part", list(PARTS))
def test_a_part_has_a_figure_in_every_cell_but_where_a_row_is_the_first(part: str) -> None:
    rows = list(PARTS[part](TINY))
    for row in rows:
        empty = {name for name, value in row.items() if isinstance(value, float) and isnan(value)}
        assert empty in (set(), {"exponent", "from the first"})
        assert all(float(value) > 0 for name, value in row.items() if name.endswith((" ms", "ratio")))


def test_the_exponent_of_what_grows_fourfold_for_twice_the_size_is_two() -> None:
    rows = with_exponents([{"size": 10, "ms": 1.0}, {"size": 20, "ms": 4.0}, {"size": 40, "ms": 8.0}], by="size")
    since_last, since_first = ([float(row[column]) for row in rows] for column in ("exponent", "from the first"))
    assert since_last == pytest.approx([nan, 2, 1], nan_ok=True)
    assert since_first == pytest.approx([nan, 2, 1.5], nan_ok=True)
