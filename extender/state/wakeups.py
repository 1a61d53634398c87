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
from extender.state.schedulers_view import agrees_to, without_planned
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
        due = [(pod, node) for pod in pods.values() if (node := self._node_to_call(pod, now_s)) is not None]
        return [(pod, node) for pod, node in self._agreeable(due, now_s) if self._note_call(pod, node, now_s)]

    def next_s(self) -> float | None:
        """Return when a call will count as lost next, on the event loop's clock."""
        return min((call.over_s for call in self._calls.values()), default=None)

    def forget(self, uid: PodUid) -> None:
        """Forget a pod that is gone."""
        self._calls.pop(uid, None)

    def _node_to_call(self, pod: Pod, now_s: float) -> str | None:
        """Return the node to nominate, or None where no call is due; it may still have to wait for its siblings."""
        target = self._cluster.node_to_try(pod) if self._may_sleep(pod) else ""
        if not target:
            self.forget(pod.uid)
            return None
        call = self._calls.get(pod.uid)
        if call is not None and call.plan is self._plan_of(pod):
            call.arrived = call.arrived or pod.nominated_node == call.node
            call.wiped = call.arrived and pod.nominated_node != call.node
            if now_s < call.over_s and not (call.unsaid and pod.turned_away):
                return None
        return "" if pod.nominated_node == target else target

    def _agreeable(self, due: list[tuple[Pod, str]], now_s: float) -> list[tuple[Pod, str]]:
        """Leave out whose node kube-scheduler cannot agree to before it has placed other members.

        All are asked about in one view of the cluster: making it means a look at every node.
        """
        if not any(pod.shape.relations for pod, _ in due):
            return due
        seen, agreeable = without_planned(self._cluster), []
        for pod, node in due:
            slot = self._cluster.reservations.slot_of(pod.uid)
            if slot is None or agrees_to(seen, pod, slot):
                agreeable.append((pod, node))
            elif pod.uid in self._calls:
                self._calls[pod.uid].at_s = now_s  # it is looked at again after as long a pause
        return agreeable

    def _note_call(self, pod: Pod, node: str, now_s: float) -> bool:
        """Remember the call, and say whether it is made now: not where the pod may not sleep yet."""
        call, plan = self._calls.get(pod.uid), self._plan_of(pod)
        is_repeat = call is not None and call.plan is plan
        if not is_repeat and not pod.turned_away:
            self._calls[pod.uid] = _Call(plan, now_s, 0, "", unsaid=True)
            return False
        repeats = call.repeats + 1 if call is not None and is_repeat and not call.unsaid else 0
        self._calls[pod.uid] = _Call(plan, now_s, repeats, node)
        return True

    def _plan_of(self, pod: Pod) -> Slot | Earmark | None:
        return self._cluster.reservations.slot_of(pod.uid) or self._cluster.earmark_of(pod)

    def _may_sleep(self, pod: Pod) -> bool:
        return not pod.node_name and (pod.turned_away or self._standings.heard(pod.uid))
