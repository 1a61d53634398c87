"""Which nodes for the members of one gang, all at once?

Members of equal shape and role are one class. Nodes are filled one after another, each with as many members as it
takes, in the order of `filling`: the node that takes most first. So a gang lands whole on one node where one takes it,
and workers land beside their parameter server, which is placed before them. Where that strands a mixed gang, its
hardest classes are placed first instead.

For a single class both orders find a placement whenever one exists. For several they may miss one, so that other ways
are searched for at last (`search`), which tries all of them for a small gang. Members that ask
something of the pods around them are placed one by one instead (`one_by_one`), class after class, at last within one
domain of their affinity; that may miss one, too.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence

import numpy as np
from msgspec import Struct

from extender.decide.alike import group_alike
from extender.decide.columns import Layout, Mask, columns_of
from extender.decide.filling import MemberClass, best_nodes
from extender.decide.leaders import LEADER_ROLES, NOWHERE, Homes
from extender.decide.one_by_one import affinity_domains, take_turns
from extender.decide.search import Needs, Wanted, find_way
from extender.decide.trial import Trial
from extender.model.device import WHOLE_MILLI, CardRequest
from extender.model.member import Member
from extender.model.node import repels
from extender.model.pod import PodShape
from extender.model.snapshot import Snapshot
from extender.model.verdict import Placement


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


FEW_NODES = 32
"""A gang on more nodes is not tried in other ways: one node less is little then, and a try takes long."""

_LOOKED_AT = 64
"""Nodes that another order may use beside those that the first one has used."""


def pack_gang(  # noqa: PLR0913 - a plan depends on all of this; by name
    members: Sequence[Member],
    snapshot: Snapshot,
    *,
    required: int,
    homes: Homes = NOWHERE,
    avoid: Collection[tuple[str, PodShape]] = (),
    role_minimums: Mapping[str, int] | None = None,
    within: Collection[str] | None = None,
) -> Packing:
    """Place as many members as fit, leaders first.

    Where they are fewer than `required`, or fewer of a role than its minimum, other orders and ways are tried.
    `homes` are nodes that hold siblings already; `avoid` are nodes that must not be used for a shape; no others than
    those in `within` are, if they are given.
    """
    classes = _classes(members, snapshot, avoid, within)
    related = any(one.shape.relations is not None for one in classes)
    fill = _class_by_class if related else _fill_nodes
    trial = Trial(snapshot)
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


def _on_fewer_nodes(first: Packing, classes: Sequence[MemberClass], snapshot: Snapshot, homes: Homes) -> Packing:
    """Return a packing of the same members on fewer nodes, where filling these in another order comes to one."""
    best = first
    if first.left_over or not 1 < len(first.nodes) <= FEW_NODES:
        return first
    layout = columns_of(snapshot).layout
    near = layout.mask(first.nodes) | _largest([one.again() for one in classes], layout)
    for order in (_hardest_first(classes), classes[::-1]):
        other = _fill_nodes([one.again(near) for one in order], Trial(snapshot), homes)
        if not other.left_over and len(other.nodes) < len(best.nodes):
            best = other
    return best


def _largest(classes: Sequence[MemberClass], layout: Layout) -> Mask:
    """Return the nodes that take most members, each class for itself: fewer nodes are rarely found among others."""
    together = np.sum([np.minimum(one.takes, len(one.left)) for one in classes], axis=0)[layout.order]
    mask = np.zeros(len(layout.names), np.bool_)
    mask[layout.order[np.argsort(-together, kind="stable")[:_LOOKED_AT]]] = True
    return mask


def _search(classes: list[MemberClass], trial: Trial, homes: Homes, needs: Needs) -> Packing | None:
    """Place what is needed in whichever way there is, and whoever else fits beside it; None where there is none."""
    way = find_way([Wanted(one.pod, one.left[0].role, len(one.left), one.nodes) for one in classes], trial, needs)
    if way is None:
        return None
    placements: list[Placement] = []
    for name, counts in way:
        placements += _fill(name, classes, counts, trial)
    rest = _fill_nodes(classes, trial, homes)
    return Packing((*placements, *rest.placements), rest.left_over, trial)


def _other_orders(
    classes: Sequence[MemberClass],
    members: Sequence[Member],
    snapshot: Snapshot,
    avoid: Collection[tuple[str, PodShape]],
    within: Collection[str] | None,
) -> Iterator[list[MemberClass]]:
    """Yield the hardest first, and then everybody confined to one domain of required affinity."""
    yield _hardest_first(classes)
    for domain in affinity_domains([member.occupant for member in members], snapshot):
        yield _classes(members, snapshot, avoid, domain if within is None else set(domain).intersection(within))


def _hardest_first(classes: Sequence[MemberClass]) -> list[MemberClass]:
    """Return them with all their members to place."""
    return sorted((one.again() for one in classes), key=lambda one: (one.node_count, -weight(one.shape)))


def _class_by_class(classes: list[MemberClass], trial: Trial, homes: Homes) -> Packing:
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


def _fill(node: str, classes: Sequence[MemberClass], counts: Sequence[int], trial: Trial) -> list[Placement]:
    """Place so many of each class on the node."""
    placements: list[Placement] = []
    for one, count in zip(classes, counts, strict=True):
        if count:
            trial.place(one.pod, node, count)
            placements += _seat(one, node, count, trial)
    return placements


def _seat(one: MemberClass, node: str, count: int, trial: Trial) -> list[Placement]:
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
) -> list[MemberClass]:
    mask = None if within is None else columns_of(snapshot).layout.mask(within)
    groups = sorted(group_alike(members, snapshot), key=lambda group: _turn(group[0]))
    return [MemberClass(group, snapshot, avoid, mask) for group in groups]


def _turn(member: Member) -> tuple[bool, int]:
    """Leaders come first; large shares of cards before small ones, which fill the gaps."""
    return member.role not in LEADER_ROLES, -weight(member.shape) if member.shape.is_placed_by_us else 0


def _fill_nodes(classes: list[MemberClass], trial: Trial, homes: Homes) -> Packing:
    placements: list[Placement] = []
    for name, counts in best_nodes(classes, trial, homes):
        placements += _fill(name, classes, counts, trial)
    return Packing(tuple(placements), tuple(m for one in classes for m in one.left), trial)
