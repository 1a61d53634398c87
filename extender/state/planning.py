"""Which gangs get room now?

Plans every gang that a change may have helped, and holds room for those that fit. Deadlines end what nobody came for.
All of it is a function of the state and the time; nothing is written to the API server here.
"""

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import chain
from typing import TypeAlias

from msgspec import Struct, structs

from extender.decide.explain import announce_gave_up_room, explain_admission
from extender.decide.gang import admit_gang
from extender.decide.node_reasons import explain_reason
from extender.decide.packing import weight
from extender.decide.topology import is_torn
from extender.decide.trial import Trial
from extender.model.announcement import Announcement
from extender.model.claim import GangKey, followers_key
from extender.model.gang import Gang
from extender.model.member import NOBODY
from extender.model.node import repels
from extender.model.pod import Pod, PodShape
from extender.model.snapshot import Snapshot
from extender.model.verdict import Admission, NoRoom, Placed, Placement, Preempting, WaitsForGang
from extender.state.cluster import Cluster
from extender.state.company import find_company
from extender.state.expiry import Deadlines, Expiry
from extender.state.membership import key_of
from extender.state.past import Past
from extender.state.patience import Patience
from extender.state.reservations import Slot, Stage
from extender.state.sleepers import Sleepers
from extender.state.standings import TEXT_HOLDS_S, Standing, Standings

Rank: TypeAlias = tuple[bool, int, float, float, int, str]
"""Who is planned before whom: what sorts first."""


class _Decision(Struct, frozen=True):
    """On what it was decided that a gang lacks room, and until when its members can be told nothing new of it."""

    on: tuple[int, int, int]
    until_s: float


class Planner:
    """Plans on one cluster state, and takes back what nobody came for."""

    def __init__(self, cluster: Cluster, deadlines: Deadlines) -> None:
        self.standings = Standings()
        self.sleepers = Sleepers(cluster)
        self._cluster = cluster
        self._expiry = Expiry(cluster, deadlines)
        self._patience = Patience(cluster, deadlines.patience_s, self._admit_needed)
        self._pasts: dict[GangKey, Past] = {}
        self._decided: dict[GangKey, _Decision] = {}
        self._refused: set[GangKey] = set()
        """Gangs of which a node is refused now."""
        self._resting: set[GangKey] = set()
        """Gangs with nobody to place, be it that all have finished, who need no look when room is freed."""
        self._news: list[Announcement] = []
        self._has_planned = False

    def plan_gangs(self, now_s: float) -> None:
        """Plan each gang that may fit since the last call: stranded ones first, then by priority and age."""
        self._has_planned = True
        changes = self._cluster.changes
        keys = self._cluster.gangs.concerned(changes.take_to_plan())
        self._resting -= keys
        if changes.room_freed:
            changes.room_freed = False
            self.sleepers.room_is_free(now_s)
            keys.update(key for key in self._cluster.gangs if key not in self._resting)
        planned: set[GangKey] = set()
        for gang in self._in_order(keys):
            if gang.key not in planned:
                planned |= self._plan_together(gang, now_s)

    def plan_first(self, now_s: float) -> None:
        """Plan unless that was done: nobody is answered before, or he could have what a gang in part still needs."""
        if not self._has_planned:
            self.plan_gangs(now_s)

    def is_decided(self, key: GangKey, now_s: float) -> bool:
        """Whether the gang was found to lack room, nothing has changed since, and there is nothing new to tell."""
        decision = self._decided.get(key)
        return decision is not None and decision.on == self._what_decides(key) and now_s < decision.until_s

    def _what_decides(self, key: GangKey) -> tuple[int, int, int]:
        return self._cluster.gangs.edition(key), self._cluster.generation, self._cluster.earmarks.generation

    def refuse(self, pod: Pod, nodes: Collection[str], now_s: float, costs_s: float = 0.0) -> None:
        """Note that the pod is not taken on its planned node, nor on others; plan its gang anew.

        Where it costs so long to find that out, the node is left out for longer from the second time on.
        """
        known = self._cluster.reservations.slot_of(pod.uid)
        if known is not None and known.in_doubt:  # it may be bound there by now
            return
        slot = self._cluster.reservations.leave(pod.uid)
        key = key_of(pod)
        if slot is not None and key is not None:
            for node in nodes:
                self._past(key).refuse((node, pod.shape), now_s, costs_s)
            self._refused.add(key)
            self._cluster.changes.plan(key)
            self._cluster.changes.free_room()
            self.plan_gangs(now_s)

    def expire(self, now_s: float) -> None:
        """Give back room whose time is over, and see to those whose time has come."""
        for key, over in self._expiry.over(now_s):
            self._end_turn(key, over, now_s)
        for key in self._patience.expire(now_s):
            self._past(key).turn_lost_s = now_s
        for key in tuple(self._refused):
            past = self._past(key)
            lasting = {what: until for what, until in past.refused_until_s.items() if until > now_s}
            if len(lasting) < len(past.refused_until_s):
                past.refused_until_s = lasting
                self._cluster.changes.plan(key)
            if not lasting:
                self._refused.discard(key)

    def take_news(self) -> list[Announcement]:
        """Return what is to be announced since the last call."""
        taken, self._news = self._news, []
        return taken + self._patience.take_news()

    def next_deadline_s(self) -> float | None:
        """Return when `expire` has something to do next, if ever."""
        times = [until for key in self._refused for until in self._past(key).refused_until_s.values()]
        times += [self._expiry.next_look_s, self._patience.next_deadline_s(), self.sleepers.next_s()]
        next_s = min(times)
        return None if next_s == math.inf else next_s

    def _end_turn(self, key: GangKey, over: list[Slot], now_s: float) -> None:
        """Take back the room of a gang that is not whole in time; of one that runs, only what is over."""
        gang = self._cluster.gangs.get(key)
        self._cluster.reservations.end(key, over)
        if gang is None or not gang.satisfied:
            self._cluster.reservations.end_up_to(key, Stage.HELD)
        else:
            for slot in over:
                if slot.stage is Stage.ACCEPTED:  # kube-scheduler counts it there, and may bind it yet
                    self._cluster.undecided.let_through(slot.holder, [slot.node], repels=repels(slot.occupant))
        self._cluster.changes.free_room()
        if gang is None:
            return
        self._past(key).turn_lost_s = now_s
        if not all(slot.holder for slot in over):
            self._past(key).gave_up_at = gang.present
            self._news.append(announce_gave_up_room(gang, now_s - min(slot.since_s for slot in over)))

    def _in_order(self, keys: Iterable[GangKey]) -> list[Gang]:
        gangs = []
        for key in keys:
            gang = self._cluster.gangs.get(key)
            if gang is not None and (gang.waiting or gang.stranded):
                gangs.append(gang)
                continue
            self._forget(key)
            if key in self._cluster.gangs and not self._cluster.reservations.get(key):  # nor is anything being posted
                self._resting.add(key)
        return sorted(gangs, key=self._rank)

    def _rank(self, gang: Gang) -> Rank:
        """Return where it stands in the queue: gangs that are bound together are planned where the first of them is."""
        others = [each for each in self._cluster.gangs.together(gang).values() if each is not None]
        return min(self._own_rank(each) for each in (gang, *others) if each is gang or each.waiting or each.stranded)

    def _own_rank(self, gang: Gang) -> Rank:
        """Return its place: of those that were created in one second, the large ones leave the small ones more room."""
        stranded_last, priority, created_at = gang.seniority
        size = weight(gang.waiting[0].shape) if gang.waiting else 0
        return stranded_last, priority, self._past(gang.key).turn_lost_s, created_at, -size, gang.key

    def _plan_together(self, gang: Gang, now_s: float) -> set[GangKey]:
        """Plan a gang and those that are bound together with it; either all of them hold enough room or none does."""
        # 1. Which of them has room?
        together = self._cluster.gangs.together(gang)
        gangs = [each for each in together.values() if each is not None]
        held_before = {each.key: self._held_room(each) for each in gangs}
        goes_ahead = self._goes_ahead(gangs)
        admissions = {each.key: self._plan_gang(each, now_s, goes_ahead=goes_ahead) for each in gangs}
        lacking = [key for key, each in together.items() if each is None or self._lacks_room(key)]

        # 2. If one has none, what can be done for it?
        if lacking:
            if not goes_ahead:  # what one of them cannot use alone may be what another one lacks
                self._give_back([each for each in gangs if each.key not in lacking])
            self._patience.make_way(gangs, [admissions.get(key) for key in lacking], now_s)
            for each in gangs if self._goes_ahead(gangs) else ():
                self._hold_ahead(each, now_s)
        else:
            for each in gangs:
                self._patience.forget(each.key)
        if any(held_before[each.key] - self._held_room(each) for each in gangs):  # what is held again was never free
            self._cluster.changes.free_room()

        # 3. What are their members told?
        for each in gangs:
            admission = admissions[each.key]
            if each.satisfied or (admission is None and not lacking):
                continue
            if each.key in lacking:
                earmark = self._cluster.earmarks.get(each.key)
                self._stand(each, Preempting() if earmark and earmark.parts else admission, now_s)
            elif lacking:
                self._stand(each, WaitsForGang(lacking[0]), now_s)
        return set(admissions)

    def _give_back(self, gangs: Iterable[Gang]) -> None:
        """End the room of gangs that wait for others, and of those who would follow them."""
        for gang in gangs:
            if not gang.satisfied:
                self._cluster.reservations.end_up_to(gang.key, Stage.HELD)
                self._cluster.reservations.end_up_to(followers_key(gang.job), Stage.PLANNED)

    def _lacks_room(self, key: GangKey) -> bool:
        gang = self._cluster.gangs.get(key)
        return gang is None or (not gang.satisfied and self._lacks(gang))

    def _goes_ahead(self, gangs: Sequence[Gang]) -> bool:
        """Whether pods are killed for the gangs, so that the members which fit already hold their room meanwhile.

        kube-scheduler must know of these: it kills for the others only where it sees no room for them.
        """
        earmark = self._patience.kept_for(gangs)
        return earmark is not None and bool(earmark.parts) and self._patience.is_clearing(gangs)

    def _hold_ahead(self, gang: Gang, now_s: float) -> None:
        earmark = self._cluster.earmarks.get(gang.key)
        parts = earmark.parts if earmark else {}
        for placement in self._promised(gang):
            snapshot = self._cluster.snapshot_for(gang.seniority, gang.key)
            trial = Trial(snapshot)
            if placement.uid not in parts and not trial.fit(placement.occupant, placement.node):
                self._reserve(gang, [trial.seat(placement)], now_s)

    def _plan_gang(self, gang: Gang, now_s: float, *, goes_ahead: bool) -> Admission | None:
        """Hold room for what members need it, if they fit; return the verdict, None where nothing was to be decided."""
        # 1. Above min-available a member is planned only if kube-scheduler cannot place it, or did not.
        if gang.satisfied:
            late = [p for p in gang.waiting if p.shape.is_placed_by_us or self.standings.heard(p.uid)]
            gang = structs.replace(gang, waiting=tuple(late))
        if self._is_settled(gang) or (goes_ahead and not self._lacks(gang)):
            return None

        # 2. Room that was meant for absent members is planned afresh, beside what members hold.
        reservations = self._cluster.reservations
        reservations.end(gang.key, [slot for slot in reservations.slots_of(gang.key) if not slot.holder])
        reservations.end_up_to(followers_key(gang.job), Stage.PLANNED)
        admission = self._try(gang, only_needed=goes_ahead)

        # 3. If the rest does not fit beside it, the whole plan may, as far as kube-scheduler does not know it yet.
        planned = [slot for slot in reservations.slots_of(gang.key) if slot.stage is Stage.PLANNED]
        if planned and not isinstance(admission, Placed) and self._lacks(gang) and not goes_ahead:
            reservations.end(gang.key, planned)
            admission = self._try(gang)

        # 4. Hold the room; a gang that cannot be whole holds nothing, unless others are being killed for it.
        if isinstance(admission, Placed):
            self._reserve(gang, admission.placements, now_s)
            self.standings.drop(gang.key)
        elif self._lacks(gang) and not goes_ahead:
            reservations.end_up_to(gang.key, Stage.HELD)
        return admission

    def _reserve(self, gang: Gang, placements: Iterable[Placement], now_s: float) -> None:
        """Hold room for the members, and apart from them for those that are only made once these run."""
        roles = {role.name for role in gang.followers}
        followers = [each for each in placements if not each.uid and each.role in roles]
        members = [each for each in placements if each not in followers]
        self._cluster.reservations.reserve(gang.key, members, now_s)
        if followers:
            self._cluster.reservations.reserve(followers_key(gang.job), followers, now_s)

    def _try(self, gang: Gang, *, only_needed: bool = False) -> Admission:
        """Admit the gang on what is free for it; where room was kept for it and is free by now, there."""
        if not gang.waiting and not gang.missing:
            return Placed(())
        snapshot = self._cluster.snapshot_for(gang.seniority, gang.key)
        promised = self._promised(gang)
        trial = Trial(snapshot)
        refused = self._past(gang.key).refused_until_s
        seated = []
        for placement in promised:
            if (placement.node, placement.shape) in refused or trial.fit(placement.occupant, placement.node):
                return self._admit(gang, snapshot, only_needed=only_needed)
            seated.append(trial.seat(placement))
        return Placed(tuple(seated)) if seated else self._admit(gang, snapshot, only_needed=only_needed)

    def _promised(self, gang: Gang) -> list[Placement]:
        """Return where members without room go once others have gone."""
        earmark = self._cluster.earmarks.get(gang.key)
        wanted = self._cluster.reservations.without_room(earmark) if earmark else []
        members, rooms = {NOBODY, *(pod.uid for pod in gang.waiting)}, self._cluster.snapshot().rooms
        found = [each for each in wanted if each.uid in members and each.node in rooms]
        nodes = {each.node for each in found} | {slot.node for slot in self._member_slots(gang)}
        return [] if is_torn(gang, nodes, self._cluster.network.topology) else found

    def _admit_needed(self, gang: Gang, snapshot: Snapshot, tried: Mapping[GangKey, Collection[str]]) -> Admission:
        if gang.satisfied or not self._lacks(gang):
            return Placed(())
        avoid = self._past(gang.key).refused_for_good
        return self._admit(gang, snapshot, only_needed=True, avoid=avoid, tried=tried)

    def _is_settled(self, gang: Gang) -> bool:
        """Whether every member has room, and as much is held for absent ones as are missing."""
        slots = self._cluster.reservations.slots_of(gang.key)
        holders = {slot.holder for slot in slots}
        vacant = sum(not slot.holder for slot in slots)
        return vacant == gang.missing and all(p.uid in holders for p in gang.waiting)

    def _member_slots(self, gang: Gang) -> list[Slot]:
        members = {pod.uid for pod in gang.waiting}
        return [slot for slot in self._cluster.reservations.slots_of(gang.key) if slot.holder in members]

    def _lacks(self, gang: Gang) -> bool:
        """Whether what it holds, for absent members as well, is too little to run."""
        slots = [slot for slot in self._cluster.reservations.slots_of(gang.key) if not slot.holder]
        return not gang.is_enough([slot.role for slot in (*self._member_slots(gang), *slots)])

    def _held_room(self, gang: Gang) -> Counter[tuple[str, PodShape]]:
        keys = (gang.key, followers_key(gang.job))
        return Counter((slot.node, slot.shape) for key in keys for slot in self._cluster.reservations.slots_of(key))

    def _admit(
        self,
        gang: Gang,
        snapshot: Snapshot,
        *,
        only_needed: bool = False,
        avoid: Collection[tuple[str, PodShape]] | None = None,
        tried: Mapping[GangKey, Collection[str]] | None = None,
    ) -> Admission:
        past = self._past(gang.key)
        past.gave_up_at = min(past.gave_up_at, gang.present)  # a member that goes and comes is another
        return admit_gang(
            gang,
            snapshot,
            kept=[slot.as_placement() for slot in self._member_slots(gang)],
            avoid=past.refused_until_s.keys() if avoid is None else avoid,
            plan_absent=past.gave_up_at < gang.present,
            only_needed=only_needed,
            company=find_company(gang, self._cluster, self._lacks, tried or {}),
        )

    def _stand(self, gang: Gang, admission: Admission | None, now_s: float) -> None:
        if admission is None:
            return
        kind, until_s = _kind(gang, admission), math.inf
        if self.standings.is_due(gang.key, kind, now_s):
            self.standings.put(gang.key, Standing(kind, explain_admission(gang, admission), now_s))
        elif (told := self.standings.get(gang.key)) is not None:
            until_s = told.since_s + TEXT_HOLDS_S  # the members hear the former numbers until then
        self._decided[gang.key] = _Decision(self._what_decides(gang.key), until_s)
        self._cluster.changes.touch(gang.key)

    def _past(self, key: GangKey) -> Past:
        return self._pasts.setdefault(key, Past())

    def _forget(self, key: GangKey) -> None:
        """Let go of what is held for a gang that has nobody left to place."""
        self._cluster.reservations.end_up_to(key, Stage.HELD)
        self._patience.rest(key)
        self.standings.drop(key)
        self._pasts.pop(key, None)
        self._refused.discard(key)
        self._decided.pop(key, None)


def _kind(gang: Gang, admission: Admission) -> str:
    """Return of what its members are told at once when it changes: the verdict, its causes, what the gang asks for."""
    words = [type(admission).__name__, str(gang.min_available)]
    if isinstance(admission, NoRoom):
        words += ["of a member"] if admission.member else []
        words += sorted({explain_reason(cause) for cause in set(chain.from_iterable(admission.reasons.values()))})
    return " ".join(words)
