"""The gang that `spec.schedulingGroup` names: upstream Kubernetes' own dialect (KEP-4671, alpha in 1.35 and 1.36)."""

from extender.model.claim import BadGangClaim, GangClaim
from extender.model.pod_group import UPSTREAM
from extender.wire.core_v1 import Pod
from extender.wire.gang_terms import claim_of


def upstream_gang(pod: Pod) -> GangClaim | BadGangClaim | None:
    """Return the gang of the PodGroup that the pod's spec names."""
    group = pod.spec.scheduling_group
    if group is None or group.pod_group_name is None:
        return None
    return claim_of(pod, "spec.schedulingGroup.podGroupName", group.pod_group_name, pod_group=UPSTREAM)
