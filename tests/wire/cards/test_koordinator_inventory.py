"""Koordinator's Device objects: the GPUs of the node of the same name."""

import json
from typing import Any

import pytest
from msgspec import Raw

from extender.model.device import Card, CardInventory, CardManager, CardPolicy, NodeCards
from extender.wire.kube import device_kind
from tests.builders import GIB

RESOURCES = {
    "koordinator.sh/gpu-core": "100",
    "koordinator.sh/gpu-memory": "16Gi",
    "koordinator.sh/gpu-memory-ratio": "100",
}


def gpu(minor: int | None, **parts: Any) -> dict[str, Any]:
    return {"type": "gpu", "id": f"GPU-{minor}", "minor": minor, "health": True, "resources": RESOURCES, **parts}


def read(*devices: dict[str, Any]) -> NodeCards:
    labels = {"node.koordinator.sh/gpu-model": "Tesla-V100"}
    body = {"metadata": {"name": "n1", "uid": "u", "labels": labels}, "spec": {"devices": devices}}
    return device_kind(CardPolicy()).read(Raw(json.dumps(body).encode())).object


def test_the_gpus_of_a_device() -> None:
    topology = {"socketID": 0, "nodeID": 1, "pcieID": "2"}
    read_cards = read(gpu(1, topology=topology), {"type": "rdma", "minor": 0, "health": True}, gpu(0, health=False))
    v100: dict[str, Any] = {"memory_bytes": 16 * GIB, "model": "Tesla-V100"}
    assert read_cards == NodeCards(
        "n1",
        CardInventory(
            CardManager.KOORDINATOR,
            (Card(0, "GPU-0", healthy=False, **v100), Card(1, "GPU-1", numa=1, **v100)),
            frozenset(
                {
                    "nvidia.com/gpu",
                    "koordinator.sh/gpu",
                    "koordinator.sh/gpu-core",
                    "koordinator.sh/gpu-memory",
                    "koordinator.sh/gpu-memory-ratio",
                    "koordinator.sh/gpu.shared",
                }
            ),
        ),
    )


def test_a_device_without_gpus_names_none() -> None:
    assert read({"type": "rdma", "minor": 0}) == NodeCards("n1")
    assert read() == NodeCards("n1")


NO_AMOUNT = {"koordinator.sh/gpu-memory": "x"}


@pytest.mark.parametrize("devices", [[gpu(None)], [gpu(0), gpu(0)], [gpu(0, resources=NO_AMOUNT)]])
def test_gpus_that_make_no_sense_cannot_be_used(devices: list[dict[str, Any]]) -> None:
    inventory = read(*devices).inventory
    assert inventory is not None
    assert inventory.cards == ()
    assert "cannot be read" in inventory.problem
