"""May these victims be killed for the pod?

A gang's member may have killed what the plan of its whole gang gives it, on its planned node, and nobody else. A single
pod, and a further member of a gang that runs, is steered to where no running gang breaks. The rules are in
`decide/preemption.py`.
"""

from collections.abc import Mapping

from extender.decide.budgets import violating
from extender.decide.preemption import sparing_nodes
from extender.model.claim import GangKey
from extender.model.gang import Gang
from extender.model.pod import Pod
from extender.state.cluster import Cluster
from extender.state.membership import key_of
from extender.state.past import REFUSAL_HOLDS_S
from extender.state.planning import Planner
from extender.state.reservations import Stage
from extender.state.schedulers_view import waits_for_siblings
from extender.wire.extender_v1 import PreemptionArgs, Victims


class Preempt:
    """The preempt verb on one cluster state."""

    def __init__(self, cluster: Cluster, planner: Planner) -> None:
        self._cluster = cluster
        self._planner = planner

    def answer(self, args: PreemptionArgs, now_s: float) -> Mapping[str, Victims]:
        """Return the nodes on which preemption may go ahead; none of them is a veto, and nobody is killed."""
        pod = self._cluster.learn_pod(args.pod)
        if pod.gang is None:
            return self._sparing(args)
        key = key_of(pod)
        gang = self._cluster.gangs.get(key) if key is not None else None
        if gang is None or pod not in gang.waiting:
            return {}  # filter would reject it, whatever room there is
        goes_alone = gang.satisfied and not pod.shape.is_placed_by_us
        return self._sparing(args) if goes_alone else self._part_of(pod, gang.key, now_s)

    def _part_of(self, pod: Pod, key: GangKey, now_s: float) -> Mapping[str, Victims]:
        """Return what the gang's plan gives the member; its node may well be one that was not offered.

        The plan may be older than another one that comes before it: so it is looked at again before anybody dies. Where
        the member has had room for a while, kube-scheduler refuses that: it only asks where no node passes its filters.
        """
        slot = self._cluster.reservations.slot_of(pod.uid)
        is_old = slot is not None and slot.stage < Stage.HELD and now_s >= slot.since_s + REFUSAL_HOLDS_S
        if slot is not None and is_old and not waits_for_siblings(self._cluster, pod, slot):
            self._planner.refuse(pod, [slot.node], now_s)
        self._cluster.changes.plan(key)
        self._planner.plan_gangs(now_s)
        victims = self._cluster.victims_of(pod)
        if not victims:
            return {}
        violations = len(violating(victims, self._cluster.budgets.values()))
        return {victims[0].node_name: Victims(tuple(victim.uid for victim in victims), violations)}

    def _sparing(self, args: PreemptionArgs) -> Mapping[str, Victims]:
        victims = {
            node: [self._cluster.pods[uid] for uid in killed.uids if uid in self._cluster.pods]
            for node, killed in args.victims.items()
        }
        return {node: args.victims[node] for node in sparing_nodes(victims, self._gang_of)}

    def _gang_of(self, pod: Pod) -> Gang | None:
        key = key_of(pod)
        return self._cluster.gangs.get(key) if key is not None else None
