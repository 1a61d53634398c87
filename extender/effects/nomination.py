"""On which node does kube-scheduler look first for a waiting pod? A change of `status.nominatedNodeName`.

The patch wakes a rejected pod within 10 ms, makes kube-scheduler try only that node, and holds it against pods of equal
or lower priority.
"""

from typing import Any, ClassVar

from extender.apiserver import MERGE_PATCH
from extender.effects.pod_patches import PodPatch


class Nomination(PodPatch, frozen=True):
    """A pod and the node that it is to be tried on first; an empty `node` takes a nomination back."""

    subresource: ClassVar[str] = "/status"
    content_type: ClassVar[str] = MERGE_PATCH

    node: str

    @property
    def body(self) -> dict[str, Any]:
        """What is merged into the pod, beside the UID."""
        return {"status": {"nominatedNodeName": self.node or None}}
