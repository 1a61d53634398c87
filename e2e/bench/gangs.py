"""The gangs and single pods that benches make, by the dozen."""

from collections.abc import Iterator

from e2e.client import Object

GPU = "nvidia.com/gpu"


def members(gang: str, size: int, gpus: int = 1) -> Iterator[Object]:
    """Yield the pods of a gang of which all are needed, with so many GPUs each."""
    annotations = {
        "gang.scheduling.koordinator.sh/name": gang,
        "gang.scheduling.koordinator.sh/min-available": str(size),
    }
    for index in range(size):
        yield pod(f"{gang}-{index}", gpus, annotations=annotations)


def pod(name: str, gpus: int, **metadata: Object) -> Object:
    """Return a pod of our scheduler that asks for these GPUs."""
    limits = {GPU: str(gpus)} if gpus else {}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, **metadata},
        "spec": {
            "schedulerName": "gang-scheduler",
            "terminationGracePeriodSeconds": 0,
            "containers": [{"name": "main", "image": "example.com/train", "resources": {"limits": limits}}],
        },
    }


def pod_on(node: str, name: str, gpus: int) -> Object:
    """Return a pod that is on its node from the beginning, without any scheduler."""
    made = pod(name, gpus)
    return {**made, "spec": {**made["spec"], "nodeName": node}}
