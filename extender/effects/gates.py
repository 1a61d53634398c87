"""How does kube-scheduler come to know of a held pod? Our scheduling gate is taken off it, and no other.

kube-scheduler tries a pod at once when it has no gate left. To take off a gate that is off already is no error.
"""

from typing import Any, ClassVar

from extender.apiserver import STRATEGIC_MERGE_PATCH
from extender.effects.pod_patches import PodPatch
from extender.model.pod import HOLD_GATE


class Release(PodPatch, frozen=True):
    """A pod that is to lose our gate."""

    subresource: ClassVar[str] = ""
    content_type: ClassVar[str] = STRATEGIC_MERGE_PATCH

    @property
    def body(self) -> dict[str, Any]:
        """What is merged into the pod, beside the UID; lists of gates are merged by name."""
        return {"spec": {"schedulingGates": [{"$patch": "delete", "name": HOLD_GATE}]}}
