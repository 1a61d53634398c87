"""The gang of a PodGroup of the scheduler-plugins project, which a label names; Kubeflow's operator writes it, too."""

from typing import Final

from extender.model.claim import BadGangClaim, GangClaim
from extender.model.pod_group import SCHEDULER_PLUGINS
from extender.wire.core_v1 import Pod
from extender.wire.gang_terms import claim_of

LABEL: Final = "scheduling.x-k8s.io/pod-group"


def scheduler_plugins_gang(pod: Pod) -> GangClaim | BadGangClaim | None:
    """Return the gang of the PodGroup that the pod's label names."""
    name = (pod.metadata.labels or {}).get(LABEL)
    return None if name is None else claim_of(pod, f"label {LABEL}", name, pod_group=SCHEDULER_PLUGINS)
