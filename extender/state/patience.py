"""When is something done for gangs that do not fit?

At once, where pods of lower priority can be preempted. Otherwise a gang waits for a while, in which others may use what
it cannot; then room is kept for it as it gets free, for as long as its waiting-time says. If that was in vain, others
have as long a turn, and its next window is twice as long: so neither keeps the other waiting for ever. Of NonStrict
gangs, whose members hold what they find while the others look on, room is kept from the start.
"""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from msgspec import Struct

from extender.decide.explain import announce_too_large
from extender.decide.gang import admit_gang
from extender.decide.room import total_capacity
from extender.decide.trial import Trial
from extender.model.announcement import Announcement
from extender.model.claim import GangKey
from extender.model.gang import Gang
from extender.model.pod import PodShape, PodUid
from extender.model.snapshot import Snapshot
from extender.model.topology import Level
from extender.model.verdict import Admission, NoRoom, Placed, Placement
from extender.state.clearing import Clearing
from extender.state.cluster import Cluster
from extender.state.earmarks import Earmark

COLLECTING = 16
"""For so many gangs at a time room is kept as others end, the oldest first: those behind them would get none of it."""

SEARCH_AGAIN_S = 30.0
"""So long after a search in vain nobody is searched for again: over all pods of a large cluster that takes a second."""

TURN_S = 0.5
"""Between two gangs whose patience ends at the same time: else the verbs would wait for all their searches."""

Admit: TypeAlias = Callable[[Gang, Snapshot, Mapping[GangKey, Collection[str]]], Admission]
"""Decides on a gang, on a snapshot, beside gangs bound together with it that would be on these nodes."""


class _Needs(Struct, frozen=True):
    """What of a gang decides where there may be room for it."""

    members: int
    role_minimums: Sequence[tuple[str, int]]
    required_level: Level | None
    pods: Sequence[tuple[PodUid, PodShape]]

    @classmethod
    def of(cls, gang: Gang) -> "_Needs":
        pods = [(pod.uid, pod.shape) for pod in gang.waiting]
        return cls(gang.needed, gang.role_minimums, gang.required_level, pods)


class _Size(Struct, frozen=True):
    """Whether a gang that needs this would fit if it were alone, with the nodes and who stays on them as they were."""

    bare_generation: tuple[int, int]
    needs: _Needs
    is_too_large: bool


class _Prospect(Struct, frozen=True):
    """What decides whether gangs fit once anybody may end."""

    bare_generation: tuple[int, int]
    earmarks_generation: int
    needs: Sequence[_Needs]


@dataclass(slots=True)
class _Wait:
    ends_s: float
    """From when on room is kept for the gang as others end."""
    windows: int = 0
    """How often that was in vain."""
    size: _Size | None = None
    in_vain: _Prospect | None = None
    """With which there was no room for it, whoever ended."""
    said_too_large: bool = False


class Patience:
    """What the gangs that do not fit wait for. `admit` decides on what a gang needs, on a snapshot."""

    def __init__(self, cluster: Cluster, patience_s: float, admit: Admit) -> None:
        self._cluster = cluster
        self._patience_s = patience_s
        self._admit = admit
        self._clearing = Clearing(cluster)
        self._waits: dict[GangKey, _Wait] = {}
        self._news: list[Announcement] = []
        self._looked_at_s = 0.0

    def make_way(self, gangs: Sequence[Gang], lacking: Sequence[Admission | None], now_s: float) -> None:
        """See that gangs which are bound together get room once others have gone; `lacking` is why they do not fit.

        Only where all their members are there, so that nobody goes for a gang that cannot run then.
        """
        if self.is_clearing(gangs) and not self._is_needless(gangs):
            return
        rivals = self._let_go(gangs)
        if not all(isinstance(each, NoRoom) for each in lacking) or any(each.missing for each in gangs):
            return
        needy = [each for each in gangs if not each.satisfied]
        waits = [self._wait(each, now_s) for each in needy]
        seniority = min(each.seniority for each in needy)
        if any(self._is_too_large(each) for each in needy) or any(each.seniority <= seniority for each in rivals):
            return
        until_s = now_s + min(each.waiting_s for each in needy) * 2 ** max(wait.windows for wait in waits)
        may_wait = all(wait.ends_s <= now_s for wait in waits) and self._is_worth_a_search(waits[0], needy)
        found = self._clearing.find(gangs, lambda snapshot: self._fit(gangs, snapshot), until_s, may_wait=may_wait)
        if found is not None:
            for rival in rivals:
                self._drop_earmark(min(rival.keys))
            self._cluster.earmarks.put(found)
        elif may_wait:
            self._note_vain_search(waits[0], gangs, needy, now_s)
        if found is not None and not found.leaving:  # surplus members of one may have had the room of another
            for each in gangs:
                self._cluster.changes.plan(each.key)

    def is_clearing(self, gangs: Sequence[Gang]) -> bool:
        """Whether room is kept for these gangs, in which they will still fit."""
        earmark = self.kept_for(gangs)
        return earmark is not None and self._clearing.holds(earmark, gangs)

    def kept_for(self, gangs: Sequence[Gang]) -> Earmark | None:
        """Return what is kept for the first of these gangs that needs room and has an earmark."""
        kept = (self._cluster.earmarks.get(each.key) for each in gangs if not each.satisfied)
        return next((each for each in kept if each is not None), None)

    def _let_go(self, gangs: Sequence[Gang]) -> list[Earmark]:
        """End what was kept for these gangs; return what is kept for them and others, and is not theirs to give up.

        In one namespace several may name a gang that names none of them: who of these comes first has its room kept.
        """
        rivals = []
        for gang in gangs:
            earmark = self._cluster.earmarks.get(gang.key)
            if earmark is None or not self._is_of_others(earmark, gangs):
                self._drop_earmark(gang.key)
            elif not gang.satisfied:
                rivals.append(earmark)
        return rivals

    def _is_of_others(self, earmark: Earmark, gangs: Sequence[Gang]) -> bool:
        """Whether it is kept for gangs that are bound together still, and not all of them with these."""
        index = self._cluster.gangs
        owners = [gang for gang in map(index.get, earmark.keys) if gang is not None]
        bound_together = any(earmark.keys <= index.together(owner).keys() for owner in owners)
        return bound_together and not earmark.keys <= {each.key for each in gangs}

    def _is_needless(self, gangs: Sequence[Gang]) -> bool:
        """Whether pods are still to be killed for gangs that fit by now once those have gone that are going."""
        alive = any(self._cluster.victims_of(pod) for gang in gangs for pod in gang.waiting)
        earmark = self.kept_for(gangs)
        return alive and earmark is not None and self._fit(gangs, self._clearing.once_gone(earmark, gangs)) is not None

    def forget(self, key: GangKey) -> None:
        """Forget a gang that has room, or is gone."""
        self._waits.pop(key, None)
        self._drop_earmark(key)

    def rest(self, key: GangKey) -> None:
        """Forget a gang that has nobody to place; those that it is bound together with may go on waiting."""
        gang, earmark = self._cluster.gangs.get(key), self._cluster.earmarks.get(key)
        together = [self._cluster.gangs.get(each) for each in (earmark.keys if earmark else ())]
        if gang is not None and gang.satisfied and not all(each is not None and each.satisfied for each in together):
            self._waits.pop(key, None)
        else:
            self.forget(key)

    def expire(self, now_s: float) -> set[GangKey]:
        """End what was kept in vain; return the gangs of which that was.

        The first of those that have waited long enough is noted to be planned; the others have their turns after it.
        """
        ended: set[GangKey] = set()
        for earmark in self._cluster.earmarks:
            if earmark.until_s <= now_s:
                ended |= earmark.keys
                self._drop_earmark(min(earmark.keys))
        for key in ended & self._waits.keys():
            gang, wait = self._cluster.gangs.get(key), self._waits[key]
            wait.windows += 1
            wait.ends_s = now_s + (gang.waiting_s if gang else 0.0)
        keys = [key for key, wait in self._waits.items() if self._looked_at_s < wait.ends_s <= now_s]
        due = [gang for gang in map(self._cluster.gangs.get, keys) if gang is not None]
        for number, gang in enumerate(sorted(due, key=lambda gang: gang.seniority)):
            if number == 0:
                self._cluster.changes.plan(gang.key)
            else:
                self._waits[gang.key].ends_s = now_s + TURN_S
        self._looked_at_s = now_s
        return ended

    def next_deadline_s(self) -> float:
        """Return when `expire` has something to do next; infinite for never."""
        times = [earmark.until_s for earmark in self._cluster.earmarks]
        times += [wait.ends_s for wait in self._waits.values() if wait.ends_s > self._looked_at_s]
        return min(times, default=math.inf)

    def take_news(self) -> list[Announcement]:
        """Return what is to be announced since the last call."""
        taken, self._news = self._news, []
        return taken

    def _is_worth_a_search(self, wait: _Wait, needy: Sequence[Gang]) -> bool:
        collecting = sum(not each.parts for each in self._cluster.earmarks)
        return collecting < COLLECTING and wait.in_vain != self._prospect(needy)

    def _note_vain_search(self, wait: _Wait, gangs: Sequence[Gang], needy: Sequence[Gang], now_s: float) -> None:
        """Search again later; unless it was due to pods on their way to their nodes, only where something is new."""
        wait.ends_s = now_s + SEARCH_AGAIN_S
        seniority = min(each.seniority for each in needy)
        fits = self._fit(gangs, self._clearing.once_all_gone(seniority, needy[0].key))
        wait.in_vain = self._prospect(needy) if fits is None else None

    def _prospect(self, needy: Sequence[Gang]) -> _Prospect:
        needs = [_Needs.of(gang) for gang in needy]
        return _Prospect(self._clearing.bare_generation, self._cluster.earmarks.generation, needs)

    def _wait(self, gang: Gang, now_s: float) -> _Wait:
        return self._waits.setdefault(gang.key, _Wait(now_s + (self._patience_s if gang.strict else 0.0)))

    def _drop_earmark(self, key: GangKey) -> None:
        if self._cluster.earmarks.drop(key):
            self._cluster.changes.free_room()

    def _fit(self, gangs: Sequence[Gang], snapshot: Snapshot) -> list[Placement] | None:
        """Return where the members of all these gangs go that are needed; None where not all fit."""
        trial = Trial(snapshot)
        placements: list[Placement] = []
        tried: dict[GangKey, Collection[str]] = {}
        for gang in gangs:
            admission = self._admit(gang, trial.as_snapshot(), tried)
            if not isinstance(admission, Placed):
                return None
            for placement in admission.placements:
                trial.place(placement.occupant, placement.node)
            placements += admission.placements
            tried[gang.key] = {placement.node for placement in admission.placements}
        return placements

    def _admit_alone(self, gang: Gang) -> Admission:
        bare, shapes = self._clearing.bare(), {pod.shape for pod in gang.waiting}
        related = any(shape.relations is not None for shape in shapes)
        is_plain = len(shapes) == 1 and not (related or gang.role_minimums or gang.followers or gang.required_level)
        if is_plain and total_capacity(gang.waiting[0].shape, bare) >= gang.needed:  # as most are: no need to plan
            return Placed(())
        return admit_gang(gang, bare, plan_absent=False, only_needed=True)

    def _is_too_large(self, gang: Gang) -> bool:
        """Whether the gang would not even fit if it were alone; its owner is told so once."""
        wait = self._waits[gang.key]
        generation, needs = self._clearing.bare_generation, _Needs.of(gang)
        if wait.size is None or (wait.size.bare_generation, wait.size.needs) != (generation, needs):
            alone = self._admit_alone(gang)
            wait.size = _Size(generation, needs, isinstance(alone, NoRoom))
            if isinstance(alone, NoRoom) and not wait.said_too_large:
                wait.said_too_large = True
                self._news.append(announce_too_large(gang, alone))
        return wait.size.is_too_large
