"""A stand-in for device plugin and kubelets of the nodes with Volcano's vGPUs, which never answers for some pods.

Which pods it does not know is chance, by the seed and the pod's name. Such a pod stays bound and Pending, and nobody
else gets a card of its node in that way. So on half of the nodes it answers always: else nothing might fit any more.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from random import Random

from e2e.background import in_background
from e2e.client import ApiClient, ApiError, Object
from e2e.cluster import Namespace
from e2e.faults.reading import node_of
from e2e.faults.rules import Tally
from e2e.faults.weather import WHERE
from e2e.plugins.kubelet import PluginKubelet
from e2e.plugins.volcano_vgpu import VolcanoVgpuStandIn

_LOOK_S = 0.5
_NEVER = 0.25  # a part of the pods
_FORGETFUL = ("vgpu-0", "vgpu-1")


@contextmanager
def forgetful_plugin(namespace: Namespace, seed: int, tally: Tally) -> Iterator[None]:
    """Play both in a thread of their own; fails at the end when it failed."""
    with in_background(partial(_play, namespace, seed, tally)):
        yield


def _play(namespace: Namespace, seed: int, tally: Tally, ended: threading.Event) -> None:
    api = ApiClient.from_kubeconfig(namespace.cluster.kubeconfig)
    kubelet, unknown = PluginKubelet(api, VolcanoVgpuStandIn(api)), set[str]()
    try:
        while not ended.wait(_LOOK_S):
            for pod in _waiting(api, namespace):
                if not _is_known(pod, seed):
                    if pod["metadata"]["uid"] not in unknown:
                        unknown.add(pod["metadata"]["uid"])
                        tally.add(WHERE, "device plugin never answers")
                    continue
                _admit(kubelet, pod)
    finally:
        api.close()


def _admit(kubelet: PluginKubelet, pod: Object) -> None:
    try:
        kubelet.admit([pod])
    except ApiError as error:
        if error.status not in (404, 409, 422):  # it is gone, or another of its name is there
            raise


def _waiting(api: ApiClient, namespace: Namespace) -> list[Object]:
    pods: list[Object] = api.get(f"{namespace.path}/pods?fieldSelector=status.phase%3DPending")["items"]
    asks = VolcanoVgpuStandIn.resource
    return [pod for pod in pods if node_of(pod) and asks in pod["spec"]["containers"][0]["resources"]["limits"]]


def _is_known(pod: Object, seed: int) -> bool:
    if node_of(pod) not in _FORGETFUL:
        return True
    return Random(f"{seed}/plugin/{pod['metadata']['name']}").random() >= _NEVER  # noqa: S311 - the same for a seed
