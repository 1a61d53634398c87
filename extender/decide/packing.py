"""Which nodes for the members of one gang, all at once?

Members of equal shape and role are one class. Nodes are filled one after another, each with as many members as it
takes: nodes that hold siblings first, then the node that takes most, the tightest among equals. So a gang lands whole
on one node where one takes it, and workers land beside their parameter server, which is placed before them. Where that
strands a mixed gang, its hardest classes are placed first instead.

For a single class both orders find a placement whenever one exists; for several they may miss one.
"""

import heapq
from collections.abc import Collection, Iterator, Sequence

from msgspec import Struct

from extender.decide.fit import fit_static
from extender.decide.trial import Trial
from extender.model.pod import PodShape, PodUid
from extender.model.snapshot import Snapshot
from extender.model.verdict import Placement

LEADER_ROLES = frozenset({"ps", "master", "chief", "launcher"})
"""Roles that the other members talk to: the others are placed around them."""


class Member(Struct, frozen=True):
    """A member to place; `uid` and `name` are empty while it does not exist yet."""

    shape: PodShape
    role: str = ""
    uid: PodUid = ""
    name: str = ""


class Packing(Struct, frozen=True):
    """What could be placed, and on what: `left_over` found no node beside those placed on `trial`."""

    placements: tuple[Placement, ...]
    left_over: tuple[Member, ...]
    trial: Trial


class _Class:
    """Members of equal shape and role, with the nodes that can ever take them."""

    def __init__(self, members: list[Member], snapshot: Snapshot, avoid: Collection[tuple[str, PodShape]]) -> None:
        self.shape = members[0].shape
        self.left = members
        self.nodes = {
            name
            for name, room in snapshot.rooms.items()
            if (name, self.shape) not in avoid and not fit_static(self.shape, room.node)
        }


def pack_gang(
    members: Sequence[Member],
    snapshot: Snapshot,
    *,
    required: int,
    homes: Collection[str] = (),
    avoid: Collection[tuple[str, PodShape]] = (),
) -> Packing:
    """Place as many members as fit, leaders first; `required` is how many must, for the other order to be tried.

    `homes` are nodes that hold siblings already; `avoid` are nodes that must not be used for a shape.
    """
    side_by_side = _fill_nodes(_classes(members, snapshot, avoid), snapshot, homes)
    if len(side_by_side.placements) >= required:
        return side_by_side
    hardest_first = sorted(_classes(members, snapshot, avoid), key=lambda c: (len(c.nodes), -_weight(c.shape)))
    packing = Packing((), (), Trial(snapshot))
    for one in hardest_first:
        packing = _join(packing, _fill_nodes([one], snapshot, homes, packing.trial))
    return packing if len(packing.placements) >= required else side_by_side


def _join(first: Packing, second: Packing) -> Packing:
    return Packing(first.placements + second.placements, first.left_over + second.left_over, second.trial)


def _weight(shape: PodShape) -> int:
    """Rank shapes by what is scarce first: devices, then everything else."""
    devices = sum(amount for name, amount in shape.requests if "/" in name)
    return devices << 64 | sum(amount for name, amount in shape.requests if "/" not in name)


def _classes(members: Sequence[Member], snapshot: Snapshot, avoid: Collection[tuple[str, PodShape]]) -> list[_Class]:
    groups: dict[tuple[PodShape, str], list[Member]] = {}
    for member in sorted(members, key=lambda m: m.role not in LEADER_ROLES):
        groups.setdefault((member.shape, member.role), []).append(member)
    return [_Class(group, snapshot, avoid) for group in groups.values()]


def _fill_nodes(
    classes: list[_Class], snapshot: Snapshot, homes: Collection[str], trial: Trial | None = None
) -> Packing:
    trial = trial or Trial(snapshot)
    placements: list[Placement] = []
    for name in _best_nodes(classes, trial, homes):
        for one, count in zip(classes, _share(classes, name, trial)[0], strict=True):
            if count:
                trial.place(one.shape, name, count)
                placements += [Placement(name, m.shape, m.role, m.uid) for m in one.left[:count]]
                one.left = one.left[count:]
    return Packing(tuple(placements), tuple(m for one in classes for m in one.left), trial)


def _best_nodes(classes: list[_Class], trial: Trial, homes: Collection[str]) -> Iterator[str]:
    """Yield the best node for what is left, again and again, until none takes any.

    A node's worth only falls while members are placed elsewhere, so only the heap's top needs a second look.
    """

    def worth(name: str) -> tuple[bool, int, int, str]:
        counts, spare = _share(classes, name, trial)
        total = sum(counts)
        return (not total or name not in homes, -total, spare, name)

    heap = [worth(name) for name in set().union(*(one.nodes for one in classes))]
    heapq.heapify(heap)
    while heap and heap[0][1]:
        name = heap[0][3]
        now = worth(name)
        if now == heap[0]:
            yield name
            now = worth(name)
        heapq.heapreplace(heap, now)


def _share(classes: list[_Class], name: str, trial: Trial) -> tuple[list[int], int]:
    """How many of each class the node takes beside one another, and how many more of the last it could."""
    mark = trial.mark()
    counts = []
    spare = 0
    for one in classes:
        count = 0
        if one.left and name in one.nodes:
            capacity = trial.capacity(one.shape, name)
            count = min(capacity, len(one.left))
            spare = capacity - count
            if count:
                trial.place(one.shape, name, count)
        counts.append(count)
    trial.undo(mark)
    return counts, spare
