"""Small pods and nodes for tests: as the model has them, and as the API server sends them.

A pod asks for one GPU and a little CPU and memory, a node has two GPUs and plenty of the rest, so that GPUs decide.
"""

from typing import Any

from extender.model.claim import BadGangClaim, GangClaim, Terms, gang_key
from extender.model.device import (
    NVIDIA_GPU,
    WHOLE_MILLI,
    BadCardRequest,
    Card,
    CardDialect,
    CardInventory,
    CardManager,
    CardNeed,
    CardRequest,
    CardTerms,
)
from extender.model.node import Node, NodeRoom, Taint
from extender.model.pod import ClaimUse, HostPort, NodeSelectorTerm, Pod, PodShape, Relations, Toleration
from extender.model.pod_group import KOORDINATOR
from extender.model.resources import CPU, MEMORY, PODS, Resources
from extender.wire.roles import number_of

GPU = "nvidia.com/gpu"
GIB = 2**30
NO_TERMS = Terms()


def a_shape(  # noqa: PLR0913 - a builder: every argument has a default
    *,
    gpu: int = 1,
    cpu_milli: int = 100,
    memory_bytes: int = GIB,
    requests: Resources | None = None,
    node_selector: dict[str, str] | None = None,
    required_terms: tuple[NodeSelectorTerm, ...] | None = None,
    tolerations: tuple[Toleration, ...] = (),
    host_ports: tuple[HostPort, ...] = (),
    relations: Relations | None = None,
    cards: CardRequest | BadCardRequest | None = None,
) -> PodShape:
    """Return a shape; `requests` adds resources to the three that have an argument of their own."""
    amounts = {CPU: cpu_milli, MEMORY: memory_bytes, GPU: gpu, PODS: 1, **(requests or {})}
    return PodShape(
        requests=tuple(sorted((name, amount) for name, amount in amounts.items() if amount)),
        node_selector=tuple(sorted((node_selector or {}).items())),
        required_terms=required_terms,
        tolerations=tolerations,
        host_ports=host_ports,
        relations=relations,
        cards=cards,
    )


def a_share(
    core_milli: int = 500,
    *,
    count: int = 1,
    memory_bytes: int = 0,
    dialect: CardDialect = CardDialect.KUBESHARE_1,
    terms: CardTerms = CardTerms(),  # noqa: B008 - frozen
) -> CardRequest:
    """Return a request for this much of `count` cards each; of the memory the same share, if not said otherwise."""
    need = CardNeed(count, core_milli, memory_bytes, 0 if memory_bytes else core_milli)
    return CardRequest(dialect, (need,), terms)


def whole_gpus(count: int) -> CardRequest:
    """Return what is read of a pod whose one container asks for so many whole GPUs."""
    return CardRequest(CardDialect.WHOLE, (CardNeed(count, WHOLE_MILLI, memory_milli=WHOLE_MILLI),))


def some_cards(
    count: int = 2, *, manager: CardManager = CardManager.OWN, memory_bytes: int = 16 * GIB, prefix: str = "GPU"
) -> CardInventory:
    """Return cards named `GPU-0` and so on; the kubelet hands out whole ones where nobody else does."""
    cards = tuple(Card(index, f"{prefix}-{index}", memory_bytes) for index in range(count))
    return CardInventory(manager, cards, frozenset({NVIDIA_GPU}))


def uid_of(name: str, namespace: str = "default") -> str:
    """Return the UID that `a_pod` and `pod_json` give to this pod."""
    return f"uid-{namespace}-{name}"


def a_pod(  # noqa: PLR0913 - a builder: every argument but the name has a default
    name: str,
    *,
    namespace: str = "default",
    gang: str | None = None,
    min_available: int | None = 4,
    terms: Terms = NO_TERMS,
    problem: str = "",
    gpu: int = 1,
    cpu_milli: int = 100,
    memory_bytes: int = GIB,
    shape: PodShape | None = None,
    node: str = "",
    nominated: str = "",
    role: str = "worker",
    rank: str = "",
    created_at: float = 0.0,
    priority: int = 0,
    scheduler_name: str = "gang-scheduler",
    finished: bool = False,
    terminating: bool = False,
    gated: bool = False,
    held: bool = False,
    labels: dict[str, str] | None = None,
    claims: tuple[ClaimUse, ...] = (),
) -> Pod:
    """Return a pod; with `problem` its claim on `gang` is a bad one, and `shape` takes the place of the amounts."""
    claim: GangClaim | BadGangClaim | None = None
    if gang is not None and problem:
        claim = BadGangClaim(gang_key(namespace, gang), problem)
    elif gang is not None:
        claim = GangClaim(gang_key(namespace, gang), min_available, terms, pod_group=KOORDINATOR)
    return Pod(
        uid=uid_of(name, namespace),
        namespace=namespace,
        name=name,
        shape=shape or a_shape(gpu=gpu, cpu_milli=cpu_milli, memory_bytes=memory_bytes),
        created_at=created_at,
        node_name=node,
        nominated_node=nominated,
        scheduler_name=scheduler_name,
        priority=priority,
        finished=finished,
        terminating=terminating,
        gated=gated,
        held=held,
        role=role,
        rank=rank,
        number=number_of(name, rank),
        gang=claim,
        labels=labels or {},
        claims=claims,
    )


def a_node(  # noqa: PLR0913 - a builder: every argument but the name has a default
    name: str,
    *,
    gpu: int = 2,
    cpu_milli: int = 32_000,
    memory_bytes: int = 256 * GIB,
    pods: int = 110,
    allocatable: Resources | None = None,
    labels: dict[str, str] | None = None,
    taints: tuple[Taint, ...] = (),
    unschedulable: bool = False,
    inventory: CardInventory | None = None,
) -> Node:
    """Return a node; `allocatable` adds resources to the four that have an argument of their own."""
    amounts = {CPU: cpu_milli, MEMORY: memory_bytes, GPU: gpu, PODS: pods, **(allocatable or {})}
    return Node(
        name=name,
        allocatable={resource: amount for resource, amount in amounts.items() if amount},
        labels=labels or {},
        taints=taints,
        unschedulable=unschedulable,
        inventory=inventory,
    )


def a_room(node: Node, *pods: Pod) -> NodeRoom:
    """Return the node with what these pods take of it."""
    room = NodeRoom(node)
    for pod in pods:
        room = room.having(pod.occupant)
    return room


def pod_json(
    name: str = "w0",
    *,
    namespace: str = "default",
    metadata: dict[str, Any] | None = None,
    spec: dict[str, Any] | None = None,
    status: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Return a v1 Pod as the API server sends it; the three parts are laid over the defaults, key by key."""
    limits = {"cpu": "100m", "memory": "1Gi", GPU: "1"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": uid_of(name, namespace),
            "resourceVersion": "7",
            "creationTimestamp": "2026-01-02T03:04:05Z",
            "labels": {"training.kubeflow.org/replica-type": "worker"},
            **(metadata or {}),
        },
        "spec": {
            "schedulerName": "gang-scheduler",
            "containers": [{"name": "main", "image": "train", "resources": {"requests": limits, "limits": limits}}],
            "priority": 0,
            **(spec or {}),
        },
        "status": {"phase": "Pending", **(status or {})},
    }


def gang_annotations(name: str, min_available: int | str) -> dict[str, str]:
    """Return the Koordinator annotations of a gang's member."""
    return {
        "gang.scheduling.koordinator.sh/name": name,
        "gang.scheduling.koordinator.sh/min-available": str(min_available),
    }


def node_json(
    name: str = "n1",
    *,
    allocatable: dict[str, str] | None = None,
    metadata: dict[str, Any] | None = None,
    spec: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Return a v1 Node as the API server sends it; the parts are laid over the defaults, key by key."""
    amounts = {"cpu": "32", "memory": "256Gi", GPU: "2", "pods": "110", **(allocatable or {})}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "uid": f"uid-{name}",
            "resourceVersion": "5",
            "labels": {"kubernetes.io/hostname": name},
            **(metadata or {}),
        },
        "spec": spec or {},
        "status": {"capacity": amounts, "allocatable": amounts},
    }
