"""How many members do the domains of a level take, and which few of them take all?

All domains are counted at once, in the rows of a table: a large cluster has hundreds of them at the nearest level.
Nodes come in regions, whose nodes are in the same domains.
"""

from collections.abc import Iterator, Sequence
from functools import cached_property
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
    """Regions that are taken together; they take so many members of each shape, if the shapes were alone there."""

    regions: Rows
    takes: tuple[int, ...]
    is_home: bool = False


class Few(NamedTuple):
    """Domains of a part, by their numbers: `size` of them, in so many of which siblings are."""

    part: int
    numbers: list[int]
    size: int
    homes: int


class _Ranked(NamedTuple):
    """Domains that take any: those of a part stand together, from its start on.

    First are the ones that hold siblings, and then those that take most.
    """

    parts: Rows
    codes: Rows
    takes: Column
    homes: Mask
    starts: Rows


class Inner:
    """The domains of a level within some parts, which share no node.

    `takes` is how many members of each shape each region takes, `counts` how many there are, and `homes` says which
    domains hold siblings.
    """

    def __init__(
        self, parts: Sequence[Part], domains: Domains, *, homes: Mask, takes: Column, counts: Sequence[int]
    ) -> None:
        self._domains, self._homes = domains, homes
        self._counts = np.array(counts, np.int64)
        self._part_count = len(parts)
        self._is_everything = len(parts) == 1 and len(parts[0].regions) == len(takes)
        self._part_of = np.full(len(takes), 0 if self._is_everything else -1)
        for number, part in enumerate(() if self._is_everything else parts):
            self._part_of[part.regions] = number
        self._takes = self._takes_of_domains(takes)

    def _takes_of_domains(self, takes: Column) -> Column:
        """Return how many of each shape each domain of each part takes, part after part."""
        cells, size = self._domains.codes, len(self._homes)
        if not self._is_everything:
            regions = np.flatnonzero(self._part_of >= 0)
            cells, takes = self._part_of[regions] * size + cells[regions], takes[regions]
        return np.array([np.bincount(cells, column, self._part_count * size) for column in takes.T], np.int64).T

    def single(self, least: int) -> list[Part]:
        """Return the domains that take at least so many members, in the order of `_Ranked`."""
        count = self._count(self._takes)
        found = []
        for cell in np.flatnonzero(count >= least).tolist():
            part, code = divmod(cell, len(self._homes))
            is_home = bool(self._homes[code])
            one = Part(self._within(self._domains.rows[code], part), tuple(self._takes[cell].tolist()), is_home)
            found.append((part, not is_home, -int(count[cell]), one))
        return [one for *_, one in sorted(found, key=lambda each: each[:-1])]

    def few(self, needed: int) -> Iterator[Few]:
        """Yield sets of domains of one part that may take so many members, as few as can be.

        For members of one shape, no other set of the part is smaller than the first.
        """
        if not len(self._ranked.parts):
            return
        greedy = self._greedy(needed)
        homes = self._ranked.homes.tolist()
        combined = self._combined(greedy, needed) if len(self._counts) > 1 else {}
        for number, some in enumerate(greedy):
            for rows in ([some] if some else []) + combined.get(number, []):
                yield Few(number, rows, len(rows), sum([homes[row] for row in rows]))

    def joined(self, few: Few) -> Part:
        """Return these domains as one part."""
        codes, takes = self._ranked.codes[few.numbers].tolist(), self._ranked.takes[few.numbers].sum(axis=0)
        regions = np.concatenate([self._domains.rows[code] for code in codes])
        return Part(self._within(regions, few.part), tuple(takes.tolist()))

    @cached_property
    def _ranked(self) -> _Ranked:
        count = self._count(self._takes)
        taking = np.flatnonzero(count)
        parts, codes = np.divmod(taking, len(self._homes))
        order = np.lexsort((-count[taking], ~self._homes[codes], parts))
        parts, codes = parts[order], codes[order]
        starts = np.searchsorted(parts, np.arange(self._part_count + 1))
        return _Ranked(parts, codes, self._takes[taking[order]], self._homes[codes], starts)

    def _greedy(self, needed: int) -> list[list[int]]:
        """Return the first ones of each part, as few as take so many, the last being the tightest; none if none do."""
        parts, _, takes, _, starts = self._ranked
        total = np.concatenate([np.zeros_like(takes[:1]), np.cumsum(takes, axis=0)])
        before = total[starts[:-1]]
        is_short = self._count(total[1:] - before[parts]) < needed
        last = starts[:-1] + np.bincount(parts[is_short], minlength=len(before))
        rest = total[last] - before
        may = np.arange(len(parts)) >= last[parts]
        may &= self._count(rest[parts] + takes) >= needed
        rows = np.flatnonzero(may)
        rows = rows[np.lexsort((takes[rows, 0], parts[rows]))]
        tightest = np.append(rows, -1)[np.searchsorted(parts[rows], np.arange(len(before)))].tolist()
        return [
            [*range(start, end), one] if end < stop else []
            for start, end, stop, one in zip(
                starts[:-1].tolist(), last.tolist(), starts[1:].tolist(), tightest, strict=True
            )
        ]

    def _combined(self, greedy: Sequence[Sequence[int]], needed: int) -> dict[int, list[list[int]]]:
        """Return of each part the combinations of its first domains that may do, hardly more than the greedy ones."""
        _, _, all_takes, _, starts = self._ranked
        places = starts[:-1, None] + np.arange(COMBINED)
        is_there = places < starts[1:, None]
        takes = np.where(is_there[:, :, None], all_takes[np.minimum(places, len(all_takes) - 1)], 0)
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

    def _within(self, regions: Rows, part: int) -> Rows:
        return regions if self._is_everything else regions[self._part_of[regions] == part]
