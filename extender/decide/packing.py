"""Which nodes for the members of one gang, all at once?

Members of equal shape and role are one class. Nodes are filled one after another, each with as many members as it
takes: nodes that hold siblings first, then the node that takes most; among equals the one that loses the fewest whole
cards (`wear`), and then the tightest. So a gang lands whole on one node where one takes it, and workers land beside
their parameter server, which is placed before them. Where that strands a mixed gang, its hardest classes are placed
first instead.

For a single class both orders find a placement whenever one exists. For several they may miss one, so that other ways
are searched for at last (`search`), which tries all of them for a small gang. Members that ask
something of the pods around them are placed one by one instead (`one_by_one`), class after class, at last within one
domain of their affinity; that may miss one, too.
"""

import heapq
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from copy import copy
from typing import TypeAlias

from msgspec import Struct

from extender.decide.leaders import LEADER_ROLES
from extender.decide.one_by_one import affinity_domains, selecting_keys, take_turns
from extender.decide.room import capacity_on, nodes_with_room
from extender.decide.scoring import asks_for_devices, has_devices
from extender.decide.search import Needs, Wanted, find_way
from extender.decide.trial import Trial
from extender.model.device import WHOLE_MILLI, CardRequest
from extender.model.node import repels
from extender.model.pod import Occupant, PodShape, PodUid, Tags
from extender.model.snapshot import Snapshot
from extender.model.verdict import Placement

_MOST_SPARE = 1 << 40
"""More members than any node has room for, be it for pods that ask for hardly anything."""


class Member(Struct, frozen=True):
    """A member to place; `uid` and `name` are empty while it does not exist yet."""

    shape: PodShape
    role: str = ""
    uid: PodUid = ""
    name: str = ""
    tags: Tags = Tags()

    @property
    def occupant(self) -> Occupant:
        """What it will be to its node and neighbours."""
        return Occupant(self.shape, self.tags)


class Packing(Struct, frozen=True):
    """What could be placed, and on what: `left_over` found no node beside those placed on `trial`."""

    placements: tuple[Placement, ...]
    left_over: tuple[Member, ...]
    trial: Trial

    @property
    def nodes(self) -> set[str]:
        """The nodes that are used."""
        return {placement.node for placement in self.placements}

    def is_enough(self, needs: Needs) -> bool:
        """Whether as many could be placed as are needed."""
        roles = Counter(placement.role for placement in self.placements)
        enough_of_each = all(roles[role] >= least for role, least in needs.role_minimums.items())
        return enough_of_each and len(self.placements) >= needs.required


_Worth: TypeAlias = tuple[bool, bool, int, int, int, int, str]
"""What sorts first is taken first: a node that holds siblings, whose devices are not wasted on members that need none,
that takes most (counted negatively), at the least cost, near siblings on the network, and then where it stands there,
neighbours side by side; and its name."""

_NODES = 32
"""A gang on more nodes is not tried in other orders: one node less is little then, and a try takes long."""

_LOOKED_AT = 64
"""Nodes that another order may use, at 1 to 2 us for each class and look."""


class _Class:
    """Members of equal shape and role, with the nodes that have room for one; `within` those if they are given."""

    def __init__(
        self,
        members: list[Member],
        snapshot: Snapshot,
        avoid: Collection[tuple[str, PodShape]],
        within: Collection[str] | None,
    ) -> None:
        self.shape = members[0].shape
        self.pod = members[0].occupant
        self._members = members
        self.left = members
        near = Trial(snapshot).neighbourhood(self.pod) if self.shape.relations is None else None
        with_room = nodes_with_room(self.shape, snapshot)
        self.nodes = {
            name
            for name in (with_room if within is None else with_room.intersection(within))
            if (name, self.shape) not in avoid and not (near and near.why_not(snapshot.rooms[name].node))
        }

    def again(self) -> "_Class":
        """Return it with all its members to place."""
        other = copy(self)
        other.left = self._members
        return other


def pack_gang(  # noqa: PLR0913 - a plan depends on all of this; by name
    members: Sequence[Member],
    snapshot: Snapshot,
    *,
    required: int,
    homes: Collection[str] = (),
    avoid: Collection[tuple[str, PodShape]] = (),
    role_minimums: Mapping[str, int] | None = None,
    within: Collection[str] | None = None,
) -> Packing:
    """Place as many members as fit, leaders first.

    Where they are fewer than `required`, or fewer of a role than its minimum, other orders and ways are tried.
    `homes` are nodes that hold siblings already; `avoid` are nodes that must not be used for a shape; no others than
    those in `within` are, if they are given.
    """
    related = any(member.shape.relations is not None for member in members)
    fill = _class_by_class if related else _fill_nodes
    trial = Trial(snapshot)
    classes = _classes(members, snapshot, avoid, within)
    first = fill(classes, trial, homes)
    needs = Needs(required, role_minimums or {})
    if len(classes) == 1:
        return first
    if first.is_enough(needs):
        return first if related else _on_fewer_nodes(first, classes, snapshot, homes)
    for other in _other_orders(classes, members, snapshot, avoid, within):
        trial.undo(0)
        packing = _class_by_class(other, trial, homes)
        if packing.is_enough(needs):
            return packing
    trial.undo(0)
    found = None if related else _search(_hardest_first(classes), trial, homes, needs)
    if found is not None:
        return found
    for placement in first.placements:
        trial.place(placement.occupant, placement.node)
    return first


def _on_fewer_nodes(first: Packing, classes: Sequence[_Class], snapshot: Snapshot, homes: Collection[str]) -> Packing:
    """Return a packing of the same members on fewer nodes, where filling these in another order comes to one."""
    best = first
    if first.left_over or not 1 < len(first.nodes) <= _NODES:
        return first
    hardest = _hardest_first(classes)
    near = first.nodes | _largest(hardest, snapshot)
    for order in (hardest, [one.again() for one in reversed(classes)]):
        for one in order:
            one.nodes = one.nodes & near
        other = _fill_nodes(order, Trial(snapshot), homes)
        if not other.left_over and len(other.nodes) < len(best.nodes):
            best = other
    return best


def _largest(classes: Sequence[_Class], snapshot: Snapshot) -> set[str]:
    """Return the nodes that take most members, each class for itself: fewer nodes are rarely found among others."""
    names = set().union(*(one.nodes for one in classes))
    if len(names) <= _LOOKED_AT:
        return names
    return set(heapq.nlargest(_LOOKED_AT, names, key=lambda name: _takes(classes, name, snapshot)))


def _takes(classes: Sequence[_Class], name: str, snapshot: Snapshot) -> int:
    return sum(min(len(one.left), capacity_on(name, one.shape, snapshot)) for one in classes if name in one.nodes)


def _search(classes: list[_Class], trial: Trial, homes: Collection[str], needs: Needs) -> Packing | None:
    """Place what is needed in whichever way there is, and whoever else fits beside it; None where there is none."""
    way = find_way([Wanted(one.pod, one.left[0].role, len(one.left), one.nodes) for one in classes], trial, needs)
    if way is None:
        return None
    placements: list[Placement] = []
    for name, counts in way:
        for one, count in zip(classes, counts, strict=True):
            if count:
                trial.place(one.pod, name, count)
                placements += _seat(one, name, count, trial)
    rest = _fill_nodes(classes, trial, homes)
    return Packing((*placements, *rest.placements), rest.left_over, trial)


def _other_orders(
    classes: Sequence[_Class],
    members: Sequence[Member],
    snapshot: Snapshot,
    avoid: Collection[tuple[str, PodShape]],
    within: Collection[str] | None,
) -> Iterator[list[_Class]]:
    """Yield the hardest first, and then everybody confined to one domain of required affinity."""
    yield _hardest_first(classes)
    for domain in affinity_domains([member.occupant for member in members], snapshot):
        yield _classes(members, snapshot, avoid, domain if within is None else set(domain).intersection(within))


def _hardest_first(classes: Sequence[_Class]) -> list[_Class]:
    """Return them with all their members to place."""
    return sorted((one.again() for one in classes), key=lambda one: (len(one.nodes), -weight(one.shape)))


def _class_by_class(classes: list[_Class], trial: Trial, homes: Collection[str]) -> Packing:
    """Place one class after the other, and again those that found no room before the others were there."""
    placements: list[Placement] = []
    one_by_one = any(repels(one.pod) for one in classes)
    progress = True
    while progress:
        before = len(placements)
        for one in classes:
            if one_by_one or one.shape.relations is not None:
                for name in take_turns(one.pod, len(one.left), one.nodes, trial, homes):
                    placements += _seat(one, name, 1, trial)
            else:
                placements += _fill_nodes([one], trial, homes).placements
        progress = before < len(placements) and any(one.shape.relations is not None and one.left for one in classes)
    return Packing(tuple(placements), tuple(m for one in classes for m in one.left), trial)


def _seat(one: _Class, node: str, count: int, trial: Trial) -> list[Placement]:
    """Give the room that was taken last to the next members of the class."""
    seated, one.left = one.left[:count], one.left[count:]
    taken = trial.room(node).pods[-count:]
    return [Placement(node, m.shape, m.role, m.uid, m.tags, o.cards) for m, o in zip(seated, taken, strict=True)]


def weight(shape: PodShape) -> int:
    """Rank shapes by what is scarce first: devices and shares of cards, then everything else."""
    devices = sum(amount for name, amount in shape.requests if "/" in name)
    if isinstance(shape.cards, CardRequest):
        shares_milli = sum(need.count * max(need.core_milli, need.memory_milli) for need in shape.cards.needs)
        shares_bytes = sum(need.count * need.memory_bytes for need in shape.cards.needs)
    else:
        shares_milli, shares_bytes = devices * WHOLE_MILLI, 0
    rest = sum(amount for name, amount in shape.requests if "/" not in name)
    return ((shares_milli << 16) + devices << 64) + (shares_bytes << 16) + rest


def _classes(
    members: Sequence[Member],
    snapshot: Snapshot,
    avoid: Collection[tuple[str, PodShape]],
    within: Collection[str] | None = None,
) -> list[_Class]:
    keys = selecting_keys([member.occupant for member in members], snapshot)
    groups: dict[tuple[object, ...], list[Member]] = {}
    for member in sorted(members, key=_turn):
        seen = tuple(member.tags.labels.get(key) for key in keys)
        groups.setdefault((member.shape, member.role, seen), []).append(member)
    return [_Class(group, snapshot, avoid, within) for group in groups.values()]


def _turn(member: Member) -> tuple[bool, int]:
    """Leaders come first; large shares of cards before small ones, which fill the gaps."""
    return member.role not in LEADER_ROLES, -weight(member.shape) if member.shape.is_placed_by_us else 0


def _fill_nodes(classes: list[_Class], trial: Trial, homes: Collection[str]) -> Packing:
    placements: list[Placement] = []
    for name in _best_nodes(classes, trial, homes):
        for one, count in zip(classes, _share(classes, name, trial)[0], strict=True):
            if count:
                trial.place(one.pod, name, count)
                placements += _seat(one, name, count, trial)
    return Packing(tuple(placements), tuple(m for one in classes for m in one.left), trial)


def _best_nodes(classes: list[_Class], trial: Trial, homes: Collection[str]) -> Iterator[str]:
    """Yield the best node for what is left, again and again, until none takes any.

    A node's worth only falls while members are placed elsewhere, so only the heap's top needs a second look. Among
    equals those come first that are near siblings on the network.
    """
    topology = trial.topology
    steps, order, far = topology.steps_from(homes), topology.order, len(topology.levels)
    is_first = bool(order) and not homes

    demanding = [one for one in classes if asks_for_devices(one.shape)]

    def worth(name: str) -> _Worth:
        counts, cost = _share(classes, name, trial)
        total = sum(counts)
        needed = any(one.left for one in demanding)
        wasteful = not total or (not needed and has_devices(trial.room(name).node))
        strange = not total or name not in homes
        return (strange, wasteful, -total, cost, steps.get(name, far), order.get(name, 0), name)

    heap = [worth(name) for name in set().union(*(one.nodes for one in classes))]
    heapq.heapify(heap)
    while heap and heap[0][2] and any(one.left for one in classes):
        name = heap[0][-1]
        now = worth(name)
        if now == heap[0]:
            yield name
            if is_first and any(one.left for one in classes):  # the others go near it
                steps, is_first = topology.steps_from([name]), False
                heap = [(a, b, c, d, steps.get(node, far), place, node) for a, b, c, d, _, place, node in heap]
                heapq.heapify(heap)
                continue
            now = worth(name)
        heapq.heapreplace(heap, now)


def _share(classes: list[_Class], name: str, trial: Trial) -> tuple[list[int], int]:
    """How many of each class the node takes together, and what that costs it, less being better.

    That is whole cards, and then how many more of the last class it could have taken.
    """
    mark = trial.mark()
    counts = []
    spare, wear = 0, 0
    for one in classes:
        count = 0
        if one.left and name in one.nodes:
            capacity = trial.capacity(one.shape, name)
            count = min(capacity, len(one.left))
            spare = capacity - count
            if count and one.shape.cards is not None:
                wear += trial.wear(one.shape, name, count)
            if count and one is not classes[-1]:  # nobody looks after the last
                trial.place(one.pod, name, count)
        counts.append(count)
    trial.undo(mark)
    return counts, wear * _MOST_SPARE + spare
