"""Which node is filled next with what is left of a gang?

One that holds siblings, and a leader among them before the others; one whose devices are not wasted on members that
need none; the one that takes most, at the least cost in whole cards (`wear`), and then the tightest; among equals one
near siblings on the network.
"""

from collections.abc import Collection, Iterator, Sequence
from copy import copy
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from extender.decide.columns import MOST, Column, Mask, columns_of
from extender.decide.leaders import Homes
from extender.decide.room import capacities
from extender.decide.trial import Trial
from extender.model.member import Member
from extender.model.pod import PodShape
from extender.model.snapshot import Snapshot


class MemberClass:
    """Members of equal shape and role, of which `left` are to be placed; `takes` so many does each node, by row."""

    def __init__(
        self,
        members: list[Member],
        snapshot: Snapshot,
        avoid: Collection[tuple[str, PodShape]],
        within: Mask | None,
    ) -> None:
        self.shape = members[0].shape
        self.pod = members[0].occupant
        self.left = members
        self._members = members
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
        other.left = self._members
        if within is not None:
            other.takes = self.takes * within
        return other


class _Offers(NamedTuple):
    """What each node would take now, by class and row; and what that costs it."""

    counts: Column
    wear: Column
    spare: Column


def best_nodes(classes: Sequence[MemberClass], trial: Trial, homes: Homes) -> Iterator[tuple[str, Sequence[int]]]:
    """Yield the best node for what is left and how many of each class it takes, again and again until none takes any.

    They must be placed on the trial, and taken off what is left, before the next one is asked for. `homes` are nodes
    that hold siblings; where there are none, the others go near the first.
    """
    names = columns_of(trial.snapshot).layout.names
    near: Collection[str] = homes
    while any(one.left for one in classes):
        before = [len(one.left) for one in classes]
        offers = _offers(classes, trial)
        for row in _ranked(offers, classes, trial, homes, near).tolist():
            counts = offers.counts[:, row].tolist()
            if _is_outdated(counts, before, classes):
                break
            yield names[row], counts
            if not near:
                near = [names[row]]
                break
        else:
            return


def _is_outdated(counts: Sequence[int], before: Sequence[int], classes: Sequence[MemberClass]) -> bool:
    """Whether a class is used up since, or the node was to take more of it than are left; else the rank holds.

    What a node takes only falls while members are placed elsewhere.
    """
    now = [len(one.left) for one in classes]
    used_up = any(number and not left for number, left in zip(before, now, strict=True))
    return used_up or any(count > left for count, left in zip(counts, now, strict=True))


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


def _offers(classes: Sequence[MemberClass], trial: Trial) -> _Offers:
    """Ask all nodes at once; one by one those where more than amounts decides, or on which members are placed."""
    layout = columns_of(trial.snapshot).layout
    offers = _by_amounts(classes, trial)
    asked = layout.mask(trial.touched)
    for one in classes:
        asked |= layout.to_be_asked(one.shape) & (one.takes > 0)
    for row in np.flatnonzero(asked).tolist():
        offers.counts[:, row], offers.wear[row], offers.spare[row] = _on_node(classes, row, layout.names[row], trial)
    return offers


def _by_amounts(classes: Sequence[MemberClass], trial: Trial) -> _Offers:
    """Let each class take what it can beside those before it, on every node."""
    columns = columns_of(trial.snapshot)
    counts = np.zeros((len(classes), len(columns.layout.names)), np.int64)
    wear, spare = np.zeros_like(counts[0]), np.zeros_like(counts[0])
    taken: dict[str, Column] = {}
    for one, count in zip(classes, counts, strict=True):
        if not one.left:
            continue
        may = one.takes > 0
        capacity = columns.capacities(one.shape, taken) * may if taken else one.takes
        np.minimum(capacity, len(one.left), out=count)
        spare = np.where(may, capacity - count, spare)
        for name, amount in one.shape.requests:
            taken[name] = taken.get(name, 0) + count * min(amount, MOST)
        if one.shape.cards is not None:
            wear += np.where(count > 0, columns.free_devices(one.shape, taken), 0)
    return _Offers(counts, wear, spare)


def _on_node(classes: Sequence[MemberClass], row: int, name: str, trial: Trial) -> tuple[list[int], int, int]:
    """Return how many of each class the node takes together, what they wear of it, and how many more it could take."""
    mark = trial.mark()
    counts = []
    wear, spare = 0, 0
    for one in classes:
        count = 0
        if one.left and one.takes[row]:
            capacity = trial.capacity(one.shape, name)
            count = min(capacity, len(one.left))
            spare = capacity - count
            if count and one.shape.cards is not None:
                wear += trial.wear(one.shape, name, count)
            if count and one is not classes[-1]:  # nobody looks after the last
                trial.place(one.pod, name, count)
        counts.append(count)
    trial.undo(mark)
    return counts, wear, spare
