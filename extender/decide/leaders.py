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

from extender.decide.columns import columns_of
from extender.decide.draft import Batch, put, squads_of
from extender.decide.trial import Trial
from extender.model.pod import PodShape
from extender.model.snapshot import Snapshot

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
    mover: Batch
    target: str
    other: Batch | None


def homes_of(seats: Iterable[tuple[str, str]], beside: Homes = NOWHERE) -> Homes:
    """Return the nodes of members, who come as role and node, beside those known already."""
    homes = dict(beside)
    for role, node in seats:
        homes[node] = homes.get(node, False) or role in LEADER_ROLES
    return homes


def bring_together(
    batches: Sequence[Batch], snapshot: Snapshot, avoid: Collection[tuple[str, PodShape]] = ()
) -> Sequence[Batch]:
    """Return the batches, which are not on the snapshot, with as many workers beside leaders as such steps achieve.

    `avoid` are nodes that must not be used for a shape.
    """
    if not 1 < len({each.node for each in batches}) <= _NODES:
        return batches
    squads = squads_of(batches)
    related = columns_of(snapshot).repelling or any(each.shape.relations is not None for each in squads)
    if related or len({each.role in LEADER_ROLES for each in squads}) < 2:
        return batches
    trial, seated = Trial(snapshot), list(batches)
    put(seated, trial)
    for _ in range(_STEPS):
        if not any(_take(step, seated, trial, avoid) for step in _steps(seated)):
            break
    return seated


def count_apart(batches: Sequence[Batch]) -> int:
    """Return how many pairs of a leader and a worker are on two nodes."""
    if not any(squad.role in LEADER_ROLES for squad in squads_of(batches)):
        return 0
    leaders, workers = _by_node(batches)
    return leaders.total() * workers.total() - sum([count * workers[node] for node, count in leaders.items()])


def _by_node(batches: Sequence[Batch]) -> tuple[Counter[str], Counter[str]]:
    """Return how many leaders and how many workers are on each node."""
    leaders, workers = Counter[str](), Counter[str]()
    for each in batches:
        (leaders if _leads(each) else workers)[each.node] += each.count
    return leaders, workers


def _steps(seated: Sequence[Batch]) -> list[_Step]:
    """Return the steps that would bring pairs together, the best first."""
    leaders, workers = _by_node(seated)
    kinds: dict[str, dict[object, Batch]] = {}
    for each in seated:
        kinds.setdefault(each.node, {}).setdefault(each.squad.kind, each)
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


def _take(step: _Step, seated: list[Batch], trial: Trial, avoid: Collection[tuple[str, PodShape]]) -> bool:
    """Take the step on the trial and in the list, if there is room; whether it was taken."""
    mark = trial.mark()
    here = step.mover.node
    moves = [(step.mover, step.target), *([(step.other, here)] if step.other else [])]
    for batch, _ in moves:
        trial.evict(batch.occupant, batch.node)
    moved = []
    for batch, node in moves:
        pod = batch.squad.occupant
        if (node, pod.shape) in avoid or trial.fit(pod, node):
            trial.undo(mark)
            return False
        trial.place(pod, node)
        cards = trial.room(node).pods[-1].cards
        moved.append(Batch(node, batch.squad, 1, (cards,) if cards else ()))
    for (batch, _), after in zip(moves, moved, strict=True):
        place = next(number for number, each in enumerate(seated) if each is batch)
        seated[place : place + 1] = [after, *([batch.split(1)[1]] if batch.count > 1 else [])]
    return True


def _leads(batch: Batch) -> bool:
    return batch.squad.role in LEADER_ROLES
