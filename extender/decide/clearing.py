"""Which pods would have to go for a gang to have room?

Those that may go have a price: the dearest that must go is as cheap as can be, then those nodes are cleared that give
most room for the fewest pods, and of their pods all stay that can. Whether the whole gang fits is asked of the planner
itself, so that roles, minimums and affinity count as they do in any plan. Of few nodes, more than one choice is tried;
one of them by QuickXplain (Junker 2004): of a set that suffices it finds a part from which nothing can be left out,
what is cheap preferred, in few questions. Upstream counterpart: the reprieve of kube-scheduler's default preemption,
for one pod on one node.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias

from msgspec import Struct, structs

from extender.decide.columns import columns_of
from extender.decide.fit import fit_room, fits_back
from extender.decide.node_prices import Candidate, dearest_first, orders_of_nodes
from extender.decide.room import nodes_with_room
from extender.decide.trial import Trial
from extender.model.pod import Pod, PodShape
from extender.model.snapshot import Snapshot
from extender.model.verdict import Placement

Fits: TypeAlias = Callable[[Snapshot], Sequence[Placement] | None]
"""Where the members go on a snapshot; None where not enough of them find room."""

ByNode: TypeAlias = Mapping[str, Sequence[Candidate]]

TRIED_NODES = 16
"""Of so many nodes more than one choice is tried, at some hundred questions. A gang that needs more of them mostly
fills whole nodes, which differ little."""

QUESTIONS = 64
"""So many pods the whole plan is asked about one by one; of more only the room beside the members is looked at."""


class Clearance(Struct, frozen=True):
    """Once the pods in `leaving` are gone, the members fit where `placements` say."""

    placements: tuple[Placement, ...]
    leaving: tuple[Pod, ...] = ()


def clear_room(
    fits: Fits, snapshot: Snapshot, candidates: Sequence[Candidate], shapes: Sequence[PodShape]
) -> Clearance | None:
    """Return as few and as cheap pods as possible without which the members fit; None where they never do.

    `shapes` are those of all who must find room, one for each.
    """
    search = _Search(fits, snapshot, candidates, shapes)
    if not search.suffice(candidates):
        return None

    # 1. How dear is the dearest that must go?
    levels = [(), *sorted({each.price for each in candidates})]
    lowest, highest = 0, len(levels) - 1
    while lowest < highest:
        middle = (lowest + highest) // 2
        if search.suffice([each for each in candidates if each.price <= levels[middle]]):
            highest = middle
        else:
            lowest = middle + 1
    by_node: dict[str, list[Candidate]] = {}
    for each in candidates:
        if each.price <= levels[highest]:
            by_node.setdefault(each.pod.node_name, []).append(each)

    # 2. Which nodes must be cleared of the others? The cheapest, as few as suffice.
    orders = orders_of_nodes(by_node, snapshot, shapes)
    count = search.shortest(orders[0], by_node)
    choices = [orders[0][:count]]
    if count <= TRIED_NODES:
        near = set(orders[0][: 2 * count])
        choices = [search.fewest([name for name in order if name in near], by_node) for order in orders]
        choices.append([name for name in orders[0] if name in near])

    # 3. Which of the pods there may stay?
    tried = [search.reprieve(_on(names, by_node)) for names in dict.fromkeys(map(tuple, choices))]
    return min((each for each in tried if each), key=lambda clearance: len(clearance.leaving), default=None)


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


class _Search:
    """Questions about which of the candidates go."""

    def __init__(
        self, fits: Fits, snapshot: Snapshot, candidates: Sequence[Candidate], shapes: Sequence[PodShape]
    ) -> None:
        self._fits = fits
        self._snapshot = snapshot
        everybody = {*shapes, *(each.pod.shape for each in candidates)}
        self._related = bool(columns_of(snapshot).repelling) or any(shape.relations is not None for shape in everybody)
        free = set().union(*(nodes_with_room(shape, snapshot) for shape in set(shapes)))
        self._rooms = dict(snapshot.rooms) if self._related else {name: snapshot.rooms[name] for name in free}
        """Without relations, only nodes with room matter beside those from which somebody goes."""

    def suffice(self, leaving: Sequence[Candidate]) -> bool:
        """Whether the members fit once these have gone."""
        return self._fits(self._after(leaving)) is not None

    def shortest(self, order: Sequence[str], by_node: ByNode) -> int:
        """Return how many of the first nodes must be cleared for the members to fit."""
        low, high = 0, 1
        while high < len(order) and not self.suffice(_on(order[:high], by_node)):
            low, high = high, 2 * high
        high = min(high, len(order))
        while low + 1 < high:
            middle = (low + high) // 2
            low, high = (low, middle) if self.suffice(_on(order[:middle], by_node)) else (middle, high)
        return high

    def fewest(self, options: Sequence[str], by_node: ByNode, given: tuple[str, ...] = ()) -> list[str]:
        """Return options from which none can be left out, to suffice beside those given; the first are preferred."""
        if not options or self.suffice(_on(given, by_node)):
            return []
        if len(options) == 1:
            return list(options)
        cheap, dear = options[: len(options) // 2], options[len(options) // 2 :]
        needed_dear = self.fewest(dear, by_node, (*given, *cheap))
        return self.fewest(cheap, by_node, (*given, *needed_dear)) + needed_dear

    def reprieve(self, candidates: Sequence[Candidate]) -> Clearance | None:
        """Let those of the candidates stay, the dearest first, beside which the members still fit."""
        leaving = dearest_first(candidates)
        placements = self._fits(self._after(leaving))
        if placements is None:  # the planner is no oracle for mixed shapes: it may miss with more room what it found
            return None
        if len(leaving) > QUESTIONS and not self._related:
            leaving = self._without_room(leaving, placements)
        for each in leaving[:QUESTIONS]:
            rest = [other for other in leaving if other is not each]
            again = self._fits(self._after(rest, candidates))
            if again is not None:
                leaving, placements = rest, again
        return Clearance(tuple(placements), tuple(each.pod for each in leaving))

    def _after(self, leaving: Sequence[Candidate], among: Sequence[Candidate] = ()) -> Snapshot:
        """Return the nodes that matter, those of `among` with them, when those pods have gone."""
        names = {each.pod.node_name for each in (*leaving, *among)}
        trial = Trial(
            structs.replace(self._snapshot, rooms=self._rooms | {name: self._snapshot.rooms[name] for name in names})
        )
        for each in leaving:
            trial.evict(each.pod.occupant, each.pod.node_name)
        return trial.as_snapshot()

    def _without_room(self, leaving: Sequence[Candidate], placements: Sequence[Placement]) -> list[Candidate]:
        """Return those for which there is no room beside the members where these are now."""
        trial = Trial(self._after(leaving))
        for placement in placements:
            trial.place(placement.occupant, placement.node)
        stuck = []
        for each in leaving:
            if not fits_back(each.pod.occupant, trial.room(each.pod.node_name)):
                stuck.append(each)
            else:
                trial.put_back(each.pod.occupant, each.pod.node_name)
        return stuck


def _on(names: Iterable[str], by_node: ByNode) -> list[Candidate]:
    return [each for name in names for each in by_node[name]]
