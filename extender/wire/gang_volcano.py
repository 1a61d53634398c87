"""The gang of a Volcano PodGroup, which an annotation names; kube-batch's, torch-on-k8s' and Kubeflow's way as well."""

from typing import Final

from extender.model.claim import BadGangClaim, GangClaim
from extender.model.pod_group import VOLCANO
from extender.wire.core_v1 import Pod
from extender.wire.gang_terms import claim_of

NAMES: Final = ("scheduling.k8s.io/group-name", "scheduling.volcano.sh/group-name")
"""In the order in which they are asked; the first is kube-batch's."""


def volcano_gang(pod: Pod) -> GangClaim | BadGangClaim | None:
    """Return the gang of the PodGroup that the pod's annotation names."""
    annotations = pod.metadata.annotations or {}
    for key in NAMES:
        if key in annotations:
            return claim_of(pod, f"annotation {key}", annotations[key], pod_group=VOLCANO)
    return None
