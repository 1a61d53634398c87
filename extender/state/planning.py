"""Which gangs get room now?

Plans every gang that a change may have helped, and holds room for those that fit. Deadlines end what nobody came for.
All of it is a function of the state and the time; nothing is written to the API server here.
"""

from collections import Counter
from collections.abc import Iterable

from msgspec import Struct, structs

from extender.decide.explain import announce_gave_up_room, explain_admission
from extender.decide.gang import admit_gang
from extender.model.announcement import Announcement
from extender.model.claim import GangClaim, GangKey
from extender.model.gang import Gang
from extender.model.pod import Pod, PodShape
from extender.model.verdict import Admission, NoRoom, Placed
from extender.state.cluster import Cluster
from extender.state.reservations import Reservation, Stage
from extender.state.standings import Standing, Standings

REFUSAL_HOLDS_S = 10.0
"""How long a node that kube-scheduler refused is left out of a gang's plans. Its own view of a node (a pod assumed
there, a volume attached) is settled within a few seconds; its longest back-off is 10 s: a member meets a new plan."""


class Deadlines(Struct, frozen=True):
    """How long room is held, in seconds: for members that do not exist yet, and for members on their way to bind."""

    gathering_s: float
    binding_s: float

    def end_s(self, reservation: Reservation) -> float:
        """Return when the reservation's time is over, on the event loop's clock."""
        return reservation.since_s + (self.gathering_s if reservation.vacant_count else self.binding_s)


class Planner:
    """Plans on one cluster state; the single writer of its reservations' beginnings and ends."""

    def __init__(self, cluster: Cluster, deadlines: Deadlines) -> None:
        self.standings = Standings()
        self._cluster = cluster
        self._deadlines = deadlines
        self._refused_until_s: dict[GangKey, dict[tuple[str, PodShape], float]] = {}
        self._gave_up_at: dict[GangKey, int] = {}

    def plan_gangs(self, now_s: float) -> None:
        """Plan each gang that may fit since the last call: stranded ones first, then the oldest."""
        changes = self._cluster.changes
        keys = changes.take_to_plan()
        if changes.room_freed:
            changes.room_freed = False
            keys.update(self._cluster.gangs)
        for gang in self._in_order(keys):
            self._plan_gang(gang, now_s)

    def refuse(self, pod: Pod, node: str, now_s: float) -> None:
        """Note that kube-scheduler does not take the pod on its planned node, and plan its gang anew."""
        slot = self._cluster.reservations.leave(pod)
        if slot is not None and isinstance(pod.gang, GangClaim):
            refused = self._refused_until_s.setdefault(pod.gang.key, {})
            refused[node, pod.shape] = now_s + REFUSAL_HOLDS_S
            self._cluster.changes.plan(pod.gang.key)
            self.plan_gangs(now_s)

    def expire(self, now_s: float) -> list[Announcement]:
        """Give back room whose time is over; return what is to be said about it."""
        announcements = []
        for reservation in self._cluster.reservations:
            if not reservation.expires or self._deadlines.end_s(reservation) > now_s:
                continue
            gang = self._cluster.gangs.get(reservation.key)
            if gang is not None and reservation.vacant_count:
                self._gave_up_at[gang.key] = gang.present
                announcements.append(announce_gave_up_room(gang, self._deadlines.gathering_s))
            self._cluster.reservations.end_up_to(reservation.key, Stage.HELD)
            self._cluster.changes.free_room()
        self._end_refusals(now_s)
        return announcements

    def next_deadline_s(self) -> float | None:
        """Return when `expire` has something to do next, if ever."""
        times = [self._deadlines.end_s(held) for held in self._cluster.reservations if held.expires]
        times += [until for refused in self._refused_until_s.values() for until in refused.values()]
        return min(times, default=None)

    def _in_order(self, keys: Iterable[GangKey]) -> list[Gang]:
        gangs = []
        for key in keys:
            gang = self._cluster.gangs.get(key)
            if gang is not None and gang.waiting:
                gangs.append(gang)
            else:
                self._forget(key)
        return sorted(gangs, key=lambda gang: (not gang.stranded, gang.oldest.created_at, gang.key))

    def _plan_gang(self, gang: Gang, now_s: float) -> None:
        # 1. Above min-available a member is planned only after it was turned away: kube-scheduler places the others.
        if gang.satisfied:
            heard = tuple(pod for pod in gang.waiting if self.standings.heard(pod.uid))
            gang = structs.replace(gang, waiting=heard)
        if self._is_settled(gang):
            return

        # 2. Room that was meant for absent members is planned afresh, beside what members hold.
        before = self._held_room(gang.key)
        self._cluster.reservations.end_vacant(gang.key)
        admission = self._admit(gang)

        # 3. If the rest does not fit beside it, the whole plan may, as far as kube-scheduler does not know it yet.
        if not isinstance(admission, Placed) and self._lacks(gang):
            self._cluster.reservations.end_up_to(gang.key, Stage.PLANNED)
            admission = self._admit(gang)

        # 4. Hold the room, or say why not; a gang that cannot be whole holds nothing.
        if isinstance(admission, Placed):
            self._reserve(gang, admission, now_s)
        else:
            member = admission.member if isinstance(admission, NoRoom) else ""
            text = explain_admission(gang, admission)
            self.standings.put(gang.key, Standing((type(admission).__name__, member), text, now_s))
            self._cluster.changes.touch(gang.key)
            if self._lacks(gang):
                self._cluster.reservations.end_up_to(gang.key, Stage.HELD)
        if before - self._held_room(gang.key):
            self._cluster.changes.free_room()

    def _is_settled(self, gang: Gang) -> bool:
        """Whether every member has room, and as much is held for absent ones as are missing."""
        reservation = self._cluster.reservations.get(gang.key)
        slots = reservation.slots if reservation else []
        holders = {slot.holder for slot in slots}
        vacant = reservation.vacant_count if reservation else 0
        missing = max(0, gang.min_available - gang.present)
        return vacant == missing and all(pod.uid in holders for pod in gang.waiting)

    def _lacks(self, gang: Gang) -> bool:
        """Whether what the gang holds is too little to run."""
        reservation = self._cluster.reservations.get(gang.key)
        return gang.bound_count + (len(reservation.slots) if reservation else 0) < gang.min_available

    def _held_room(self, key: GangKey) -> Counter[tuple[str, PodShape]]:
        reservation = self._cluster.reservations.get(key)
        return Counter((slot.node, slot.shape) for slot in (reservation.slots if reservation else ()))

    def _reserve(self, gang: Gang, placed: Placed, now_s: float) -> None:
        self._cluster.reservations.reserve(gang.key, placed.placements, now_s)
        self.standings.drop(gang.key)

    def _admit(self, gang: Gang) -> Admission:
        reservation = self._cluster.reservations.get(gang.key)
        gave_up_at = min(self._gave_up_at.get(gang.key, 0), gang.present)  # a member that goes and comes is another
        self._gave_up_at[gang.key] = gave_up_at
        return admit_gang(
            gang,
            self._cluster.snapshot(),
            kept=[slot.as_placement() for slot in reservation.slots] if reservation else (),
            avoid=self._refused_until_s.get(gang.key, {}).keys(),
            plan_absent=gave_up_at < gang.present,
        )

    def _end_refusals(self, now_s: float) -> None:
        for key, refused in tuple(self._refused_until_s.items()):
            lasting = {what: until for what, until in refused.items() if until > now_s}
            if len(lasting) < len(refused):
                self._cluster.changes.plan(key)
            if lasting:
                self._refused_until_s[key] = lasting
            else:
                del self._refused_until_s[key]

    def _forget(self, key: GangKey) -> None:
        """Let go of what is held for a gang that has nobody left to place."""
        self._cluster.reservations.end_up_to(key, Stage.HELD)
        self.standings.drop(key)
        self._refused_until_s.pop(key, None)
        self._gave_up_at.pop(key, None)
