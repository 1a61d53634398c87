"""Nodes as each device manager describes their GPUs, and pods that ask in its terms."""

from collections.abc import Mapping
from typing import Any

from e2e.cluster import Cluster, Namespace, Object
from e2e.nodes import make_node
from e2e.plugins import hami, volcano_vgpu
from tests.e2e.pods import pod

MIB_OF_CARD = 16384


def add_gpu_node(
    cluster: Cluster,
    name: str,
    offers: Mapping[str, str],
    annotations: Mapping[str, str] | None = None,
    capacity: Mapping[str, str] | None = None,
) -> None:
    """Add a node that offers this beside CPU and memory, with these annotations."""
    node = make_node(name)
    node["metadata"]["annotations"] = dict(annotations or {})
    node["status"]["allocatable"] |= offers
    node["status"]["capacity"] = node["status"]["allocatable"] | (capacity or {})
    cluster.add_nodes([node])


def add_kubeshare_node(cluster: Cluster, name: str, cards: int = 2) -> list[str]:
    """Add a node whose cards KubeShare's collector has listed; return their UUIDs."""
    uuids = [f"GPU-{name}-{index}" for index in range(cards)]
    listed = "".join(f"{uuid}:{MIB_OF_CARD}," for uuid in uuids)
    add_gpu_node(cluster, name, {"nvidia.com/gpu": str(cards)}, {"kubeshare/gpu_info": listed})
    return uuids


def add_gpushare_node(cluster: Cluster, name: str, cards: int = 2) -> None:
    """Add a node with gpushare's plugin, 16 GiB a card."""
    memory = {"aliyun.com/gpu-mem": str(16 * cards)}
    add_gpu_node(cluster, name, memory, capacity=memory | {"aliyun.com/gpu-count": str(cards)})


def add_hami_node(cluster: Cluster, name: str, cards: int = 2) -> None:
    """Add a node with HAMi's plugin, which lets ten pods share a card."""
    registered = hami.registered(*(f"GPU-{name}-{index}" for index in range(cards)), mib=MIB_OF_CARD)
    add_gpu_node(cluster, name, {"nvidia.com/gpu": str(10 * cards)}, registered)


def add_volcano_node(cluster: Cluster, name: str, cards: int = 2) -> None:
    """Add a node with Volcano's vGPU plugin, which lets ten pods share a card."""
    registered = volcano_vgpu.registered(*(f"GPU-{name}-{index}" for index in range(cards)), mib=MIB_OF_CARD)
    add_gpu_node(cluster, name, {"volcano.sh/vgpu-number": str(10 * cards)}, registered)


def add_koordinator_node(cluster: Cluster, name: str, cards: int = 2) -> None:
    """Add a node and the Device with which koordlet reports its cards."""
    amounts = {"koordinator.sh/gpu-core": "100", "koordinator.sh/gpu-memory-ratio": "100"}
    whole = {resource: str(int(amount) * cards) for resource, amount in amounts.items()}
    add_gpu_node(cluster, name, whole | {"koordinator.sh/gpu-memory": f"{16 * cards}Gi"})
    gpus = [
        {
            "type": "gpu",
            "id": f"GPU-{name}-{index}",
            "minor": index,
            "health": True,
            "resources": amounts | {"koordinator.sh/gpu-memory": "16Gi"},
        }
        for index in range(cards)
    ]
    device = {"apiVersion": "scheduling.koordinator.sh/v1alpha1", "kind": "Device", "metadata": {"name": name}}
    cluster.apply({**device, "spec": {"devices": gpus}})


def device_crd() -> Object:
    """Return a stand-in for the CustomResourceDefinition of Koordinator's Device."""
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    schema = {"type": "object", "properties": {"spec": anything, "status": anything}}
    version = {"name": "v1alpha1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "devices.scheduling.koordinator.sh"},
        "spec": {
            "group": "scheduling.koordinator.sh",
            "scope": "Cluster",
            "names": {"kind": "Device", "plural": "devices", "singular": "device", "listKind": "DeviceList"},
            "versions": [version],
        },
    }


def gpu_pod(name: str, limits: dict[str, str] | None = None, **metadata: Any) -> Object:
    """Return a pod of our scheduler with these limits."""
    return pod(name, limits=limits or {}, **metadata)


def half_of_a_gpu(name: str) -> Object:
    """Return a pod that asks for half a GPU in KubeShare's terms."""
    return gpu_pod(name, annotations={"kubeshare/gpu_request": "0.5", "kubeshare/gpu_limit": "1.0"})


def annotations_of(namespace: Namespace, name: str) -> dict[str, str]:
    """Return what is written on the pod."""
    pod = namespace.pod(name)
    assert pod is not None
    written: dict[str, str] = pod["metadata"].get("annotations", {})
    return written
