"""What does the API server send of a training cluster? Nodes and pods as JSON, with all that nobody asked for.

A node is what kubelet, cloud and NVIDIA's operator make of it; a pod is what Kubeflow's training operator makes, or
what a Deployment does. Their managedFields and images are sent to every watcher, and are most of the bytes.
"""

from collections.abc import Iterator, Mapping
from functools import cache
from itertools import islice, product
from random import Random
from typing import Any, Final

import orjson
from msgspec import Struct

Object = dict[str, Any]

NAMESPACE: Final = "training"

GPUS: Final = 8
"""Of a node."""

BLOCK, SPINE, ZONE = 16, 256, 1280
"""Nodes of a domain: below one leaf switch, below one spine, in one zone. A larger cluster has more of them."""

USED_GPUS: Final = {0: 4, 2: 1, 4: 1, 6: 1, 8: 3}
"""How often so many of a node's GPUs are in use: most nodes are free or full."""

TEMPLATES: Final = 24
"""So many different amounts are asked for."""

PAGE: Final = 500
"""As many objects as the reflector asks for at a time."""

_ADDED_BY_THE_API_SERVER = {"uid", "resourceVersion", "creationTimestamp", "managedFields"}
_IMAGES = 50
"""So many a kubelet reports."""


class GangTerms(Struct, frozen=True):
    """A gang that waits: its `workers` ask for `gpus` each, its parameter servers for none."""

    name: str
    workers: int
    servers: int = 0
    gpus: int = 1
    annotations: Mapping[str, str] = {}

    @property
    def members(self) -> int:
        """How many pods it has."""
        return self.workers + self.servers


def node_name(number: int) -> str:
    """Return a name as long as clouds give them."""
    return f"gpu-{number:05}.train.cluster.internal"


def make_node(number: int, *, unschedulable: bool = False) -> Object:
    """Return a Node with eight GPUs, in a block, a spine and a zone."""
    name = node_name(number)
    amounts = {"cpu": "192", "ephemeral-storage": "3771Gi", "hugepages-2Mi": "0", "memory": "2063837Mi", "pods": "110"}
    amounts["nvidia.com/gpu"] = str(GPUS)
    return {
        "kind": "Node",
        "apiVersion": "v1",
        "metadata": {
            "name": name,
            "uid": f"6f0a1b52-0000-4000-8000-{number:012}",
            "resourceVersion": str(100_000 + number),
            "creationTimestamp": "2026-01-02T03:04:05Z",
            "labels": _labels_of_node(number),
            "annotations": {
                "node.alpha.kubernetes.io/ttl": "0",
                "volumes.kubernetes.io/controller-managed-attach-detach": "true",
            },
            "managedFields": _managed_fields("kube-controller-manager", "kubelet", "gpu-feature-discovery"),
        },
        "spec": {
            "podCIDR": f"10.{number >> 8}.{number & 255}.0/24",
            "providerID": f"aws:///north-1/i-{number:017x}",
            **({"unschedulable": True} if unschedulable else {}),
        },
        "status": {
            "capacity": amounts,
            "allocatable": amounts | {"cpu": "190500m", "memory": "2044837Mi"},
            "conditions": [_condition(kind) for kind in ("MemoryPressure", "DiskPressure", "PIDPressure", "Ready")],
            "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}, {"type": "Hostname", "address": name}],
            "nodeInfo": {"kubeletVersion": "v1.36.3", "osImage": "Ubuntu 24.04.2 LTS", "architecture": "amd64"},
            "images": _images(),
        },
    }


def _labels_of_node(number: int) -> dict[str, str]:
    return {
        "beta.kubernetes.io/arch": "amd64",
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/os": "linux",
        "kubernetes.io/hostname": node_name(number),
        "node.kubernetes.io/instance-type": "p5.48xlarge",
        "topology.kubernetes.io/region": "north-1",
        "topology.kubernetes.io/zone": f"north-1-{number // ZONE}",
        "network.topology.nvidia.com/leaf": f"leaf-{number // BLOCK}",
        "network.topology.nvidia.com/spine": f"spine-{number // SPINE}",
        "nvidia.com/cuda.driver.major": "570",
        "nvidia.com/gpu.count": str(GPUS),
        "nvidia.com/gpu.family": "hopper",
        "nvidia.com/gpu.machine": "p5.48xlarge",
        "nvidia.com/gpu.memory": "81559",
        "nvidia.com/gpu.present": "true",
        "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3",
        "nvidia.com/mig.capable": "true",
    }


def _condition(kind: str) -> Object:
    return {
        "type": kind,
        "status": "True" if kind == "Ready" else "False",
        "lastHeartbeatTime": "2026-01-03T03:04:05Z",
        "lastTransitionTime": "2026-01-02T03:04:05Z",
        "reason": f"KubeletHas{kind}",
        "message": f"kubelet says {kind}",
    }


def make_member(terms: GangTerms, number: int) -> Object:
    """Return one of a gang's pods as it is created, the parameter servers first."""
    is_server = number < terms.servers
    role, index = ("ps", number) if is_server else ("worker", number - terms.servers)
    gpus = 0 if is_server else terms.gpus
    amounts = {"cpu": "4", "memory": "16Gi"} | ({"nvidia.com/gpu": str(gpus)} if gpus else {})
    annotations = {
        "gang.scheduling.koordinator.sh/name": terms.name,
        "gang.scheduling.koordinator.sh/min-available": str(terms.members),
        **terms.annotations,
    }
    return _operator_pod(terms.name, role, index, amounts, annotations)


def make_pod_of_node(node: int, number: int, used_gpus: int) -> Object:
    """Return one of the pods that run on a node: workers of two GPUs each until that many are in use, then others.

    Up to eight workers, on as many nodes, are a job.
    """
    serial = node * 1000 + number
    if 2 * number < used_gpus:
        job = f"running-{node // 8}-{number}"
        amounts = {"cpu": str(4 + serial % TEMPLATES), "memory": "64Gi", "nvidia.com/gpu": "2"}
        annotations = {
            "gang.scheduling.koordinator.sh/name": job,
            "gang.scheduling.koordinator.sh/min-available": "1",
        }
        pod = _operator_pod(job, "worker", serial, amounts, annotations)
    else:
        pod = _service_pod(f"service-{serial % TEMPLATES}", serial)
    return running(pod, node_name(node))


def running(pod: Object, node: str) -> Object:
    """Return the pod as it is once it runs on the node."""
    conditions = [
        {"type": kind, "status": "True", "lastProbeTime": None, "lastTransitionTime": "2026-01-02T03:05:05Z"}
        for kind in ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
    ]
    image = pod["spec"]["containers"][0]["image"]
    status = {
        "phase": "Running",
        "conditions": conditions,
        "hostIP": "10.0.0.1",
        "podIP": "10.1.0.1",
        "startTime": "2026-01-02T03:05:00Z",
        "containerStatuses": [
            {
                "name": pod["spec"]["containers"][0]["name"],
                "state": {"running": {"startedAt": "2026-01-02T03:05:05Z"}},
                "ready": True,
                "restartCount": 0,
                "image": image,
                "imageID": f"{image}@sha256:{'4' * 64}",
                "containerID": f"containerd://{'5' * 64}",
                "resources": pod["spec"]["containers"][0]["resources"],
            }
        ],
        "qosClass": "Burstable",
    }
    return pod | {"spec": pod["spec"] | {"nodeName": node}, "status": status}


def node_pages(nodes: int) -> Iterator[bytes]:
    """Yield the list of all nodes, page by page."""
    yield from _pages(make_node(number) for number in range(nodes))


def pod_pages(nodes: int, pods_per_node: int, most_used: int = GPUS) -> Iterator[bytes]:
    """Yield the list of all pods, page by page."""
    yield from _pages(pod for _, pod in pods_of_nodes(nodes, pods_per_node, most_used))


def pods_of_nodes(nodes: int, pods_per_node: int, most_used: int = GPUS) -> Iterator[tuple[int, Object]]:
    """Yield each node's number and pod, the same ones every time; they use at most so many GPUs of a node."""
    chance = Random("pods")  # noqa: S311 - chance that can be repeated
    used = chance.choices(list(USED_GPUS), weights=list(USED_GPUS.values()), k=nodes)
    for node, number in product(range(nodes), range(pods_per_node)):
        yield node, make_pod_of_node(node, number, min(most_used, used[node]))


def as_created(pod: Object, node: str) -> Object:
    """Return the pod as somebody creates it on a node: without what the API server and the kubelet add."""
    metadata = {key: value for key, value in pod["metadata"].items() if key not in _ADDED_BY_THE_API_SERVER}
    return {**pod, "metadata": metadata, "spec": {**pod["spec"], "nodeName": node}, "status": {}}


def without_managed_fields(one: Object) -> Object:
    """Return the object as kube-scheduler keeps it and sends it on."""
    return one | {"metadata": {key: value for key, value in one["metadata"].items() if key != "managedFields"}}


def _pages(objects: Iterator[Object]) -> Iterator[bytes]:
    while page := list(islice(objects, PAGE)):
        yield orjson.dumps({"kind": "List", "apiVersion": "v1", "metadata": {"resourceVersion": "1"}, "items": page})


def _operator_pod(
    job: str, role: str, index: int, amounts: Mapping[str, str], annotations: Mapping[str, str]
) -> Object:
    labels = {
        "training.kubeflow.org/job-name": job,
        "training.kubeflow.org/operator-name": "tfjob-controller",
        "training.kubeflow.org/replica-index": str(index),
        "training.kubeflow.org/replica-type": role,
    }
    owner = {"apiVersion": "kubeflow.org/v1", "kind": "TFJob", "name": job}
    meta = _metadata(f"{job}-{role}-{index}", labels, annotations, owner)
    return _pod(meta, "tensorflow", amounts, "gang-scheduler")


def _service_pod(app: str, serial: int) -> Object:
    labels = {"app.kubernetes.io/name": app, "pod-template-hash": "7d9f8b6c5"}
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": app}
    amounts = {"cpu": f"{100 + serial % TEMPLATES}m", "memory": "256Mi"}
    meta = _metadata(f"{app}-7d9f8b6c5-{serial:08}", labels, {}, owner)
    return _pod(meta, "app", amounts, "default-scheduler")


def _metadata(name: str, labels: Mapping[str, str], annotations: Mapping[str, str], owner: Mapping[str, str]) -> Object:
    return {
        "name": name,
        "namespace": NAMESPACE,
        "uid": f"uid-{name}",
        "resourceVersion": "200000",
        "creationTimestamp": "2026-01-02T03:04:05Z",
        "labels": dict(labels),
        "annotations": dict(annotations),
        "ownerReferences": [{**owner, "uid": f"uid-of-{owner['name']}", "controller": True}],
        "managedFields": _managed_fields("training-operator", "kubelet"),
    }


def _pod(meta: Object, container: str, amounts: Mapping[str, str], scheduler: str) -> Object:
    forever = {"effect": "NoExecute", "operator": "Exists", "tolerationSeconds": 300}
    return {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": meta,
        "spec": {
            "volumes": [
                {"name": "dshm", "emptyDir": {"medium": "Memory"}},
                {"name": "kube-api-access", "projected": {"defaultMode": 420, "sources": []}},
            ],
            "containers": [_container(container, amounts)],
            "restartPolicy": "Never",
            "serviceAccountName": "default",
            "schedulerName": scheduler,
            "tolerations": [
                {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"},
                {"key": "node.kubernetes.io/not-ready", **forever},
                {"key": "node.kubernetes.io/unreachable", **forever},
            ],
            "priority": 0,
            "preemptionPolicy": "PreemptLowerPriority",
        },
        "status": {"phase": "Pending", "qosClass": "Burstable"},
    }


def _container(name: str, amounts: Mapping[str, str]) -> Object:
    return {
        "name": name,
        "image": "registry.example.com/team/train:2.17",
        "command": ["python", "-m", "train", "--epochs=90"],
        "env": [{"name": f"SETTING_{number}", "value": "something or other"} for number in range(12)],
        "ports": [{"name": "tfjob-port", "containerPort": 2222, "protocol": "TCP"}],
        "resources": {"limits": dict(amounts), "requests": dict(amounts)},
        "volumeMounts": [{"name": "dshm", "mountPath": "/dev/shm"}],  # noqa: S108 - a container's path
        "terminationMessagePath": "/dev/termination-log",
        "imagePullPolicy": "IfNotPresent",
    }


@cache
def _managed_fields(*managers: str) -> orjson.Fragment:
    """Return what the API server notes of who wrote which field, about 700 bytes of each manager."""
    one: Object = {".": {}, 'k:{"name":"something"}': {"f:value": {}, "f:other": {}}}
    fields = {f"f:field-{number}": one for number in range(12)}
    return orjson.Fragment(
        orjson.dumps(
            [
                {
                    "manager": manager,
                    "operation": "Update",
                    "apiVersion": "v1",
                    "time": "2026-01-02T03:04:05Z",
                    "fieldsType": "FieldsV1",
                    "fieldsV1": {"f:metadata": fields},
                }
                for manager in managers
            ]
        )
    )


@cache
def _images() -> orjson.Fragment:
    repository = "registry.example.com/team/image"
    images = [
        {"names": [f"{repository}-{n}@sha256:{'1' * 64}", f"{repository}-{n}:1.2"], "sizeBytes": 10**9 + n}
        for n in range(_IMAGES)
    ]
    return orjson.Fragment(orjson.dumps(images))
