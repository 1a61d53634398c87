"""A stand-in for HAMi's device plugin: whose card is it that the kubelet asks for?

The pod's that the node's lock names; without a lock, that of the first pending pod there whose phase is allocating or
success. Its next container's cards are taken off the list; when nothing is left, the phase is `success` and the lock
released. Whose list does not have as many cards has failed, and the lock is released as well. Mirrors HAMi's
pkg/device-plugin/nvidiadevice and pkg/util.
"""

from collections.abc import Mapping

from e2e.client import ApiClient, Object
from e2e.plugins.kubelet import AllocationError, Environment
from e2e.plugins.vgpu import cut_next, environment_of

LOCK = "hami.io/mutex.lock"
REGISTER = "hami.io/node-nvidia-register"
_NODE = "hami.io/vgpu-node"
_TO_ALLOCATE = "hami.io/vgpu-devices-to-allocate"
_PHASE = "hami.io/bind-phase"


def registered(*uuids: str, mib: int = 16384, count: int = 10) -> Mapping[str, str]:
    """Return the annotations with which the plugin registers these cards on its node."""
    cards = [f"{uuid},{count},{mib},100,NVIDIA-Tesla V100,0,true" for uuid in uuids]
    return {REGISTER: "".join(f"{card}:" for card in cards), "hami.io/node-handshake": "Reported 2026.01.02 03:04:05"}


class HamiStandIn:
    """The plugins of all nodes."""

    resource = "nvidia.com/gpu"

    def __init__(self, api: ApiClient) -> None:
        self._api = api

    def allocate(self, node: str, count: int) -> Environment:
        """Return the environment of a container that asks for so many cards; raises AllocationError."""
        pod = self._locked_for(node) or self._pending_on(node)
        if pod is None:
            raise AllocationError(f"no binding pod found on node {node}")
        cut = cut_next(pod["metadata"].get("annotations", {}).get(_TO_ALLOCATE, ""))
        if cut is None or len(cut.cards) != count:
            self._finish(node, pod, {_PHASE: "failed"})
            raise AllocationError("the device number does not match")
        self._patch(pod, {_TO_ALLOCATE: cut.rest})
        if cut_next(cut.rest) is None:
            self._finish(node, pod, {_PHASE: "success"})
        return environment_of(cut.cards)

    def _locked_for(self, node: str) -> Object | None:
        annotations = self._api.get(f"/api/v1/nodes/{node}")["metadata"].get("annotations", {})
        _, _, owner = annotations.get(LOCK, "").partition(",")
        namespace, _, name = owner.partition(",")
        return self._api.find(f"/api/v1/namespaces/{namespace}/pods/{name}") if name else None

    def _pending_on(self, node: str) -> Object | None:
        pods = self._api.get(f"/api/v1/pods?fieldSelector=spec.nodeName%3D{node},status.phase%3DPending")["items"]
        said = ((pod, pod["metadata"].get("annotations", {})) for pod in pods)
        return next(
            (pod for pod, its in said if its.get(_NODE) == node and its.get(_PHASE) in ("allocating", "success")), None
        )

    def _finish(self, node: str, pod: Object, annotations: Mapping[str, str]) -> None:
        self._patch(pod, annotations)
        self._api.patch(f"/api/v1/nodes/{node}", {"metadata": {"annotations": {LOCK: None}}})

    def _patch(self, pod: Object, annotations: Mapping[str, str]) -> None:
        path = f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}"
        self._api.patch(path, {"metadata": {"annotations": dict(annotations)}})
