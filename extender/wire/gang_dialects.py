"""Which gang a pod belongs to, in any of the ways in which systems write it on a pod.

One table of dialects in the order in which they are asked: the first that says anything decides, be it sense or not.
"""

from collections.abc import Callable

from extender.model.claim import BadGangClaim, GangClaim
from extender.wire.core_v1 import Pod
from extender.wire.gang_ack import ack_gang
from extender.wire.gang_koordinator import koordinator_gang
from extender.wire.gang_koordinator_crd import koordinator_crd_gang
from extender.wire.gang_kubeshare import kubeshare_gang
from extender.wire.gang_owner import owner_gang
from extender.wire.gang_scheduler_plugins import scheduler_plugins_gang
from extender.wire.gang_upstream import upstream_gang
from extender.wire.gang_volcano import volcano_gang

Dialect = Callable[[Pod], GangClaim | BadGangClaim | None]

DIALECTS: tuple[Dialect, ...] = (
    upstream_gang,  # spec.schedulingGroup.podGroupName
    koordinator_crd_gang,  # label pod-group.scheduling.sigs.k8s.io; Koordinator's own order of three from here
    ack_gang,  # label pod-group.scheduling.sigs.k8s.io/name
    koordinator_gang,  # annotation gang.scheduling.koordinator.sh/name
    scheduler_plugins_gang,  # label scheduling.x-k8s.io/pod-group
    volcano_gang,  # annotations scheduling.k8s.io/group-name, scheduling.volcano.sh/group-name
    kubeshare_gang,  # labels sharedgpu/group_name, sharedgpu/pod_group_name
    owner_gang,  # the job that made the pod
)


def gang_of(pod: Pod) -> GangClaim | BadGangClaim | None:
    """Return the pod's gang; None when no dialect knows of one."""
    for dialect in DIALECTS:
        claim = dialect(pod)
        if claim is not None:
            return claim
    return None
