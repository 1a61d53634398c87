"""Which members sleep in kube-scheduler although they can have room, and on which node should they be tried?

A pod that was turned away sleeps until an event concerns it; a change of its own `status.nominatedNodeName` does. Such
a change can get lost (an attempt under way wipes it, the API server does not take it), so it is repeated, ever more
seldom, as long as room is held, or others are to be killed for the pod. That it sleeps, kube-scheduler writes on it;
where that write got lost, what we told the pod says the same.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from extender.model.pod import Pod, PodUid
from extender.state.cluster import Cluster
from extender.state.doubling import doubled_s
from extender.state.earmarks import Earmark
from extender.state.reservations import Slot
from extender.state.schedulers_view import waits_for_siblings
from extender.state.standings import Standings

SILENT_S = 5.0
"""After so long without a filter call a nomination counts as lost; 1,000 members are tried within it."""

WIPED_S = 0.1
"""So long a nomination that was wiped waits for its first repeat: five times what an attempt takes."""

UNSAID_S = 1.0
"""After so long a pod that we turned away sleeps though its condition does not say so: that is written within 10 ms."""

LONGEST_S = 30.0
"""Room is held for a minute: at least one repeat falls into it."""


@dataclass(slots=True)
class _Call:
    plan: Slot | Earmark | None
    at_s: float
    repeats: int
    node: str
    arrived: bool = False
    wiped: bool = False
    unsaid: bool = False
    """Whether it was not called yet, since it may not sleep by then."""

    @property
    def over_s(self) -> float:
        if self.unsaid:
            return self.at_s + UNSAID_S
        return self.at_s + doubled_s(WIPED_S if self.wiped else SILENT_S, self.repeats, LONGEST_S)


class WakeUps:
    """Remembers which members were called, and when to call again."""

    def __init__(self, cluster: Cluster, standings: Standings) -> None:
        self._cluster = cluster
        self._standings = standings
        self._calls: dict[PodUid, _Call] = {}

    def due(self, changed: Iterable[Pod], now_s: float) -> list[tuple[Pod, str]]:
        """Return pods to nominate now, of those for whom something changed and of those whose calls got lost.

        Each comes with its node; "" where it carries that nomination already and must be freed of it to be woken.
        """
        known = self._calls
        pods = {pod.uid: pod for pod in changed if self._may_sleep(pod) or pod.uid in known}
        for uid, call in self._calls.items():
            if call.over_s <= now_s and uid in self._cluster.pods:
                pods[uid] = self._cluster.pods[uid]
        return [(pod, node) for pod in pods.values() if (node := self._call(pod, now_s)) is not None]

    def next_s(self) -> float | None:
        """Return when a call will count as lost next, on the event loop's clock."""
        return min((call.over_s for call in self._calls.values()), default=None)

    def forget(self, uid: PodUid) -> None:
        """Forget a pod that is gone."""
        self._calls.pop(uid, None)

    def _call(self, pod: Pod, now_s: float) -> str | None:
        target = self._cluster.node_to_try(pod) if self._may_sleep(pod) else ""
        if not target:
            self.forget(pod.uid)
            return None
        slot = self._cluster.reservations.slot_of(pod.uid)
        if slot is not None and waits_for_siblings(self._cluster, pod, slot):
            return None
        call = self._calls.get(pod.uid)
        plan = slot or self._cluster.earmark_of(pod)
        if call is not None and call.plan is plan:
            call.arrived = call.arrived or pod.nominated_node == call.node
            call.wiped = call.arrived and pod.nominated_node != call.node
            if now_s < call.over_s and not (call.unsaid and pod.turned_away):
                return None
        elif not pod.turned_away:
            self._calls[pod.uid] = _Call(plan, now_s, 0, "", unsaid=True)
            return None
        repeats = call.repeats + 1 if call is not None and call.plan is plan and not call.unsaid else 0
        node = "" if pod.nominated_node == target else target
        self._calls[pod.uid] = _Call(plan, now_s, repeats, node)
        return node

    def _may_sleep(self, pod: Pod) -> bool:
        return not pod.node_name and (pod.turned_away or self._standings.heard(pod.uid))
