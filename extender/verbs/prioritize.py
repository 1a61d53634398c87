"""Which of these nodes is best for the pod? The rules are in `decide/scoring.py`."""

from extender.decide.scoring import score_nodes
from extender.model.claim import GangClaim
from extender.state.cluster import Cluster
from extender.wire.extender_v1 import ExtenderArgs


def prioritize(cluster: Cluster, args: ExtenderArgs) -> dict[str, int]:
    """Return each offered node's score, 0 to 10."""
    claim = args.pod.gang
    gang = cluster.gangs.get(claim.key) if isinstance(claim, GangClaim) else None
    return score_nodes(args.pod.shape, gang, args.node_names, cluster.snapshot())
