"""Which gangs get room now?

Plans every gang that a change may have helped, and holds room for those that fit. Deadlines end what nobody came for.
All of it is a function of the state and the time; nothing is written to the API server here.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from msgspec import Struct, structs

from extender.decide.explain import announce_gave_up_room, explain_admission
from extender.decide.gang import admit_gang
from extender.model.announcement import Announcement
from extender.model.claim import GangKey
from extender.model.gang import Gang
from extender.model.pod import Pod, PodShape
from extender.model.verdict import Admission, NoRoom, Placed, WaitsForGang
from extender.state.cluster import Cluster, key_of
from extender.state.reservations import Reservation, Slot, Stage
from extender.state.standings import Standing, Standings

REFUSAL_HOLDS_S = 10.0
"""How long a node that kube-scheduler refused is left out of a gang's plans. Its own view of a node (a pod assumed
there, a volume attached) is settled within a few seconds; its longest back-off is 10 s: a member meets a new plan."""


class Deadlines(Struct, frozen=True):
    """How long room is held, in seconds: for members that do not exist yet, and for members on their way to bind."""

    gathering_s: float
    binding_s: float

    def end_s(self, slot: Slot) -> float:
        """Return when the slot's time is over, on the event loop's clock."""
        return slot.since_s + (self.binding_s if slot.holder else self.gathering_s)


@dataclass(slots=True)
class _Past:
    """What a gang's earlier plans came to: it decides what the next plan may be."""

    refused_until_s: dict[tuple[str, PodShape], float] = field(default_factory=dict)
    gave_up_at: int = 0
    """With how many members it waited in vain for others; below one more, absent ones are not planned for."""
    turn_lost_s: float = 0.0
    """When its room was last taken back because its time was over; who has not had a turn since goes first."""


class Planner:
    """Plans on one cluster state, and takes back what nobody came for."""

    def __init__(self, cluster: Cluster, deadlines: Deadlines) -> None:
        self.standings = Standings()
        self._cluster = cluster
        self._deadlines = deadlines
        self._pasts: dict[GangKey, _Past] = {}

    def plan_gangs(self, now_s: float) -> None:
        """Plan each gang that may fit since the last call: stranded ones first, then the oldest."""
        changes = self._cluster.changes
        keys = changes.take_to_plan()
        if changes.room_freed:
            changes.room_freed = False
            keys.update(self._cluster.gangs)
        planned: set[GangKey] = set()
        for gang in self._in_order(keys):
            if gang.key not in planned:
                planned |= self._plan_together(gang, now_s)

    def refuse(self, pod: Pod, node: str, now_s: float) -> None:
        """Note that kube-scheduler does not take the pod on its planned node, and plan its gang anew."""
        slot = self._cluster.reservations.leave(pod.uid)
        key = key_of(pod)
        if slot is not None and key is not None:
            self._past(key).refused_until_s[node, pod.shape] = now_s + REFUSAL_HOLDS_S
            self._cluster.changes.plan(key)
            self._cluster.changes.free_room()
            self.plan_gangs(now_s)

    def expire(self, now_s: float) -> list[Announcement]:
        """Give back room whose time is over; return what is to be said about it."""
        announcements = []
        for reservation in self._cluster.reservations:
            over = [slot for slot in _limited(reservation) if self._deadlines.end_s(slot) <= now_s]
            if over:
                announcements += self._end_turn(reservation.key, over, now_s)
        for key, past in self._pasts.items():
            lasting = {what: until for what, until in past.refused_until_s.items() if until > now_s}
            if len(lasting) < len(past.refused_until_s):
                past.refused_until_s = lasting
                self._cluster.changes.plan(key)
        return announcements

    def next_deadline_s(self) -> float | None:
        """Return when `expire` has something to do next, if ever."""
        times = [self._deadlines.end_s(slot) for held in self._cluster.reservations for slot in _limited(held)]
        times += [until for past in self._pasts.values() for until in past.refused_until_s.values()]
        return min(times, default=None)

    def _end_turn(self, key: GangKey, over: list[Slot], now_s: float) -> list[Announcement]:
        """Take back the room of a gang that is not whole in time; of one that runs, only what is over."""
        gang = self._cluster.gangs.get(key)
        if gang is not None and gang.satisfied:
            self._cluster.reservations.end(key, over)
        else:
            self._cluster.reservations.end_up_to(key, Stage.HELD)
        self._cluster.changes.free_room()
        self._past(key).turn_lost_s = now_s
        if gang is None or all(slot.holder for slot in over):
            return []
        self._past(key).gave_up_at = gang.present
        return [announce_gave_up_room(gang, self._deadlines.gathering_s)]

    def _in_order(self, keys: Iterable[GangKey]) -> list[Gang]:
        gangs = []
        for key in keys:
            gang = self._cluster.gangs.get(key)
            if gang is not None and gang.waiting:
                gangs.append(gang)
            else:
                self._forget(key)
        return sorted(gangs, key=self._rank)

    def _rank(self, gang: Gang) -> tuple[bool, int, float, float, str]:
        past = self._past(gang.key)
        return not gang.stranded, -gang.priority, past.turn_lost_s, gang.oldest.created_at, gang.key

    def _plan_together(self, gang: Gang, now_s: float) -> set[GangKey]:
        """Plan a gang and those that are bound together with it; either all of them hold enough room or none does."""
        keys = set(gang.groups) | {gang.key}
        gangs = [other for key in sorted(keys) if (other := self._cluster.gangs.get(key)) is not None]
        held_before = {each.key for each in gangs if self._cluster.reservations.get(each.key)}
        for each in gangs:
            self._plan_gang(each, now_s)
        lacking = [key for key in sorted(keys) if self._lacks_room(key)]
        for each in gangs:
            if lacking and each.key not in lacking and not each.satisfied:
                self._stand(each, WaitsForGang(lacking[0]), now_s)
                self._cluster.reservations.end_up_to(each.key, Stage.HELD)
                if each.key in held_before:
                    self._cluster.changes.free_room()
        return keys

    def _lacks_room(self, key: GangKey) -> bool:
        gang = self._cluster.gangs.get(key)
        return gang is None or (not gang.satisfied and self._lacks(gang))

    def _plan_gang(self, gang: Gang, now_s: float) -> None:
        # 1. Above min-available a member is planned only after it was turned away: kube-scheduler places the others.
        if gang.satisfied:
            gang = structs.replace(gang, waiting=tuple(p for p in gang.waiting if self.standings.heard(p.uid)))
        if self._is_settled(gang):
            return

        # 2. Room that was meant for absent members is planned afresh, beside what members hold.
        reservations = self._cluster.reservations
        before = self._held_room(gang.key)
        reservations.end(gang.key, [slot for slot in reservations.slots_of(gang.key) if not slot.holder])
        admission = self._admit(gang)

        # 3. If the rest does not fit beside it, the whole plan may, as far as kube-scheduler does not know it yet.
        if not isinstance(admission, Placed) and self._lacks(gang):
            reservations.end_up_to(gang.key, Stage.PLANNED)
            admission = self._admit(gang)

        # 4. Hold the room, or say why not; a gang that cannot be whole holds nothing.
        if isinstance(admission, Placed):
            reservations.reserve(gang.key, admission.placements, now_s)
            self.standings.drop(gang.key)
        elif not gang.satisfied:
            self._stand(gang, admission, now_s)
            if self._lacks(gang):
                reservations.end_up_to(gang.key, Stage.HELD)
        if before - self._held_room(gang.key):
            self._cluster.changes.free_room()

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

    def _held_room(self, key: GangKey) -> Counter[tuple[str, PodShape]]:
        return Counter((slot.node, slot.shape) for slot in self._cluster.reservations.slots_of(key))

    def _admit(self, gang: Gang) -> Admission:
        past = self._past(gang.key)
        past.gave_up_at = min(past.gave_up_at, gang.present)  # a member that goes and comes is another
        return admit_gang(
            gang,
            self._cluster.snapshot(),
            kept=[slot.as_placement() for slot in self._member_slots(gang)],
            avoid=past.refused_until_s.keys(),
            plan_absent=past.gave_up_at < gang.present,
        )

    def _stand(self, gang: Gang, admission: Admission, now_s: float) -> None:
        names_member = isinstance(admission, NoRoom) and bool(admission.member)
        kind = f"{type(admission).__name__}{' of a member' if names_member else ''}"
        self.standings.put(gang.key, Standing(kind, explain_admission(gang, admission), now_s))
        self._cluster.changes.touch(gang.key)

    def _past(self, key: GangKey) -> _Past:
        return self._pasts.setdefault(key, _Past())

    def _forget(self, key: GangKey) -> None:
        """Let go of what is held for a gang that has nobody left to place."""
        self._cluster.reservations.end_up_to(key, Stage.HELD)
        self.standings.drop(key)
        self._pasts.pop(key, None)


def _limited(reservation: Reservation) -> list[Slot]:
    """Return the slots whose time is limited: a post that is under way has an end of its own."""
    return [slot for slot in reservation.slots if slot.stage < Stage.BINDING]
