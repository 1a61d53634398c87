"""Which node is filled next with what is left of a gang?

One that holds siblings, and a leader among them before the others; one whose devices are not wasted on members that
need none; the one that takes most, at the least cost in whole cards (`wear`), and then the tightest; among equals one
near siblings on the network. All nodes are asked at once, and as many are filled at a time as stay the best ones.
"""

from collections.abc import Collection, Sequence
from copy import copy
from itertools import repeat
from typing import NamedTuple

import numpy as np

from extender.decide.columns import MOST, Column, Layout, Mask, Rows, columns_of
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
    """What each place would take now, by class; what that costs it; and which places were asked one by one."""

    counts: Column
    wear: Column
    spare: Column
    asked: Mask


class _Filling(NamedTuple):
    """A gang's classes, and the places that take any of them: nodes in rows, neighbours on the network side by side.

    `amounts` are what one member of each class takes, `given` how many of each class each place has taken so far.
    """

    classes: Sequence[MemberClass]
    trial: Trial
    layout: Layout
    rows: Rows
    amounts: Sequence[Sequence[tuple[str, int]]]
    given: Column

    def name_of(self, place: int) -> str:
        """Return the node of a place."""
        return self.layout.names[int(self.rows[place])]


def fill_best(classes: Sequence[MemberClass], trial: Trial, homes: Homes) -> list[Batch]:
    """Fill the best node with as many of each class as it takes, again and again until none takes any.

    They are taken off what is left, and are not on the trial afterwards. `homes` are nodes that hold siblings; where
    there are none, the others go near the first.
    """
    mark, near = trial.mark(), homes
    filling = _begin(classes, trial)
    batches: list[Batch] = []
    offers = None
    while any(one.left for one in classes):
        offers = offers or _offers(filling)
        ranked = _ranked(offers, filling, homes, near)
        if not len(ranked):
            break
        best = _still_best(ranked, offers, classes) if near else ranked[:1]
        batches += _fill(best, offers, filling)
        filling.given[:, best] += offers.counts[:, best]
        offers = None if near else _others_of(offers, best, classes)
        near = near or {filling.name_of(best[0]): False}
    trial.undo(mark)
    return batches


def _others_of(offers: _Offers, filled: Rows, classes: Sequence[MemberClass]) -> _Offers | None:
    """Return the offers but for the places that were filled; None where these or others must be asked anew."""
    offers.counts[:, filled] = 0
    is_more_than_left = any(count.max(initial=0) > one.left for one, count in zip(classes, offers.counts, strict=True))
    return None if is_more_than_left or offers.asked[filled].any() else offers


def _begin(classes: Sequence[MemberClass], trial: Trial) -> _Filling:
    layout = columns_of(trial.snapshot).layout
    takes_any = np.zeros(len(layout.names), np.bool_)
    for one in classes:
        takes_any |= one.takes > 0
    rows = layout.order[takes_any[layout.order]]
    return _Filling(classes, trial, layout, rows, _amounts(classes), np.zeros((len(classes), len(rows)), np.int64))


def place_on(name: str, counts: Sequence[int], classes: Sequence[MemberClass], trial: Trial) -> list[Batch]:
    """Place so many of each class on the node and on the trial."""
    batches = []
    for one, count in zip(classes, counts, strict=True):
        if count:
            trial.place(one.pod, name, count)
            batches.append(one.seat(name, count, trial))
    return batches


def _fill(best: Rows, offers: _Offers, filling: _Filling) -> list[Batch]:
    """Take what these places offer; on the trial only where they will be asked again."""
    names = [filling.layout.names[row] for row in filling.rows[best].tolist()]
    counts = offers.counts[:, best]
    if offers.asked[best].any():
        return _fill_one_by_one(names, counts, offers.asked[best], filling)
    for one, number in zip(filling.classes, counts.sum(axis=1).tolist(), strict=True):
        one.left -= number
    squads = [one.squad for one in filling.classes]
    if len(squads) == 1:
        return list(map(Batch, names, repeat(squads[0]), counts[0].tolist()))
    return [
        Batch(name, squad, count)
        for name, of_classes in zip(names, counts.T.tolist(), strict=True)
        for squad, count in zip(squads, of_classes, strict=True)
        if count
    ]


def _fill_one_by_one(names: Sequence[str], counts: Column, asked: Mask, filling: _Filling) -> list[Batch]:
    batches: list[Batch] = []
    for name, of_classes, is_asked in zip(names, counts.T.tolist(), asked.tolist(), strict=True):
        if is_asked:
            batches += place_on(name, of_classes, filling.classes, filling.trial)
            continue
        for one, count in zip(filling.classes, of_classes, strict=True):
            if count:
                one.left -= count
                batches.append(Batch(name, one.squad, count))
    return batches


def _still_best(ranked: Rows, offers: _Offers, classes: Sequence[MemberClass]) -> Rows:
    """Return the first ones of the places, up to where a class is used up or one was to take more than are left.

    Until then the rank holds: what a node takes only falls while members are placed elsewhere.
    """
    before = np.array([[one.left] for one in classes])
    counts = offers.counts[:, ranked]
    left = before - (np.cumsum(counts, axis=1) - counts)
    holds = ((left > 0) | (before == 0)) & (counts <= left)
    ends = np.flatnonzero(~holds.all(axis=0))
    return ranked[: ends[0]] if len(ends) else ranked


def _ranked(offers: _Offers, filling: _Filling, homes: Homes, near: Collection[str]) -> Rows:
    """Return the places that take any, the best first; among equals as they stand on the network."""
    layout = filling.layout
    total = offers.counts.sum(axis=0)
    places = np.flatnonzero(total)
    rows = filling.rows[places]
    worth = [offers.spare[places], offers.wear[places], -total[places]]
    if near:
        worth.insert(0, layout.steps_from(near, rows))
    if not any(one.left and one.shape.asks_for_devices for one in filling.classes):
        worth.append(layout.with_devices[rows])
    if homes:
        leading = [node for node, leads in homes.items() if leads]
        worth.append(-layout.mask(homes)[rows].astype(int) - layout.mask(leading)[rows])
    ranked: Rows = places[np.lexsort(worth)]
    return ranked


def _offers(filling: _Filling) -> _Offers:
    """Ask all places at once; one by one those where more than amounts decides, or on which the trial has some."""
    layout, rows = filling.layout, filling.rows
    asked = layout.mask(filling.trial.touched)[rows]
    for one in filling.classes:
        asked |= layout.to_be_asked(one.shape)[rows] & (one.takes[rows] > 0)
    offers = _by_amounts(filling, asked)
    for place in np.flatnonzero(asked).tolist():
        offers.counts[:, place], offers.wear[place], offers.spare[place] = _on_node(filling, place)
    return offers


def _by_amounts(filling: _Filling, asked: Mask) -> _Offers:
    """Let each class take what it can beside those before it, and beside what was taken before, in every place."""
    columns = columns_of(filling.trial.snapshot)
    counts = np.zeros_like(filling.given)
    wear, spare = np.zeros_like(counts[0]), np.zeros_like(counts[0])
    taken = _taken(filling)
    for one, amounts, count in zip(filling.classes, filling.amounts, counts, strict=True):
        if not one.left:
            continue
        takes = one.takes[filling.rows]
        if len(filling.classes) == 1:
            capacity = takes - filling.given[0]
        else:
            capacity = columns.capacities(one.shape, taken, filling.rows) * (takes > 0)
        np.minimum(capacity, one.left, out=count)
        spare = np.where(takes > 0, capacity - count, spare)
        for name, amount in amounts:
            taken[name] = taken.get(name, 0) + count * amount
        if one.shape.cards is not None:
            wear += np.where(count > 0, columns.free_devices(one.shape, taken, filling.rows), 0)
    return _Offers(counts, wear, spare, asked)


def _taken(filling: _Filling) -> dict[str, Column]:
    """Return how much of each resource was taken in each place."""
    taken: dict[str, Column] = {}
    for amounts, given in zip(filling.amounts, filling.given, strict=True):
        for name, amount in amounts:
            taken[name] = taken.get(name, 0) + given * amount
    return taken


def _amounts(classes: Sequence[MemberClass]) -> list[list[tuple[str, int]]]:
    """Return what one member of each class takes, as far as anybody asks what was taken: of one class, only devices."""
    is_single = len(classes) == 1
    return [
        [(name, min(amount, MOST)) for name, amount in one.shape.requests if "/" in name or not is_single]
        for one in classes
    ]


def _on_node(filling: _Filling, place: int) -> tuple[list[int], int, int]:
    """Return how many of each class the node takes together, what they wear of it, and how many more it could take."""
    row, name, trial = filling.rows[place], filling.name_of(place), filling.trial
    mark = trial.mark()
    counts = []
    wear, spare = 0, 0
    for one in filling.classes:
        count = 0
        if one.left and one.takes[row]:
            capacity = trial.capacity(one.shape, name)
            count = min(capacity, one.left)
            spare = capacity - count
            if count and one.shape.cards is not None:
                wear += trial.wear(one.shape, name, count)
            if count and one is not filling.classes[-1]:  # nobody looks after the last
                trial.place(one.pod, name, count)
        counts.append(count)
    trial.undo(mark)
    return counts, wear, spare
