"""A stand-in for Volcano's vGPU device plugin: whose card is it that the kubelet asks for?

Of all pods of the cluster that name the node and have as many cards on their list, the one with the oldest time. Its
next container's cards are taken off the list; when nothing is left, the phase is `success` and the time one that never
comes. Mirrors pkg/util of volcano-vgpu-device-plugin.
"""

from collections.abc import Mapping

from e2e.client import ApiClient, Object
from e2e.plugins.kubelet import AllocationError, Environment
from e2e.plugins.vgpu import cut_next, environment_of

REGISTER = "volcano.sh/node-vgpu-register"
_NEVER = 2**64 - 1
_NODE = "volcano.sh/vgpu-node"
_TIME = "volcano.sh/vgpu-time"
_TO_ALLOCATE = "volcano.sh/devices-to-allocate"
_PHASE = "volcano.sh/bind-phase"


def registered(*uuids: str, mib: int = 16384, count: int = 10) -> Mapping[str, str]:
    """Return the annotations with which the plugin registers these cards on its node."""
    cards = [f"{uuid},{count},{mib},NVIDIA-Tesla V100,true,hami-core" for uuid in uuids]
    return {REGISTER: "".join(f"{card}:" for card in cards), "volcano.sh/node-vgpu-handshake": "Reported 2026"}


class VolcanoVgpuStandIn:
    """The plugins of all nodes."""

    resource = "volcano.sh/vgpu-number"

    def __init__(self, api: ApiClient) -> None:
        self._api = api

    def allocate(self, node: str, count: int) -> Environment:
        """Return the environment of a container that asks for so many cards; raises AllocationError."""
        pods = [pod for pod in self._api.get("/api/v1/pods")["items"] if _said(pod).get(_NODE) == node]
        candidates = [pod for pod in pods if _said(pod).get(_TO_ALLOCATE, "").count(",") == 3 * count]
        if not candidates:
            raise AllocationError("cannot get valid pod")
        pod = min(candidates, key=lambda each: int(_said(each).get(_TIME, _NEVER)))
        cut = cut_next(_said(pod)[_TO_ALLOCATE])
        if cut is None or len(cut.cards) != count:
            self._patch(pod, {_PHASE: "failed", _TIME: str(_NEVER)})
            raise AllocationError("the device number does not match")
        self._patch(pod, {_TO_ALLOCATE: cut.rest})
        if cut_next(cut.rest) is None:
            self._patch(pod, {_PHASE: "success", _TIME: str(_NEVER)})
        return environment_of(cut.cards)

    def _patch(self, pod: Object, annotations: Mapping[str, str]) -> None:
        path = f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}"
        self._api.patch(path, {"metadata": {"annotations": dict(annotations)}})


def _said(pod: Object) -> dict[str, str]:
    said: dict[str, str] = pod["metadata"].get("annotations", {})
    return said
