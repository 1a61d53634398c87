"""The gang that two labels declare, name and min-available: Alibaba Cloud's way, Koordinator's lightweight one."""

from typing import Final

from extender.model.claim import BadGangClaim, GangClaim
from extender.model.pod_group import KOORDINATOR
from extender.wire.core_v1 import Pod
from extender.wire.gang_terms import claim_of

LABEL: Final = "pod-group.scheduling.sigs.k8s.io/name"


def ack_gang(pod: Pod) -> GangClaim | BadGangClaim | None:
    """Return the gang that the pod's labels declare."""
    name = (pod.metadata.labels or {}).get(LABEL)
    return None if name is None else claim_of(pod, f"label {LABEL}", name, pod_group=KOORDINATOR)
