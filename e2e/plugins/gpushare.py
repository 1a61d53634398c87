"""A stand-in for Alibaba Cloud's gpushare device plugin: whose memory is it that the kubelet asks for?

Of the node's pending pods that are not assigned, the first by ASSUME_TIME whose limits come to as much. So of two pods
of one size that wait together, the kubelet's first gets what was meant for the older choice. Where none is found the
container gets a name of no GPU, with which it cannot start. Mirrors pkg/gpu/nvidia of gpushare-device-plugin.
"""

import time

from e2e.client import ApiClient, Object
from e2e.plugins.kubelet import Environment

_ASSUME_TIME = "ALIYUN_COM_GPU_MEM_ASSUME_TIME"
_ASSIGNED = "ALIYUN_COM_GPU_MEM_ASSIGNED"
_CARD = "ALIYUN_COM_GPU_MEM_IDX"
_OF_POD = "ALIYUN_COM_GPU_MEM_POD"


class GpushareStandIn:
    """The plugins of all nodes."""

    resource = "aliyun.com/gpu-mem"

    def __init__(self, api: ApiClient) -> None:
        self._api = api

    def allocate(self, node: str, count: int) -> Environment:
        """Return the environment of a container that asks for so many units."""
        pods = self._api.get(f"/api/v1/pods?fieldSelector=spec.nodeName%3D{node},status.phase%3DPending")["items"]
        candidates = [pod for pod in pods if self._is_assumed(pod) and self._units_of(pod) == count]
        if not candidates:
            return {"NVIDIA_VISIBLE_DEVICES": f"no-gpu-has-{count}GiB-to-run", _CARD: "-1"}
        pod = min(candidates, key=lambda each: int(_annotations(each)[_ASSUME_TIME]))
        card = _annotations(pod)[_CARD]
        assigned = {_ASSIGNED: "true", _ASSUME_TIME: str(time.time_ns())}
        path = f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}"
        self._api.patch(path, {"metadata": {"annotations": assigned}})
        return {"NVIDIA_VISIBLE_DEVICES": card, _CARD: card, _OF_POD: str(count)}

    def _is_assumed(self, pod: Object) -> bool:
        said = _annotations(pod)
        return self._units_of(pod) > 0 and _ASSUME_TIME in said and said.get(_ASSIGNED) == "false"

    def _units_of(self, pod: Object) -> int:
        limits = (each.get("resources", {}).get("limits", {}) for each in pod["spec"]["containers"])
        return sum(int(each.get(self.resource, "0")) for each in limits)


def _annotations(pod: Object) -> dict[str, str]:
    said: dict[str, str] = pod["metadata"].get("annotations", {})
    return said
