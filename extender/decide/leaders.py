"""Do the workers sit beside a leader that they talk to?

Filling nodes one after the other puts all parameter servers on the first of them. Where the gang needs several nodes,
each worker then has all servers far from it, but those on the first. So members change places, or move over where there
is room, as long as that brings more pairs of worker and leader together; no further node is used for it. Upstream
counterpart: none; DRAGON places one parameter server only.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import permutations
from typing import Final, NamedTuple, TypeAlias

from msgspec import structs

from extender.decide.trial import Trial
from extender.model.pod import Occupant, PodShape
from extender.model.snapshot import Snapshot
from extender.model.verdict import Placement

LEADER_ROLES: Final = frozenset({"ps", "master", "chief", "launcher"})
"""Roles that the other members talk to: the others are placed around them."""

Homes: TypeAlias = Mapping[str, bool]
"""The nodes that hold siblings, each with whether a leader is among them."""

NOWHERE: Final[Homes] = {}

_NODES = 32
"""On more nodes most pairs are apart whatever is done, and every pair of nodes is looked at."""

_STEPS = 64
"""Each brings at least one pair together; a gang has seldom more than a handful of leaders to move."""


class _Step(NamedTuple):
    """One of `mover` goes to `target`, and one of `other` comes from there in its place, if one has to."""

    gain: int
    mover: Placement
    target: str
    other: Placement | None


def homes_of(seats: Iterable[tuple[str, str]], beside: Homes = NOWHERE) -> Homes:
    """Return the nodes of members, who come as role and node, beside those known already."""
    homes = dict(beside)
    for role, node in seats:
        homes[node] = homes.get(node, False) or role in LEADER_ROLES
    return homes


def bring_together(
    placements: Sequence[Placement], snapshot: Snapshot, avoid: Collection[tuple[str, PodShape]] = ()
) -> tuple[Placement, ...]:
    """Return the placements, which are not on the snapshot, with as many workers beside leaders as such steps achieve.

    `avoid` are nodes that must not be used for a shape.
    """
    related = snapshot.repelling or any(each.shape.relations is not None for each in placements)
    few = 1 < len({each.node for each in placements}) <= _NODES
    if related or not few or len(set(map(_leads, placements))) < 2:
        return tuple(placements)
    trial, seated = Trial(snapshot), list(placements)
    for each in seated:
        trial.place(each.occupant, each.node)
    for _ in range(_STEPS):
        if not any(_take(step, seated, trial, avoid) for step in _steps(seated)):
            break
    return tuple(seated)


def count_apart(placements: Sequence[Placement]) -> int:
    """Return how many pairs of a leader and a worker are on two nodes."""
    leaders, workers = _by_node(placements)
    return leaders.total() * workers.total() - sum(leaders[node] * workers[node] for node in leaders)


def _by_node(placements: Sequence[Placement]) -> tuple[Counter[str], Counter[str]]:
    """Return how many leaders and how many workers are on each node."""
    leaders = Counter(each.node for each in placements if _leads(each))
    return leaders, Counter(each.node for each in placements if not _leads(each))


def _steps(seated: Sequence[Placement]) -> list[_Step]:
    """Return the steps that would bring pairs together, the best first."""
    leaders, workers = _by_node(seated)
    kinds: dict[str, dict[object, Placement]] = {}
    for each in seated:
        kinds.setdefault(each.node, {}).setdefault((each.shape, each.role), each)
    steps = []
    for here, target in permutations(sorted(kinds), 2):
        to_leader, to_worker = workers[target] - workers[here], leaders[target] - leaders[here]
        for mover in kinds[here].values():
            gain = to_leader if _leads(mover) else to_worker
            steps.append(_Step(gain, mover, target, None))
            others = [each for each in kinds[target].values() if _leads(mover) and not _leads(each)]
            steps += [_Step(to_leader - to_worker - 2, mover, target, other) for other in others]
    return sorted((step for step in steps if step.gain > 0), key=_order)


def _order(step: _Step) -> tuple[int, str, str, bool]:
    return -step.gain, step.mover.node, step.target, step.other is not None


def _take(step: _Step, seated: list[Placement], trial: Trial, avoid: Collection[tuple[str, PodShape]]) -> bool:
    """Take the step on the trial and in the list, if there is room; whether it was taken."""
    mark = trial.mark()
    here = step.mover.node
    moves = [(step.mover, step.target), *([(step.other, here)] if step.other else [])]
    for placement, _ in moves:
        trial.evict(placement.occupant, placement.node)
    moved = []
    for placement, node in moves:
        if (node, placement.shape) in avoid or trial.fit(Occupant(placement.shape, placement.tags), node):
            trial.undo(mark)
            return False
        moved.append(trial.seat(structs.replace(placement, node=node)))
    for (placement, _), after in zip(moves, moved, strict=True):
        seated[seated.index(placement)] = after
    return True


def _leads(placement: Placement) -> bool:
    return placement.role in LEADER_ROLES
