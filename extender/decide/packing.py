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
from functools import cached_property

import numpy as np

from extender.decide.columns import Layout, Mask, columns_of
from extender.decide.draft import Batch, Draft, put
from extender.decide.filling import MemberClass, fill_best, place_on
from extender.decide.leaders import LEADER_ROLES, NOWHERE, Homes
from extender.decide.one_by_one import affinity_domains, take_turns
from extender.decide.search import Needs, Wanted, find_way
from extender.decide.trial import Trial
from extender.model.device import WHOLE_MILLI, CardRequest
from extender.model.member import AnyMember, Squad
from extender.model.node import repels
from extender.model.pod import PodShape
from extender.model.snapshot import Snapshot


class Packing(Draft, frozen=True):
    """What could be placed, and of which squads the last so many found no node beside those."""

    rest: tuple[tuple[Squad, int], ...]
    ground: Trial
    """The nodes, with nothing of it placed yet."""

    @cached_property
    def trial(self) -> Trial:
        """The nodes with all of it placed."""
        put(self.batches, self.ground)
        return self.ground

    @property
    def left_over(self) -> list[AnyMember]:
        """Those who found no node."""
        return [member for squad, left in self.rest for member in squad.members[-left:]]

    def is_enough(self, needs: Needs) -> bool:
        """Whether as many could be placed as are needed."""
        roles: Counter[str] = Counter()
        for batch in self.batches if needs.role_minimums else ():
            roles[batch.squad.role] += batch.count
        enough_of_each = all(roles[role] >= least for role, least in needs.role_minimums.items())
        return enough_of_each and self.size >= needs.required


FEW_NODES = 32
"""A gang on more nodes is not tried in other ways: one node less is little then, and a try takes long."""

_LOOKED_AT = 64
"""Nodes that another order may use beside those that the first one has used."""


def pack_gang(  # noqa: PLR0913 - a plan depends on all of this; by name
    squads: Sequence[Squad],
    snapshot: Snapshot,
    *,
    required: int,
    homes: Homes = NOWHERE,
    avoid: Collection[tuple[str, PodShape]] = (),
    role_minimums: Mapping[str, int] | None = None,
    within: Mask | None = None,
) -> Packing:
    """Place as many members as fit, leaders first.

    Where they are fewer than `required`, or fewer of a role than its minimum, other orders and ways are tried.
    `homes` are nodes that hold siblings already; `avoid` are nodes that must not be used for a shape; no others than
    those in `within` are, if they are given.
    """
    if not squads:
        return Packing((), (), Trial(snapshot))
    classes = _classes(squads, snapshot, avoid, within)
    related = any(one.shape.relations is not None for one in classes)
    fill = _class_by_class if related else _fill_nodes
    trial = Trial(snapshot)
    first = fill(classes, trial, homes)
    needs = Needs(required, role_minimums or {})
    if len(classes) == 1:
        return first
    if first.is_enough(needs):
        return first if related else _on_fewer_nodes(first, classes, snapshot, homes)
    for other in _other_orders(classes, squads, snapshot, avoid, within):
        packing = _class_by_class(other, trial, homes)
        if packing.is_enough(needs):
            return packing
    found = None if related else _search(_hardest_first(classes), trial, homes, needs)
    return found or first


def _on_fewer_nodes(first: Packing, classes: Sequence[MemberClass], snapshot: Snapshot, homes: Homes) -> Packing:
    """Return a packing of the same members on fewer nodes, where filling these in another order comes to one."""
    best = first
    if first.rest or not 1 < len(first.nodes) <= FEW_NODES:
        return first
    layout = columns_of(snapshot).layout
    near = layout.mask(first.nodes) | _largest([one.again() for one in classes], layout)
    for order in (_hardest_first(classes), classes[::-1]):
        other = _fill_nodes([one.again(near) for one in order], Trial(snapshot), homes)
        if not other.rest and len(other.nodes) < len(best.nodes):
            best = other
    return best


def _largest(classes: Sequence[MemberClass], layout: Layout) -> Mask:
    """Return the nodes that take most members, each class for itself: fewer nodes are rarely found among others."""
    together = np.sum([np.minimum(one.takes, one.left) for one in classes], axis=0)[layout.order]
    mask = np.zeros(len(layout.names), np.bool_)
    mask[layout.order[np.argsort(-together, kind="stable")[:_LOOKED_AT]]] = True
    return mask


def _search(classes: list[MemberClass], trial: Trial, homes: Homes, needs: Needs) -> Packing | None:
    """Place what is needed in whichever way there is, and whoever else fits beside it; None where there is none."""
    way = find_way([Wanted(one.pod, one.squad.role, one.left, one.nodes) for one in classes], trial, needs)
    if way is None:
        return None
    batches = [batch for name, counts in way for batch in place_on(name, counts, classes, trial)]
    batches += fill_best(classes, trial, homes)
    return _packed(batches, classes, trial)


def _other_orders(
    classes: Sequence[MemberClass],
    squads: Sequence[Squad],
    snapshot: Snapshot,
    avoid: Collection[tuple[str, PodShape]],
    within: Mask | None,
) -> Iterator[list[MemberClass]]:
    """Yield the hardest first, and then everybody confined to one domain of required affinity."""
    yield _hardest_first(classes)
    layout = columns_of(snapshot).layout
    for names in affinity_domains([squad.shape for squad in squads], snapshot):
        domain = layout.mask(names)
        yield _classes(squads, snapshot, avoid, domain if within is None else domain & within)


def _hardest_first(classes: Sequence[MemberClass]) -> list[MemberClass]:
    """Return them with all their members to place."""
    return sorted((one.again() for one in classes), key=lambda one: (one.node_count, -weight(one.shape)))


def _class_by_class(classes: list[MemberClass], trial: Trial, homes: Homes) -> Packing:
    """Place one class after the other, and again those that found no room before the others were there."""
    batches: list[Batch] = []
    one_by_one = any(repels(one.pod) for one in classes)
    progress = True
    while progress:
        before = len(batches)
        for one in classes:
            if one_by_one or one.shape.relations is not None:
                turns = take_turns(one.pod, one.left, one.nodes, trial, homes)
                batches += [one.seat(name, 1, trial) for name in turns]
            else:
                filled = fill_best([one], trial, homes)
                put(filled, trial)
                batches += filled
        progress = before < len(batches) and any(one.shape.relations is not None and one.left for one in classes)
    return _packed(batches, classes, trial)


def _fill_nodes(classes: list[MemberClass], trial: Trial, homes: Homes) -> Packing:
    return _packed(fill_best(classes, trial, homes), classes, trial)


def _packed(batches: Sequence[Batch], classes: Sequence[MemberClass], trial: Trial) -> Packing:
    """Say what was placed, and who was not; the trial is as it was before."""
    trial.undo(0)
    return Packing(tuple(batches), tuple((one.squad, one.left) for one in classes if one.left), trial)


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
    squads: Sequence[Squad], snapshot: Snapshot, avoid: Collection[tuple[str, PodShape]], within: Mask | None
) -> list[MemberClass]:
    return [MemberClass(squad, snapshot, avoid, within) for squad in sorted(squads, key=_turn)]


def _turn(squad: Squad) -> tuple[bool, int]:
    """Leaders come first; large shares of cards before small ones, which fill the gaps."""
    return squad.role not in LEADER_ROLES, -weight(squad.shape) if squad.shape.is_placed_by_us else 0
