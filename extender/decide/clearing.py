"""Which pods would have to go for a gang to have room?

Those that may go have a price: the dearest that must go is as cheap as can be, then those nodes are cleared that give
most room for the fewest pods, and of their pods all stay that can. Whether the whole gang fits is asked of the planner
itself, so that roles, minimums and affinity count as they do in any plan. The nodes are chosen by QuickXplain (Junker
2004): of a set that suffices it finds a part from which nothing can be left out, what is cheap preferred, in few
questions. Upstream counterpart: the reprieve of kube-scheduler's default preemption, for one pod on one node.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

from msgspec import Struct, structs

from extender.decide.fit import fit_room, fit_static
from extender.decide.packing import weight
from extender.decide.trial import Trial
from extender.model.node import NodeRoom
from extender.model.pod import Pod, PodShape
from extender.model.snapshot import Snapshot
from extender.model.verdict import Placement

Fits: TypeAlias = Callable[[Snapshot], Sequence[Placement] | None]
"""Where the members go on a snapshot; None where not enough of them find room."""

QUESTIONS = 64
"""So many pods the whole plan is asked about one by one: on the largest clusters a plan takes some milliseconds, and
kube-scheduler waits. More pods than these go for gangs that fill whole nodes, where none of them could stay."""


class Candidate(Struct, frozen=True):
    """A pod on a node of the snapshot that may go; of two prices, what sorts first is cheaper."""

    price: tuple[int, ...]
    pod: Pod


class Clearance(Struct, frozen=True):
    """Once the pods in `leaving` are gone, the members fit where `placements` say."""

    placements: tuple[Placement, ...]
    leaving: tuple[Pod, ...] = ()


def clear_room(
    fits: Fits, snapshot: Snapshot, candidates: Sequence[Candidate], shapes: Sequence[PodShape]
) -> Clearance | None:
    """Return as few and as cheap pods as possible without which the members fit; None where they never do.

    `shapes` are those of the members, one for each.
    """
    if fits(_without(candidates, snapshot)) is None:
        return None

    # 1. How dear is the dearest that must go?
    levels = [(), *sorted({each.price for each in candidates})]
    lowest, highest = 0, len(levels) - 1
    while lowest < highest:
        middle = (lowest + highest) // 2
        if fits(_without([each for each in candidates if each.price <= levels[middle]], snapshot)) is None:
            lowest = middle + 1
        else:
            highest = middle
    by_node: dict[str, list[Candidate]] = {}
    for each in candidates:
        if each.price <= levels[highest]:
            by_node.setdefault(each.pod.node_name, []).append(each)

    # 2. Which nodes must be cleared of the others?
    cleared = {name: _without(here, snapshot).rooms[name] for name, here in by_node.items()}
    need = _find_need(shapes, snapshot)
    nodes = sorted(by_node, key=lambda name: _price_of_node(by_node[name], snapshot.rooms[name], need))

    def suffices(names: frozenset[str]) -> bool:
        rooms = {**snapshot.rooms, **{name: cleared[name] for name in names}}
        return fits(structs.replace(snapshot, rooms=rooms)) is not None

    chosen = _fewest(suffices, frozenset(), nodes)

    # 3. Which of the pods there may stay?
    return _reprieve(fits, snapshot, [each for name in chosen for each in by_node[name]])


def split_by_member(clearance: Clearance, snapshot: Snapshot) -> list[tuple[Placement, tuple[Pod, ...]]]:
    """Return for each placement the pods that must go for it once those before it are placed; each pod once."""
    trial = Trial(snapshot)
    going: dict[str, list[Pod]] = {}
    for pod in clearance.leaving:
        going.setdefault(pod.node_name, []).append(pod)
    last_on = {placement.node: placement for placement in clearance.placements}
    parts: list[tuple[Placement, tuple[Pod, ...]]] = []
    for placement in clearance.placements:
        mine: list[Pod] = []
        here = going.get(placement.node, [])
        while here and (placement is last_on[placement.node] or fit_room(placement.shape, trial.room(placement.node))):
            mine.append(here.pop())
            trial.evict(mine[-1].occupant, placement.node)
        trial.place(placement.occupant, placement.node)
        parts.append((placement, tuple(mine)))
    return parts


def _without(candidates: Iterable[Candidate], snapshot: Snapshot) -> Snapshot:
    trial = Trial(snapshot)
    for each in candidates:
        trial.evict(each.pod.occupant, each.pod.node_name)
    return trial.as_snapshot()


class _Need(Struct, frozen=True):
    """How many more of the most frequent shape must find room."""

    shape: PodShape
    count: int


def _find_need(shapes: Sequence[PodShape], snapshot: Snapshot) -> _Need:
    shape, count = Counter(shapes).most_common(1)[0]
    trial = Trial(snapshot)
    free = sum(trial.capacity(shape, name) for name, room in snapshot.rooms.items() if not fit_static(shape, room.node))
    return _Need(shape, max(1, count - free))


def _price_of_node(
    candidates: Sequence[Candidate], room: NodeRoom, need: _Need
) -> tuple[bool, tuple[int, ...], float, int, str]:
    """Compare nodes by the dearest pod that must go, then how many go for each member that finds room, then their size.

    What sorts first is cheaper; last come nodes on which nobody's going helps.
    """
    name = room.node.name
    here = Snapshot(0, {name: room})
    trial = Trial(_without(candidates, here))
    before = Trial(here).capacity(need.shape, name)
    target = min(trial.capacity(need.shape, name), before + need.count)
    if before >= target:
        return (True, (), 0.0, 0, name)
    must_go = []
    for each in _dearest_first(candidates):
        mark = trial.mark()
        trial.place(each.pod.occupant, name)
        if trial.capacity(need.shape, name) < target:
            trial.undo(mark)
            must_go.append(each)
    size = sum(weight(each.pod.shape) for each in must_go)
    return (False, max(each.price for each in must_go), len(must_go) / (target - before), size, name)


def _dearest_first(candidates: Iterable[Candidate]) -> list[Candidate]:
    """Order them by price; of those that cost the same the small ones come first, so that few stay to go."""
    return sorted(candidates, key=lambda each: ([-part for part in each.price], weight(each.pod.shape)))


def _fewest(suffices: Callable[[frozenset[str]], bool], given: frozenset[str], options: Sequence[str]) -> list[str]:
    """Return options from which none can be left out for them to suffice beside those given; the first preferred."""
    if not options or suffices(given):
        return []
    if len(options) == 1:
        return list(options)
    cheap, dear = options[: len(options) // 2], options[len(options) // 2 :]
    needed_dear = _fewest(suffices, given.union(cheap), dear)
    needed_cheap = _fewest(suffices, given.union(needed_dear), cheap)
    return needed_cheap + needed_dear


def _reprieve(fits: Fits, snapshot: Snapshot, candidates: Sequence[Candidate]) -> Clearance | None:
    """Let those pods stay, the dearest first, beside which the members still fit."""
    placements = fits(_without(candidates, snapshot))
    if placements is None:  # for members of several shapes the planner may miss with more room what it found with less
        return None
    leaving = _without_room(candidates, placements, snapshot)
    for each in leaving[:QUESTIONS]:
        rest = [other for other in leaving if other is not each]
        again = fits(_without(rest, snapshot))
        if again is not None:
            leaving, placements = rest, again
    return Clearance(tuple(placements), tuple(each.pod for each in leaving))


def _without_room(
    candidates: Sequence[Candidate], placements: Sequence[Placement], snapshot: Snapshot
) -> list[Candidate]:
    """Return those for which there is no room beside the members where these are now, the dearest first."""
    leaving = _dearest_first(candidates)
    trial = Trial(_without(candidates, snapshot))
    shapes = {placement.shape for placement in placements} | {each.pod.shape for each in candidates}
    if snapshot.repelling or any(shape.relations is not None for shape in shapes):
        return leaving  # room is not all that counts
    for placement in placements:
        trial.place(placement.occupant, placement.node)
    for each in tuple(leaving):
        if not fit_room(each.pod.shape, trial.room(each.pod.node_name)):
            trial.place(each.pod.occupant, each.pod.node_name)
            leaving.remove(each)
    return leaving
