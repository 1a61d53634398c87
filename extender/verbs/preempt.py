"""May these victims be killed for the pod? The rule is in `decide/preemption.py`."""

from collections.abc import Mapping

from extender.decide.preemption import worthwhile_node
from extender.model.claim import GangClaim
from extender.model.gang import Gang
from extender.state.cluster import Cluster
from extender.wire.extender_v1 import PreemptionArgs, Victims


def preempt(cluster: Cluster, args: PreemptionArgs) -> Mapping[str, Victims]:
    """Return the nodes on which preemption may go ahead; none of them is a veto, and nobody is killed."""
    pod = cluster.learn_pod(args.pod)
    if pod.gang is None:
        return args.victims
    gang = cluster.gangs.get(pod.gang.key) if isinstance(pod.gang, GangClaim) else None
    if gang is None or pod not in gang.waiting:
        return {}  # filter would reject it, whatever room there is
    if gang.satisfied:
        return args.victims
    node = _worthwhile(cluster, gang, args.victims)
    return {} if node is None else {node: args.victims[node]}


def _worthwhile(cluster: Cluster, gang: Gang, victims: Mapping[str, Victims]) -> str | None:
    kept = [slot.as_placement() for slot in cluster.reservations.slots_of(gang.key) if slot.holder]
    dying = {
        node: [cluster.pods[uid] for uid in killed.uids if uid in cluster.pods] for node, killed in victims.items()
    }
    return worthwhile_node(gang, dying, cluster.snapshot(), kept=kept)
