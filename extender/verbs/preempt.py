"""May these victims be killed for the pod? The rule is in `decide/preemption.py`."""

from collections.abc import Mapping

from extender.decide.preemption import worthwhile_node
from extender.model.claim import BadGangClaim, GangClaim
from extender.model.gang import Gang
from extender.state.cluster import Cluster
from extender.wire.extender_v1 import PreemptionArgs, Victims


def preempt(cluster: Cluster, args: PreemptionArgs) -> Mapping[str, Victims]:
    """Return the nodes on which preemption may go ahead; none of them is a veto, and nobody is killed."""
    pod = cluster.learn_pod(args.pod)
    if pod.gang is None:
        return args.victims
    if isinstance(pod.gang, BadGangClaim):
        return {}
    gang = cluster.gangs.get(pod.gang.key)
    if cluster.gangs.undeclared(pod.gang.key):
        return {}
    if gang is None or gang.satisfied:
        return args.victims
    node = _worthwhile(cluster, gang, pod.gang, args.victims)
    return {} if node is None else {node: args.victims[node]}


def _worthwhile(cluster: Cluster, gang: Gang, claim: GangClaim, victims: Mapping[str, Victims]) -> str | None:
    reservation = cluster.reservations.get(claim.key)
    kept = [slot.as_placement() for slot in reservation.slots if slot.holder] if reservation else []
    dying = {
        node: [cluster.pods[uid] for uid in killed.uids if uid in cluster.pods] for node, killed in victims.items()
    }
    return worthwhile_node(gang, dying, cluster.snapshot(), kept=kept)
