"""How many members do the domains of a level take, and which few of them take all?

All domains are counted at once, in the rows of a table: a large cluster has hundreds of them at the nearest level.
"""

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np
from msgspec import Struct

from extender.decide.columns import Column, Domains, Mask, Rows

TRIES = 16
"""So many areas of a level are planned on. For members of one shape the first one does; for others, each in vain may
cost a search of 30 ms (`search.BUDGET`)."""

COMBINED = 8
"""Of so many of the largest domains all combinations are thought of for members of several shapes, some dozens. What
the greedy choice of a small network misses is mostly there."""

_COMBINATIONS = [some for size in range(1, COMBINED + 1) for some in combinations(range(COMBINED), size)]
_CHOSEN = np.array([[place in some for place in range(COMBINED)] for some in _COMBINATIONS], np.int64)
"""Row by row, whether each of the domains is in the combination."""

_SIZES = _CHOSEN.sum(axis=1)


class Part(Struct, frozen=True):
    """Nodes that are taken together, by row; `takes` so many members of each shape, if the shapes were alone there."""

    rows: Rows
    takes: tuple[int, ...]
    is_home: bool = False


class Few(NamedTuple):
    """Domains of a part, by their numbers: `size` of them, in so many of which siblings are."""

    part: int
    numbers: list[int]
    size: int
    homes: int


class Inner:
    """The domains of a level within some parts, which share no node, as far as they take any of so many members.

    Those of a part stand together, the ones that hold siblings first, and then those that take most.
    """

    def __init__(
        self, parts: Sequence[Part], domains: Domains, homes: Mask, capacities: Sequence[Column], counts: Sequence[int]
    ) -> None:
        self._domains, self._counts = domains, np.array(counts, np.int64)
        self._part_of = np.full(len(domains.codes), -1)
        for number, part in enumerate(parts):
            self._part_of[part.rows] = number
        rows = np.concatenate([part.rows for part in parts]) if parts else np.zeros(0, np.intp)
        self._is_everything = len(parts) == 1 and len(rows) == len(domains.codes)
        cells = self._part_of[rows] * len(domains.rows) + domains.codes[rows]
        size = len(parts) * len(domains.rows)
        table = np.array([np.bincount(cells, found[rows], size) for found in capacities], np.int64).T
        taking = np.flatnonzero(table.any(axis=1))
        of_part, codes = np.divmod(taking, len(domains.rows))
        takes = table[taking]
        order = np.lexsort((-self._count(takes), ~homes[codes], of_part))
        self._parts, self._codes, self._takes = of_part[order], codes[order], takes[order]
        self._homes = homes[self._codes]
        self._starts = np.searchsorted(self._parts, np.arange(len(parts) + 1))

    def taking(self, least: int) -> list[Part]:
        """Return the domains that take at least so many members."""
        return [self._part(number) for number in np.flatnonzero(self._count(self._takes) >= least).tolist()]

    def few(self, needed: int) -> Iterator[Few]:
        """Yield sets of domains of one part that may take so many members, as few as can be.

        For members of one shape, no other set of the part is smaller than the first.
        """
        if not len(self._parts):
            return
        greedy = self._greedy(needed)
        combined = self._combined(greedy, needed) if len(self._counts) > 1 else {}
        for number, some in enumerate(greedy):
            for rows in ([some] if some else []) + combined.get(number, []):
                yield Few(number, rows, len(rows), int(np.count_nonzero(self._homes[rows])))

    def joined(self, few: Few) -> Part:
        """Return these domains as one part."""
        rows = self._within(np.concatenate([self._domains.rows[code] for code in self._codes[few.numbers]]), few.part)
        return Part(rows, tuple(self._takes[few.numbers].sum(axis=0).tolist()))

    def _greedy(self, needed: int) -> list[list[int]]:
        """Return the first ones of each part, as few as take so many, the last being the tightest; none if none do."""
        total = np.cumsum(self._takes, axis=0)
        before = np.concatenate([np.zeros_like(total[:1]), total])[self._starts[:-1]]
        is_short = self._count(total - before[self._parts]) < needed
        last = self._starts[:-1] + np.bincount(self._parts[is_short], minlength=len(before))
        rest = np.concatenate([np.zeros_like(total[:1]), total])[last] - before
        may = np.arange(len(self._parts)) >= last[self._parts]
        may &= self._count(rest[self._parts] + self._takes) >= needed
        rows = np.flatnonzero(may)
        rows = rows[np.lexsort((self._takes[rows, 0], self._parts[rows]))]
        firsts = np.searchsorted(self._parts[rows], np.arange(len(before)))
        return [
            [*range(start, end), int(rows[first])] if end < stop else []
            for start, end, stop, first in zip(self._starts[:-1], last, self._starts[1:], firsts, strict=True)
        ]

    def _combined(self, greedy: Sequence[Sequence[int]], needed: int) -> dict[int, list[list[int]]]:
        """Return of each part the combinations of its first domains that may do, hardly more than the greedy ones."""
        places = self._starts[:-1, None] + np.arange(COMBINED)
        is_there = places < self._starts[1:, None]
        takes = np.where(is_there[:, :, None], self._takes[np.minimum(places, len(self._takes) - 1)], 0)
        size = np.array([len(some) for some in greedy])[:, None]
        may = (abs(_SIZES - size) <= 1) & (~is_there @ _CHOSEN.T == 0)
        may &= self._count(_CHOSEN @ takes) >= needed
        return {
            number: [
                [int(places[number, place]) for place in _COMBINATIONS[each]] for each in np.flatnonzero(row)[:TRIES]
            ]
            for number, row in enumerate(may)
        }

    def _count(self, takes: Column) -> Column:
        """Return how many of the members so much takes, if the shapes are not in each other's way."""
        count: Column = np.minimum(takes, self._counts).sum(axis=-1)
        return count

    def _part(self, number: int) -> Part:
        rows = self._within(self._domains.rows[self._codes[number]], self._parts[number])
        return Part(rows, tuple(self._takes[number].tolist()), bool(self._homes[number]))

    def _within(self, rows: Rows, part: int) -> Rows:
        return rows if self._is_everything else rows[self._part_of[rows] == part]
