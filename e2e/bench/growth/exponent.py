"""How fast does a cost grow? The exponent is 1 in proportion to size, 2 where twice the size is four times the cost."""

from collections.abc import Sequence
from math import log, nan


def growth(sizes: Sequence[float], costs: Sequence[float]) -> list[tuple[float, float]]:
    """Return for each size the exponent since the one before it, and since the first; not a number for the first."""
    others = range(1, len(sizes))
    return [(nan, nan), *((_slope(sizes, costs, n - 1, n), _slope(sizes, costs, 0, n)) for n in others)]


def _slope(sizes: Sequence[float], costs: Sequence[float], first: int, last: int) -> float:
    return log(costs[last] / costs[first]) / log(sizes[last] / sizes[first])
