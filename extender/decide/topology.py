"""Where on the network does a gang go?

What it requires comes first: all of it in one domain of a level, or nothing. What it prefers never costs a member its
place: the nearest level of which one domain takes everybody, in as few domains of the preferred level as can be. Of
domains that are equally good so far, it gets those in which it takes the fewest nodes, and then those in which more
workers are beside a leader; else those in which least is left over, so that the larger ones stay whole for larger
gangs. Which domains may do is told from how many members of each shape they take; whether they do, and how, is asked of
the planner itself, so that roles, minimums and relations count as they do in any plan. Counterparts: Kueue's
topology-aware scheduling, kube-scheduler's TopologyPlacement.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import accumulate, combinations, groupby, islice
from typing import NamedTuple, TypeAlias

import numpy as np
from msgspec import Struct, structs

from extender.decide.alike import group_alike
from extender.decide.columns import Mask, columns_of
from extender.decide.leaders import count_apart
from extender.decide.packing import FEW_NODES, weight
from extender.decide.room import capacities
from extender.model.gang import Gang
from extender.model.member import Member
from extender.model.pod import PodShape
from extender.model.snapshot import Snapshot
from extender.model.topology import Level, Topology
from extender.model.verdict import NoRoom, Placed

Area: TypeAlias = frozenset[str]
"""Nodes that the gang may use."""

Place: TypeAlias = Callable[[Area | None], Placed | NoRoom]
"""Plans the gang on these nodes alone, or on all."""

TRIES = 16
"""So many areas of a level are planned on. For members of one shape the first one does; for others, each in vain may
cost a search of 30 ms (`search.BUDGET`)."""

MORE = 2
"""Once all of a gang has found room, so many areas more are planned on, where it may take fewer nodes or have more
workers beside a leader. Beyond these there is hardly anything to gain."""

LOOKED_AT = 64
"""Of so many sets of equally many domains it is worked out how few nodes the gang would take there, at 0.1 ms for a
large one: more than small networks have."""

COMBINED = 8
"""Of so many of the largest domains all combinations are thought of for members of several shapes, some dozens. What
the greedy choice of a small network misses is mostly there."""

_COMBINATIONS = [some for size in range(1, COMBINED + 1) for some in combinations(range(COMBINED), size)]
_CHOSEN = np.array([[place in some for place in range(COMBINED)] for some in _COMBINATIONS], np.int64)
"""Row by row, whether each of the domains is in the combination."""


def place_near(
    gang: Gang, members: Sequence[Member], required: int, snapshot: Snapshot, homes: Collection[str], place: Place
) -> Placed | NoRoom:
    """Plan the gang where its levels want it; `required` of the members must find room, `homes` hold others of it."""
    if gang.required_level is None and gang.preferred_level is None:
        return place(None)
    search = _Search(gang, members, snapshot, homes)
    best: Placed | None = None
    refused: dict[Area, NoRoom] = {}
    for parts in search.areas(required):
        found = _best_of(parts, search, place, refused)
        if found is not None and (best is None or len(found.placements) > len(best.placements)):
            best = found
        if best is not None and len(best.placements) >= search.most:
            break
    if best is not None or gang.required_level is None:
        return best or place(None)
    tried = [refused[area] for area in search.domains if area in refused]
    why = max(tried, key=lambda each: each.found) if tried else place(search.roomiest())
    return _in_domain(why, gang.required_level, required)


class _Cost(NamedTuple):
    """What sorts first is better; `apart` are pairs of a leader and a worker, as far as another plan may have fewer."""

    lacking: int
    nodes: int
    apart: int


def _cost(found: Placed, most: int) -> _Cost:
    members, nodes = len(found.placements), len({placement.node for placement in found.placements})
    return _Cost(max(0, most - members), nodes, count_apart(found.placements) if nodes < members else 0)


def _best_of(parts: Sequence["_Part"], search: "_Search", place: Place, refused: dict[Area, NoRoom]) -> Placed | None:
    """Return the best plan there is on one of these parts, of which those come first that may take fewer nodes."""
    best: Placed | None = None
    least: _Cost | None = None
    more = MORE
    for part in parts:
        if least is not None and not least.lacking:
            if not more or least.nodes > FEW_NODES or (search.fewest_nodes(part), 0) >= least[1:]:
                break
            more -= 1
        found = place(part.nodes)
        if isinstance(found, NoRoom):
            refused[part.nodes] = found
            continue
        cost = _cost(found, search.most)
        if least is None or cost < least:
            best, least = found, cost
    return best


def shared_domains(level: Level, nodes: Collection[str], topology: Topology) -> set[str]:
    """Return the domains of the level in which these nodes are; nodes without one count for nothing."""
    return {topology.domain_of(level, node) for node in nodes} - {""}


def is_torn(gang: Gang, nodes: Collection[str], topology: Topology) -> bool:
    """Whether members on these nodes, beside those that are bound, would be in more domains than the gang may be in."""
    if gang.required_level is None:
        return False
    bound = shared_domains(gang.required_level, {pod.node_name for pod in gang.bound}, topology)
    domains = {topology.domain_of(gang.required_level, node) for node in nodes}
    return "" in domains or (not domains <= bound if bound else len(domains) > 1)


def allowed_nodes(gang: Gang, topology: Topology) -> Area | None:
    """Return the nodes to which members that run keep the others; None where they do not."""
    if gang.required_level is None:
        return None
    bound = shared_domains(gang.required_level, {pod.node_name for pod in gang.bound}, topology)
    domains = topology.domains(gang.required_level)
    return frozenset().union(*(domains[each] for each in bound)) if bound else None


def _in_domain(admission: Placed | NoRoom, level: Level, required: int) -> Placed | NoRoom:
    """Say of which level the domain is that takes most; what is said of another gang's is said already."""
    if isinstance(admission, Placed) or admission.level:
        return admission
    return structs.replace(admission, level=level.name, needed=required)


class _Part(Struct, frozen=True):
    """Nodes that are taken together; `takes` so many members of each shape, if the shapes were alone there."""

    nodes: Area
    takes: tuple[int, ...]
    is_home: bool = False


class _Search:
    """The areas for one gang; `most` is how many of its members can find room in one that its requirement allows."""

    def __init__(self, gang: Gang, members: Sequence[Member], snapshot: Snapshot, homes: Collection[str]) -> None:
        counts: Counter[PodShape] = Counter()
        for alike in group_alike(members, snapshot):
            counts[alike[0].shape] += len(alike)
        self._topology = snapshot.topology
        self._homes = homes
        self._required, self._preferred = gang.required_level, gang.preferred_level
        self._shapes = sorted(counts, key=weight, reverse=True)
        self._counts = [counts[shape] for shape in self._shapes]
        self._layout = columns_of(snapshot).layout
        self._capacities = [capacities(shape, snapshot) for shape in self._shapes]
        self._listed = [found.tolist() for found in self._capacities]  # numpy is slower for a few nodes at a time
        self._outer = self._outer_parts(frozenset(snapshot.rooms))
        self.most = max((self._count(part) for part in self._outer), default=0)

    @property
    def domains(self) -> list[Area]:
        """The domains that the requirement allows."""
        return [part.nodes for part in self._outer]

    def areas(self, required: int) -> Iterator[Sequence[_Part]]:
        """Yield the areas that may do, the best first, and together those that only a plan can tell apart."""
        if self.most < required:
            return
        yield from self._preferred_areas()
        if self._required is not None:
            enough = [part for part in self._outer if self._count(part) >= required]
            enough.sort(key=lambda part: (-self._count(part), self.fewest_nodes(part), self._spare(part)))
            last = [enough[-1]] if len(enough) > TRIES else []
            for _, parts in groupby(enough[:TRIES] + last, self._count):
                yield list(parts)

    def roomiest(self) -> Area:
        """Return the domain that takes most; no node where there is none."""
        return max(self._outer, key=self._count).nodes if self._outer else frozenset()

    def fewest_nodes(self, part: _Part) -> int:
        """Return how many nodes of the part the members need at least: each shape for itself, on the largest nodes."""
        rows = [self._layout.row_of[name] for name in part.nodes]
        fewest = 1
        for found, takes, count in zip(self._listed, part.takes, self._counts, strict=True):
            largest = sorted((found[row] for row in rows), reverse=True)
            fewest = max(fewest, 1 + bisect_left(list(accumulate(largest)), min(takes, count)))
        return fewest

    def _outer_parts(self, everywhere: Area) -> list[_Part]:
        """Return the domains that the requirement allows; those that hold members already leave no choice."""
        if self._required is None:
            return [self._part(everywhere)]
        domains = self._topology.domains(self._required)
        fixed = shared_domains(self._required, self._homes, self._topology)
        if fixed:
            return [self._part(frozenset().union(*(domains[each] for each in fixed)) & everywhere)]
        return [self._part(nodes & everywhere) for nodes in domains.values()]

    def _preferred_areas(self) -> Iterator[Sequence[_Part]]:
        """Yield single domains from the preferred level outward; at last, as few of its domains as can be."""
        preferred = self._preferred
        if preferred is None or preferred == self._required:
            return
        outer = [part for part in self._outer if self._count(part) == self.most]
        for level in self._levels_to_try(preferred):
            parts = [part for part in self._single_parts(outer, level) if self._count(part) == self.most]
            if level == preferred:
                parts.sort(key=lambda part: (self.fewest_nodes(part), self._spare(part)))
                yield parts[:TRIES]
            else:
                yield from self._fewest(parts, preferred)
        yield from self._fewest(outer, preferred)

    def _levels_to_try(self, preferred: Level) -> Iterator[Level]:
        for level in self._topology.outward_from(preferred):
            if level == self._required:
                return
            yield level

    def _single_parts(self, outer: Sequence[_Part], level: Level) -> list[_Part]:
        """Return the level's domains within; where members are in one already, that, and where in several, none."""
        homes = shared_domains(level, self._homes, self._topology)
        parts = [part for each in outer for part in self._inner_parts(each.nodes, level)]
        return [part for part in parts if not homes or (part.is_home and len(homes) == 1)]

    def _fewest(self, parts: Sequence[_Part], level: Level) -> Iterator[Sequence[_Part]]:
        """Yield the few domains of the level that may do, all of them within one of the parts; the fewest first."""
        found = [(few, self._spare(part)) for part in parts for few in self._few(part, level)]
        found.sort(key=lambda each: (_domains(each), each[1]))
        tries = TRIES
        for _, equals in groupby(found, _domains):
            joined = [(_joined(few), spare) for few, spare in islice(equals, LOOKED_AT)]
            joined.sort(key=lambda each: (self.fewest_nodes(each[0]), each[1]))
            yield [part for part, _ in joined[:tries]]
            tries = max(0, tries - len(joined))
        yield parts[:TRIES]

    def _few(self, part: _Part, level: Level) -> Iterator[Sequence[_Part]]:
        """Yield sets of domains of the level that may do. For members of one shape, none is smaller than the first."""
        inner = sorted(self._inner_parts(part.nodes, level), key=lambda each: (not each.is_home, -self._count(each)))
        greedy = self._greedy(inner)
        if greedy:
            yield greedy
        if len(self._counts) > 1 and inner:
            takes = np.array([each.takes for each in inner[:COMBINED]])
            together = np.minimum(_CHOSEN[:, : len(takes)] @ takes, self._counts).sum(axis=1)
            sizes = _CHOSEN.sum(axis=1)
            is_some = (sizes >= len(greedy) - 1) & (sizes <= len(greedy) + 1) & ~_CHOSEN[:, len(takes) :].any(axis=1)
            for number in np.flatnonzero(is_some & (together >= self.most))[:TRIES].tolist():
                yield [inner[place] for place in _COMBINATIONS[number]]

    def _greedy(self, inner: Sequence[_Part]) -> list[_Part]:
        """Return the first ones, as few as take everybody, and the tightest for the rest."""
        total = (0,) * len(self._counts)
        for number, each in enumerate(inner):
            so_far = _sum(total, each.takes)
            if self._count_of(so_far) < self.most:
                total = so_far
                continue
            rest = [other for other in inner[number:] if self._count_of(_sum(total, other.takes)) >= self.most]
            return [*inner[:number], min(rest, key=self._spare)]
        return []

    def _inner_parts(self, nodes: Area, level: Level) -> list[_Part]:
        """Return the level's domains within, as far as they take any; a node that is in none is by itself."""
        rows = self._rows(nodes)
        codes, code_of, domains = self._layout.domains(level)
        takes = [np.bincount(codes[rows], found[rows], len(domains)).astype(np.int64) for found in self._capacities]
        homes = {code_of.get(domain) for domain in shared_domains(level, self._homes, self._topology)}
        return [
            _Part(domains[code] & nodes, tuple(int(each[code]) for each in takes), code in homes)
            for code in np.flatnonzero(np.sum(takes, axis=0)).tolist()
        ]

    def _part(self, nodes: Area) -> _Part:
        rows = self._rows(nodes)
        return _Part(nodes, tuple(int(found[rows].sum()) for found in self._capacities))

    def _rows(self, nodes: Area) -> Mask | slice:
        return slice(None) if len(nodes) == len(self._layout.names) else self._layout.mask(nodes)

    def _count(self, part: _Part) -> int:
        return self._count_of(part.takes)

    def _count_of(self, takes: Sequence[int]) -> int:
        return sum(map(min, takes, self._counts))

    def _spare(self, part: _Part) -> int:
        """How many more of the largest members it would take: what remains for others."""
        return part.takes[0] - self._counts[0]


def _domains(found: tuple[Sequence[_Part], int]) -> tuple[int, int]:
    """Return how many domains were found; of as many, those that hold members come first."""
    return len(found[0]), -sum(part.is_home for part in found[0])


def _joined(parts: Sequence[_Part]) -> _Part:
    takes = zip(*(part.takes for part in parts), strict=True)
    return _Part(frozenset().union(*(part.nodes for part in parts)), tuple(map(sum, takes)))


def _sum(some: Sequence[int], others: Sequence[int]) -> tuple[int, ...]:
    return tuple(map(int.__add__, some, others))
