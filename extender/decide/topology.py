"""Where on the network does a gang go?

What it requires comes first: all of it in one domain of a level, or nothing. What it prefers never costs a member its
place: the nearest level of which one domain takes everybody, in as few domains of the preferred level as can be. Of
domains that are equally good so far, it gets those in which it takes the fewest nodes, and then those in which more
workers are beside a leader; else those in which least is left over, so that the larger ones stay whole for larger
gangs. Which domains may do is told from how many members of each shape they take; whether they do, and how, is asked of
the planner itself, so that roles, minimums and relations count as they do in any plan. Counterparts: Kueue's
topology-aware scheduling, kube-scheduler's TopologyPlacement.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import groupby, islice
from typing import NamedTuple, TypeAlias

import numpy as np
from msgspec import structs

from extender.decide.columns import Column, Mask, Rows, columns_of, is_alone
from extender.decide.domains import TRIES, Inner, Part
from extender.decide.draft import Draft
from extender.decide.leaders import count_apart
from extender.decide.packing import FEW_NODES, weight
from extender.decide.room import capacities
from extender.model.gang import Gang
from extender.model.member import Squad
from extender.model.pod import PodShape
from extender.model.snapshot import Snapshot
from extender.model.topology import Level, Topology
from extender.model.verdict import NoRoom

Area: TypeAlias = Mask
"""Nodes that the gang may use, as rows of the snapshot's columns."""

Place: TypeAlias = Callable[[Area | None], Draft | NoRoom]
"""Plans the gang on these nodes alone, or on all."""

MORE = 2
"""Once all of a gang has found room, so many areas more are planned on, where it may take fewer nodes or have more
workers beside a leader. Beyond these there is hardly anything to gain."""

LOOKED_AT = 64
"""Of so many sets of equally many domains it is worked out how few nodes the gang would take there, at 0.1 ms for a
large one: more than small networks have."""


def place_near(
    gang: Gang, squads: Sequence[Squad], required: int, snapshot: Snapshot, homes: Collection[str], place: Place
) -> Draft | NoRoom:
    """Plan the gang where its levels want it; `required` of the members must find room, `homes` hold others of it."""
    if gang.required_level is None and gang.preferred_level is None:
        return place(None)
    search = _Search(gang, squads, snapshot, homes)
    best: Draft | None = None
    refused: dict[bytes, NoRoom] = {}
    for parts in search.areas(required):
        found = _best_of(parts, search, place, refused)
        if found is not None and (best is None or found.size > best.size):
            best = found
        if best is not None and best.size >= search.most:
            break
    if best is not None or gang.required_level is None:
        return best or place(None)
    tried = [refused[key] for key in map(search.key_of, search.domains) if key in refused]
    why = max(tried, key=lambda each: each.found) if tried else place(search.roomiest())
    return _in_domain(why, gang.required_level, required)


class _Cost(NamedTuple):
    """What sorts first is better.

    `apart` are pairs of a leader and a worker, as far as another plan may have fewer: on many nodes most are.
    """

    lacking: int
    nodes: int
    apart: int


def _cost(found: Draft, most: int) -> _Cost:
    nodes = len(found.nodes)
    counts = nodes < found.size and nodes <= FEW_NODES
    return _Cost(max(0, most - found.size), nodes, count_apart(found.batches) if counts else 0)


def _best_of(parts: Sequence[Part], search: "_Search", place: Place, refused: dict[bytes, NoRoom]) -> Draft | None:
    """Return the best plan there is on one of these parts, of which those come first that may take fewer nodes."""
    best: Draft | None = None
    least: _Cost | None = None
    more = MORE
    for part in parts:
        if least is not None and not least.lacking:
            if not more or least.nodes > FEW_NODES or (search.fewest_nodes([part])[0], 0) >= least[1:]:
                break
            more -= 1
        found = place(search.area_of(part))
        if isinstance(found, NoRoom):
            refused[search.key_of(part)] = found
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


def allowed_nodes(gang: Gang, topology: Topology) -> frozenset[str] | None:
    """Return the nodes to which members that run keep the others; None where they do not."""
    if gang.required_level is None:
        return None
    bound = shared_domains(gang.required_level, {pod.node_name for pod in gang.bound}, topology)
    domains = topology.domains(gang.required_level)
    return frozenset().union(*(domains[each] for each in bound)) if bound else None


def _in_domain(admission: Draft | NoRoom, level: Level, required: int) -> Draft | NoRoom:
    """Say of which level the domain is that takes most; what is said of another gang's is said already."""
    if isinstance(admission, Draft) or admission.level:
        return admission
    return structs.replace(admission, level=level.name, needed=required)


class _Search:
    """The areas for one gang; `most` is how many of its members can find room in one that its requirement allows."""

    def __init__(self, gang: Gang, squads: Sequence[Squad], snapshot: Snapshot, homes: Collection[str]) -> None:
        counts: Counter[PodShape] = Counter()
        for squad in squads:
            counts[squad.shape] += len(squad.members)
        self._topology = snapshot.topology
        self._homes = homes
        self._required, self._preferred = gang.required_level, gang.preferred_level
        self._shapes = sorted(counts, key=weight, reverse=True)
        self._counts = [counts[shape] for shape in self._shapes]
        self._capacities = [capacities(shape, snapshot) for shape in self._shapes]
        self._tried = () if self._preferred is None else tuple(self._levels_to_try(self._preferred))
        levels = dict.fromkeys([*self._tried, *([self._required] if self._required else [])])
        self._regions = columns_of(snapshot).layout.regions(tuple(levels))
        self._takes = self._takes_of_regions()
        self._outer = self._outer_parts()
        self.most = max((self._count(part) for part in self._outer), default=0)

    @property
    def domains(self) -> Sequence[Part]:
        """The domains that the requirement allows."""
        return self._outer

    def areas(self, required: int) -> Iterator[Sequence[Part]]:
        """Yield the areas that may do, the best first, and together those that only a plan can tell apart."""
        if self.most < required:
            return
        yield from self._preferred_areas()
        if self._required is not None:
            enough = [part for part in self._outer if self._count(part) >= required]
            enough = self._sorted(enough, lambda part: -self._count(part))
            last = [enough[-1]] if len(enough) > TRIES else []
            for _, parts in groupby(enough[:TRIES] + last, self._count):
                yield list(parts)

    def area_of(self, part: Part) -> Area:
        """Return the part's nodes."""
        regions = np.zeros(len(self._takes), np.bool_)
        regions[part.regions] = True
        area: Area = regions[self._regions.region_of]
        return area

    def key_of(self, part: Part) -> bytes:
        """Return what is the same for the same nodes."""
        return np.sort(part.regions).tobytes()

    def roomiest(self) -> Area:
        """Return the domain that takes most; no node where there is none."""
        nothing = Part(np.zeros(0, np.intp), ())
        return self.area_of(max(self._outer, key=self._count, default=nothing))

    def fewest_nodes(self, parts: Sequence[Part]) -> list[int]:
        """Return how many nodes of each part the members need at least: each shape for itself, on the largest nodes."""
        fewest = np.ones(len(parts), np.int64)
        regions = np.concatenate([part.regions for part in parts]) if parts else np.zeros(0, np.intp)
        numbers = np.repeat(np.arange(len(parts)), [len(part.regions) for part in parts])
        rows, numbers = self._regions.rows_of(regions), np.repeat(numbers, self._regions.sizes[regions])
        for number, (found, count) in enumerate(zip(self._capacities, self._counts, strict=True)):
            needed = np.array([min(part.takes[number], count) for part in parts], np.int64)
            fewest = np.maximum(fewest, _count_needed(np.minimum(found[rows], count), numbers, needed))
        return [int(each) for each in fewest]

    def _sorted(self, parts: Sequence[Part], key: Callable[[Part], int]) -> list[Part]:
        """Return the parts by this key, then the ones on which fewer nodes may do, then the tightest."""
        fewest = self.fewest_nodes(parts) if len(parts) > 1 else [0]
        order = sorted(range(len(parts)), key=lambda i: (key(parts[i]), fewest[i], self._spare(parts[i])))
        return [parts[number] for number in order]

    def _takes_of_regions(self) -> Column:
        """Return how many members each region takes, by shape."""
        region_of, size = self._regions.region_of, len(self._regions.sizes)
        return np.array([np.bincount(region_of, found, size) for found in self._capacities], np.int64).T

    def _outer_parts(self) -> list[Part]:
        """Return the domains that the requirement allows; those that hold members already leave no choice."""
        if self._required is None:
            return [self._part(np.arange(len(self._takes)))]
        codes, code_of, regions = self._regions.domains[self._required]
        fixed = shared_domains(self._required, self._homes, self._topology)
        if fixed:
            return [self._part(np.flatnonzero(np.isin(codes, [code_of[each] for each in fixed if each in code_of])))]
        return [self._part(regions[code]) for name, code in code_of.items() if not is_alone(name)]

    def _preferred_areas(self) -> Iterator[Sequence[Part]]:
        """Yield single domains from the preferred level outward; at last, as few of its domains as can be."""
        preferred = self._preferred
        if preferred is None or preferred == self._required:
            return
        outer = [part for part in self._outer if self._count(part) == self.most]
        for level in self._tried:
            parts = self._single_parts(outer, level)
            if level == preferred:
                yield self._sorted(parts, lambda _: 0)[:TRIES]
            else:
                yield from self._fewest(parts, preferred)
        yield from self._fewest(outer, preferred)

    def _levels_to_try(self, preferred: Level) -> Iterator[Level]:
        for level in self._topology.outward_from(preferred):
            if level == self._required:
                return
            if level == preferred or self._topology.domains(level):  # else each node is one by itself, as it was nearer
                yield level

    def _single_parts(self, outer: Sequence[Part], level: Level) -> list[Part]:
        """Return the level's domains within that take most; where members are in one, that; in several, none."""
        homes = shared_domains(level, self._homes, self._topology)
        parts = self._inner(outer, level).single(self.most)
        return [part for part in parts if not homes or (part.is_home and len(homes) == 1)]

    def _fewest(self, parts: Sequence[Part], level: Level) -> Iterator[Sequence[Part]]:
        """Yield the few domains of the level that may do, all of them within one of the parts; the fewest first."""
        inner = self._inner(parts, level)
        spare = [self._spare(part) for part in parts]
        found = sorted(inner.few(self.most), key=lambda few: (few.size, -few.homes, spare[few.part]))
        tries = TRIES
        for _, equals in groupby(found, lambda few: (few.size, few.homes)):
            some = list(islice(equals, LOOKED_AT))
            joined = [inner.joined(few) for few in some]
            fewest = self.fewest_nodes(joined)
            order = sorted(range(len(some)), key=lambda i: (fewest[i], spare[some[i].part]))
            yield [joined[number] for number in order[:tries]]
            tries = max(0, tries - len(joined))
        yield parts[:TRIES]

    def _inner(self, parts: Sequence[Part], level: Level) -> Inner:
        domains = self._regions.domains[level]
        homes = np.zeros(len(domains.rows), np.bool_)
        for domain in shared_domains(level, self._homes, self._topology) & domains.code_of.keys():
            homes[domains.code_of[domain]] = True
        return Inner(parts, domains, homes=homes, takes=self._takes, counts=self._counts)

    def _part(self, regions: Rows) -> Part:
        return Part(regions, tuple(self._takes[regions].sum(axis=0).tolist()))

    def _count(self, part: Part) -> int:
        return self._count_of(part.takes)

    def _count_of(self, takes: Sequence[int]) -> int:
        return sum(map(min, takes, self._counts))

    def _spare(self, part: Part) -> int:
        """How many more of the largest members it would take: what remains for others."""
        return part.takes[0] - self._counts[0]


def _count_needed(found: Column, parts: Rows, needed: Column) -> Column:
    """Return how many nodes of each part are needed at least, if the `found` of each row can be taken there."""
    most = int(found.max(initial=0)) + 1
    largest_first = np.sort(parts * most + (most - 1 - found))
    parts, found = np.divmod(largest_first, most)
    found = most - 1 - found
    so_far = np.cumsum(found)
    starts = np.searchsorted(parts, np.arange(len(needed)))
    before = np.concatenate([[0], so_far])[starts]
    return 1 + np.bincount(parts[so_far - before[parts] < needed[parts]], minlength=len(needed))
