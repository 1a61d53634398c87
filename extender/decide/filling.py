"""Which node is filled next with what is left of a gang?

One that holds siblings, and a leader among them before the others; one whose devices are not wasted on members that
need none; the one that takes most, at the least cost in whole cards (`wear`), and then the tightest; among equals one
near siblings on the network. All nodes are asked at once, and as many are filled at a time as stay the best ones.
"""

from collections.abc import Collection, Sequence
from copy import copy
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from extender.decide.columns import MOST, Column, Mask, columns_of
from extender.decide.draft import Batch
from extender.decide.leaders import Homes
from extender.decide.room import capacities
from extender.decide.trial import Trial
from extender.model.member import Squad
from extender.model.pod import PodShape
from extender.model.snapshot import Snapshot


class MemberClass:
    """A squad of which so many are `left` to be placed; `takes` so many does each node, by row."""

    def __init__(
        self,
        squad: Squad,
        snapshot: Snapshot,
        avoid: Collection[tuple[str, PodShape]] = (),
        within: Mask | None = None,
    ) -> None:
        self.squad = squad
        self.shape = squad.shape
        self.pod = squad.occupant
        self.left = len(squad.members)
        self._layout = columns_of(snapshot).layout
        self.takes = capacities(self.shape, snapshot)
        if within is not None:
            self.takes = self.takes * within
        if avoid:
            self.takes = self.takes * ~self._layout.mask(name for name, shape in avoid if shape == self.shape)
        near = Trial(snapshot).neighbourhood(self.pod) if self.shape.relations is None else None
        if near:
            kept_off = [name for name in self.nodes if near.why_not(snapshot.rooms[name].node)]
            self.takes = self.takes * ~self._layout.mask(kept_off)

    @property
    def nodes(self) -> list[str]:
        """The nodes that take any of them."""
        return self._layout.names_of(self.takes > 0)

    @property
    def node_count(self) -> int:
        """How many these are."""
        return int(np.count_nonzero(self.takes))

    def again(self, within: Mask | None = None) -> "MemberClass":
        """Return it with all its members to place, on these nodes only if any are given."""
        other = copy(self)
        other.left = len(self.squad.members)
        if within is not None:
            other.takes = self.takes * within
        return other

    def seat(self, node: str, count: int, trial: Trial) -> Batch:
        """Give the room that was taken last on the trial to the next members."""
        self.left -= count
        cards = tuple([pod.cards for pod in trial.room(node).pods[-count:]]) if self.shape.cards is not None else ()
        return Batch(node, self.squad, count, cards if any(cards) else ())


class _Offers(NamedTuple):
    """What each node would take now, by class and row; what that costs it; and where nodes were asked one by one."""

    counts: Column
    wear: Column
    spare: Column
    asked: Mask


def fill_best(classes: Sequence[MemberClass], trial: Trial, homes: Homes) -> list[Batch]:
    """Fill the best node with as many of each class as it takes, again and again until none takes any.

    They are taken off what is left, and are not on the trial afterwards. `homes` are nodes that hold siblings; where
    there are none, the others go near the first.
    """
    mark, near = trial.mark(), homes
    taken: dict[str, Column] = {}
    batches: list[Batch] = []
    while any(one.left for one in classes):
        offers = _offers(classes, trial, taken)
        rows = _still_best(_ranked(offers, classes, trial, homes, near), offers, classes)
        if not len(rows):
            break
        if not near:
            rows = rows[:1]
            near = {columns_of(trial.snapshot).layout.names[rows[0]]: False}
        batches += _fill(rows, offers, classes, trial)
        _take(rows, offers, classes, taken)
    trial.undo(mark)
    return batches


def place_on(name: str, counts: Sequence[int], classes: Sequence[MemberClass], trial: Trial) -> list[Batch]:
    """Place so many of each class on the node and on the trial."""
    batches = []
    for one, count in zip(classes, counts, strict=True):
        if count:
            trial.place(one.pod, name, count)
            batches.append(one.seat(name, count, trial))
    return batches


def _fill(rows: NDArray[np.intp], offers: _Offers, classes: Sequence[MemberClass], trial: Trial) -> list[Batch]:
    """Take what these nodes offer; on the trial only where they will be asked again."""
    names = columns_of(trial.snapshot).layout.names
    batches: list[Batch] = []
    by_row = zip(rows.tolist(), offers.counts[:, rows].T.tolist(), offers.asked[rows].tolist(), strict=True)
    for row, counts, asked in by_row:
        if asked:
            batches += place_on(names[row], counts, classes, trial)
            continue
        for one, count in zip(classes, counts, strict=True):
            if count:
                one.left -= count
                batches.append(Batch(names[row], one.squad, count))
    return batches


def _take(rows: NDArray[np.intp], offers: _Offers, classes: Sequence[MemberClass], taken: dict[str, Column]) -> None:
    """Note what these nodes have given away."""
    for one, counts in zip(classes, offers.counts, strict=True):
        for name, amount in one.shape.requests:
            if name not in taken:
                taken[name] = np.zeros(len(counts), np.int64)
            taken[name][rows] += counts[rows] * min(amount, MOST)


def _still_best(ranked: NDArray[np.intp], offers: _Offers, classes: Sequence[MemberClass]) -> NDArray[np.intp]:
    """Return the first ones of the nodes, up to where a class is used up or a node was to take more than are left.

    Until then the rank holds: what a node takes only falls while members are placed elsewhere.
    """
    before = np.array([[one.left] for one in classes])
    counts = offers.counts[:, ranked]
    left = before - (np.cumsum(counts, axis=1) - counts)
    holds = ((left > 0) | (before == 0)) & (counts <= left)
    ends = np.flatnonzero(~holds.all(axis=0))
    return ranked[: ends[0]] if len(ends) else ranked


def _ranked(
    offers: _Offers, classes: Sequence[MemberClass], trial: Trial, homes: Homes, near: Collection[str]
) -> NDArray[np.intp]:
    """Return the rows of the nodes that take any, the best first; among equals as they stand on the network."""
    layout = columns_of(trial.snapshot).layout
    total = offers.counts.sum(axis=0)
    rows = layout.order[total[layout.order] > 0]
    strange = -layout.mask(homes)[rows].astype(int) - layout.mask(node for node, leads in homes.items() if leads)[rows]
    is_needed = any(one.left and one.shape.asks_for_devices for one in classes)
    wasteful = np.zeros(len(rows), np.bool_) if is_needed else layout.with_devices[rows]
    steps = layout.steps_from(near)[rows]
    worth = np.lexsort((steps, offers.spare[rows], offers.wear[rows], -total[rows], wasteful, strange))
    ranked: NDArray[np.intp] = rows[worth]
    return ranked


def _offers(classes: Sequence[MemberClass], trial: Trial, taken: dict[str, Column]) -> _Offers:
    """Ask all nodes at once; one by one those where more than amounts decides, or on which the trial has placed any."""
    layout = columns_of(trial.snapshot).layout
    asked = layout.mask(trial.touched)
    for one in classes:
        asked |= layout.to_be_asked(one.shape) & (one.takes > 0)
    offers = _by_amounts(classes, trial, taken, asked)
    for row in np.flatnonzero(asked).tolist():
        offers.counts[:, row], offers.wear[row], offers.spare[row] = _on_node(classes, row, layout.names[row], trial)
    return offers


def _by_amounts(classes: Sequence[MemberClass], trial: Trial, before: dict[str, Column], asked: Mask) -> _Offers:
    """Let each class take what it can beside those before it, and beside what was taken before, on every node."""
    columns = columns_of(trial.snapshot)
    counts = np.zeros((len(classes), len(columns.layout.names)), np.int64)
    wear, spare = np.zeros_like(counts[0]), np.zeros_like(counts[0])
    taken = dict(before)
    for one, count in zip(classes, counts, strict=True):
        if not one.left:
            continue
        may = one.takes > 0
        capacity = columns.capacities(one.shape, taken) * may if taken else one.takes
        np.minimum(capacity, one.left, out=count)
        spare = np.where(may, capacity - count, spare)
        for name, amount in one.shape.requests:
            taken[name] = taken.get(name, 0) + count * min(amount, MOST)
        if one.shape.cards is not None:
            wear += np.where(count > 0, columns.free_devices(one.shape, taken), 0)
    return _Offers(counts, wear, spare, asked)


def _on_node(classes: Sequence[MemberClass], row: int, name: str, trial: Trial) -> tuple[list[int], int, int]:
    """Return how many of each class the node takes together, what they wear of it, and how many more it could take."""
    mark = trial.mark()
    counts = []
    wear, spare = 0, 0
    for one in classes:
        count = 0
        if one.left and one.takes[row]:
            capacity = trial.capacity(one.shape, name)
            count = min(capacity, one.left)
            spare = capacity - count
            if count and one.shape.cards is not None:
                wear += trial.wear(one.shape, name, count)
            if count and one is not classes[-1]:  # nobody looks after the last
                trial.place(one.pod, name, count)
        counts.append(count)
    trial.undo(mark)
    return counts, wear, spare
