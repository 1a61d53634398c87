"""Where do bind calls wait until their gang is complete?

kube-scheduler asks for each member's binding in a goroutine of its own and counts the member on its node meanwhile.
The calls of a gang are held here until min-available members are in place or held; then all of them go on together. A
member that loses its room meanwhile has its call refused, before anything was posted for it.
"""

from asyncio import Future, get_running_loop
from collections.abc import Callable, Iterable

from msgspec import Struct

from extender.decide.explain import explain_lost_room, explain_superseded
from extender.model.claim import GangKey
from extender.model.gang import Gang
from extender.model.pod import Pod, PodUid
from extender.observe.metrics import Metrics
from extender.state.cluster import Cluster
from extender.state.reservations import Stage


class _HeldCall(Struct):
    """A bind call that waits; `verdict` will be empty to go on, or say why not."""

    verdict: "Future[str]"
    is_connected: Callable[[], bool]


class Barrier:
    """The held bind calls, by gang. `opened` are gangs let through here that are not seen whole yet."""

    def __init__(self, cluster: Cluster, metrics: Metrics) -> None:
        self.opened: set[GangKey] = set()
        self._cluster = cluster
        self._metrics = metrics
        self._held: dict[GangKey, dict[PodUid, _HeldCall]] = {}

    async def wait(self, pod: Pod, key: GangKey, node: str, is_connected: Callable[[], bool]) -> str:
        """Return "" when the member may be bound to the node, or why it may not."""
        gang = self._cluster.gangs.get(key)
        slot = self._cluster.reservations.slot_of(pod.uid)
        if slot is None and gang is not None and gang.satisfied:
            return ""
        if slot is None or slot.node != node:
            return explain_lost_room(key)
        if slot.stage is Stage.BINDING:
            return ""
        call = _HeldCall(get_running_loop().create_future(), is_connected)
        self._hold(key, pod.uid, call)
        self._cluster.reservations.advance(key, slot, Stage.HELD)
        with self._metrics.held_binds.track_inprogress():
            return await call.verdict

    def reconsider(self, keys: Iterable[GangKey]) -> None:
        """Let through, or refuse, the held calls of these gangs and those they concern, as their state says now."""
        for key in self._cluster.gangs.concerned(keys):
            if self._cluster.gangs.get(key) is None:
                self.opened.discard(key)
            calls = self._held.get(key)
            if not calls:
                continue
            for uid, call in tuple(calls.items()):
                slot = self._cluster.reservations.slot_of(uid)
                if slot is None or slot.stage < Stage.HELD:  # given back, and perhaps planned anew since
                    self._end(key, uid, explain_lost_room(key))
                elif not call.is_connected():
                    self._cluster.reservations.advance(key, slot, Stage.ACCEPTED)
                    self._end(key, uid, explain_superseded(key))
            gang = self._cluster.gangs.get(key)
            together = self._cluster.gangs.together(gang) if gang is not None else {}
            if together and all(each is not None and self._is_complete(each) for each in together.values()):
                for each in together:
                    self._open(each)

    def refuse_all(self) -> None:
        """Refuse every held call, since nobody will let it through any more."""
        for key, calls in tuple(self._held.items()):
            for uid in tuple(calls):
                self._end(key, uid, explain_superseded(key))

    def _is_complete(self, gang: Gang) -> bool:
        ready = [slot.role for slot in self._cluster.reservations.slots_of(gang.key) if slot.stage >= Stage.HELD]
        return gang.satisfied or gang.is_enough(ready)

    def _open(self, key: GangKey) -> None:
        gang = self._cluster.gangs.get(key)
        if gang is not None and not gang.satisfied:
            self.opened.add(key)
        self._cluster.reservations.open_barrier(key)
        for uid in tuple(self._held.get(key, ())):
            self._end(key, uid, "")

    def _hold(self, key: GangKey, uid: PodUid, call: _HeldCall) -> None:
        # The newest call for a pod counts: its kube-scheduler gave up on the older one, or was restarted.
        self._end(key, uid, explain_superseded(key))
        self._held.setdefault(key, {})[uid] = call

    def _end(self, key: GangKey, uid: PodUid, verdict: str) -> None:
        calls = self._held.get(key, {})
        call = calls.pop(uid, None)
        if call is not None and not call.verdict.done():
            call.verdict.set_result(verdict)
        if not calls:
            self._held.pop(key, None)
