"""Which pods are to lose our scheduling gate now?

Members go when their whole gang has room, and when kube-scheduler, which does not know of room that is only planned,
can grant what they ask of their siblings. Where others are to be preempted for a gang, the members that they make way
for go ahead: kube-scheduler kills only for pods that it knows. Whoever does not wait for such a gang has no use for the
gate and loses it at once: a pod without a gang or of a foreign scheduler, a further member of a gang that runs. Members
of a gang that waits, that nobody declared, or whose own metadata is wrong keep theirs.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from extender.decide.trial import Trial
from extender.model.claim import BadGangClaim, GangKey
from extender.model.gang import Gang
from extender.model.pod import Pod, PodUid
from extender.state.cluster import Cluster
from extender.state.doubling import doubled_s
from extender.state.membership import key_of
from extender.state.schedulers_view import without_planned

SILENT_S = 5.0
"""After so long a release counts as lost. One takes milliseconds; one that still waits for its turn is not doubled."""

LONGEST_S = 30.0
"""Room is held for a minute: at least one repeat falls into it. What we may not do is tried as seldom."""


@dataclass(slots=True)
class _Call:
    at_s: float
    repeats: int = 0

    @property
    def over_s(self) -> float:
        return self.at_s + doubled_s(SILENT_S, self.repeats, LONGEST_S)


class Releases:
    """Remembers whose gates were to be taken off, and when to say so again.

    The time of a member's room begins anew when its gate is to be taken off, and again when it is off: before that
    kube-scheduler does not know the member.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._calls: dict[PodUid, _Call] = {}
        self._changed: set[GangKey] = set()
        self._strays: set[PodUid] = set()

    def look_at(self, keys: Iterable[GangKey], strays: Iterable[PodUid]) -> None:
        """Have the next `due` look at these gangs, and at these pods without one."""
        self._changed.update(keys)
        self._strays.update(strays)

    def due(self, now_s: float) -> list[Pod]:
        """Return the pods whose gates are to be taken off now, of gangs that changed and of calls that got lost."""
        self._end_calls(now_s)
        lost = {uid for uid, call in self._calls.items() if call.over_s <= now_s}
        uids, self._strays = self._strays | lost, set()
        pods = [pod for uid in uids if (pod := self._cluster.pods.get(uid)) is not None]
        keys = self._changed.union(key for pod in pods if (key := key_of(pod)) is not None)
        self._changed = set()
        going = [pod for pod in pods if self._goes_alone(pod)]
        for key in self._cluster.gangs.concerned(keys):
            going += self._look_at_gang(key)
        for uid in lost.difference(pod.uid for pod in going):  # it is to keep its gate by now: nothing is overdue
            self._calls.pop(uid, None)
        return [pod for pod in going if self._call(pod.uid, now_s)]

    def next_s(self) -> float | None:
        """Return when a call will count as lost next, on the event loop's clock."""
        return min((call.over_s for call in self._calls.values()), default=None)

    def is_wanted(self, uid: PodUid) -> bool:
        """Whether the pod's gate is still to be taken off; what it asks of its siblings was looked at before.

        Each gate is asked about by itself, and for that one every node would have to be looked at.
        """
        pod = self._cluster.pods.get(uid)
        key = key_of(pod) if pod is not None else None
        if pod is None or key is None:
            return pod is not None and self._goes_alone(pod)
        if not pod.held or pod.finished or pod.terminating:
            return False
        gang = self._cluster.gangs.get(key)
        goes_with_it = gang is not None and self._may_go(gang) and self._is_next(pod, gang, None)
        return goes_with_it or self._goes_ahead(pod, key)

    def _goes_alone(self, pod: Pod) -> bool:
        """Whether a pod goes that is no member of a gang; one that wants to be, but says it wrongly, stays."""
        stays = isinstance(pod.gang, BadGangClaim) and self._cluster.gangs.serves(pod)
        return pod.held and key_of(pod) is None and not stays

    def _look_at_gang(self, key: GangKey) -> list[Pod]:
        going = self._going(key)
        uids = {pod.uid for pod in going}
        for pod in self._cluster.gangs.held(key):
            if pod.uid not in uids:
                self._calls.pop(pod.uid, None)
                if pod.shape.relations and self._cluster.reservations.slot_of(pod.uid):
                    self._changed.add(key)  # whom it waits for may be of any gang
        return going

    def _going(self, key: GangKey) -> list[Pod]:
        gangs = self._cluster.gangs
        held = gangs.held(key)
        gang = gangs.get(key) if held else None
        going = [pod for pod in held if self._goes_ahead(pod, key)]
        if gang is not None and self._may_go(gang):
            ours = [pod for pod in held if pod not in going]
            seen = without_planned(self._cluster) if any(pod.shape.relations for pod in ours) else None
            going += [pod for pod in ours if self._is_next(pod, gang, seen)]
        return going

    def _goes_ahead(self, pod: Pod, key: GangKey) -> bool:
        """Whether it goes before its gang may: it is not ours, or others are preempted for its gang."""
        earmark = self._cluster.earmarks.get(key)
        parts = earmark.parts if earmark else {}
        is_part = pod.uid in parts or (bool(parts) and self._cluster.reservations.slot_of(pod.uid) is not None)
        return is_part or not self._cluster.gangs.serves(pod)

    def _may_go(self, gang: Gang) -> bool:
        return gang.satisfied or self._is_whole(gang)

    def _is_whole(self, gang: Gang) -> bool:
        """Whether it and those that are bound together with it have all members that they need, and room for them."""
        return all(self._has_room(each) for each in self._cluster.gangs.together(gang).values())

    def _has_room(self, gang: Gang | None) -> bool:
        if gang is None or gang.satisfied:
            return gang is not None
        slots = (self._cluster.reservations.slot_of(pod.uid) for pod in gang.waiting)
        return gang.is_enough([slot.role for slot in slots if slot is not None])

    def _is_next(self, pod: Pod, gang: Gang, seen: Trial | None) -> bool:
        """Whether a member of a gang that may go goes now, before its siblings have; `seen` is without planned room."""
        slot = self._cluster.reservations.slot_of(pod.uid)
        if slot is None:
            return gang.satisfied and not pod.shape.is_placed_by_us
        return seen is None or not pod.shape.relations or not seen.fit(pod.occupant, slot.node)

    def _call(self, uid: PodUid, now_s: float) -> bool:
        call = self._calls.get(uid)
        if call is None:
            self._cluster.reservations.restart(uid, now_s)
        elif now_s < call.over_s:
            return False
        self._calls[uid] = _Call(now_s, call.repeats + 1 if call else 0)
        return True

    def _end_calls(self, now_s: float) -> None:
        """Forget the pods that are gone or have lost their gate."""
        for uid in tuple(self._calls):
            pod = self._cluster.pods.get(uid)
            if pod is None or not pod.held:
                self._cluster.reservations.restart(uid, now_s)
                del self._calls[uid]
