"""Pods that scenarios make by the dozen: single ones and members of a gang, each with GPUs, a priority, a node."""

from collections.abc import Iterator

from e2e.cluster import Namespace, Object
from tests.e2e.gang_watch import GANG_NAME, MIN_AVAILABLE

DEADLINE_S = 20.0


def pod(
    name: str,
    *,
    gpus: int = 1,
    limits: dict[str, str] | None = None,
    priority: str = "",
    node: str = "",
    **metadata: Object,
) -> Object:
    """Return a pod that asks for these GPUs, or for these limits, and, where a node is named, may run nowhere else."""
    if limits is None:
        limits = {"nvidia.com/gpu": str(gpus)} if gpus else {}
    spec: Object = {
        "schedulerName": "gang-scheduler",
        "terminationGracePeriodSeconds": 0,
        "containers": [{"name": "main", "image": "example.com/train", "resources": {"limits": limits}}],
    }
    spec |= {"priorityClassName": priority} if priority else {}
    spec |= {"nodeSelector": {"kubernetes.io/hostname": node}} if node else {}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, **metadata}, "spec": spec}


def members(gang: str, size: int, *, gpus: int = 1, priority: str = "") -> Iterator[Object]:
    """Yield all members of a gang of which all are needed."""
    annotations = {GANG_NAME: gang, MIN_AVAILABLE: str(size)}
    for index in range(size):
        yield pod(f"{gang}-{index}", gpus=gpus, priority=priority, annotations=annotations)


def at(member: Object, node: str) -> Object:
    """Return the pod so that it may run on this node only."""
    return {**member, "spec": {**member["spec"], "nodeSelector": {"kubernetes.io/hostname": node}}}


def bound(namespace: Namespace, prefix: str = "") -> list[str]:
    """Return the names of the bound pods whose names begin so."""
    names = [each["metadata"]["name"] for each in namespace.pods() if each["spec"].get("nodeName")]
    return [name for name in names if name.startswith(prefix)]
