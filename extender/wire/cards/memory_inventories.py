"""Which cards has a node whose device plugin offers their memory as a resource: gpushare's, Volcano's older one?

Both say how many cards there are and how much memory they have together, so they must be alike. Mirrors NewNodeInfo of
gpushare's scheduler extender and NewGPUDevices of Volcano's gpushare devices.
"""

from typing import Final

from extender.model.device import Card, CardInventory, CardManager, CardPolicy
from extender.wire import core_v1
from extender.wire.cards.amounts import MIB
from extender.wire.cards.gpushare import GPUSHARE_MEMORY, UNIT_BYTES
from extender.wire.cards.register import (
    BadRegister,
    amount,
    card_count,
    check_health,
    kubelet_resources,
    number,
    unusable,
)
from extender.wire.cards.volcano_gpu import VOLCANO_GPU_MEMORY, VOLCANO_GPU_NUMBER

_GPUSHARE_COUNT: Final = "aliyun.com/gpu-count"
_UNHEALTHY: Final = "volcano.sh/gpu-unhealthy-ids"


def gpushare_inventory(node: core_v1.Node, policy: CardPolicy) -> CardInventory | None:
    """Return the node's cards; None where gpushare's plugin has none there.

    Which of them are unhealthy stands in a ConfigMap that is not read: with one of them, none is used.
    """
    if GPUSHARE_MEMORY not in (node.status.allocatable or {}):
        return None
    try:
        check_health(node, GPUSHARE_MEMORY)
        memory = amount(node.status.allocatable, GPUSHARE_MEMORY) or 0
        count = amount(node.status.capacity, _GPUSHARE_COUNT) or amount(node.status.allocatable, _GPUSHARE_COUNT) or 0
        cards = _alike(_GPUSHARE_COUNT, count, memory * UNIT_BYTES, UNIT_BYTES, frozenset())
    except BadRegister as problem:
        return unusable(CardManager.GPUSHARE, node, policy, problem, GPUSHARE_MEMORY)
    resources = kubelet_resources(node, policy, GPUSHARE_MEMORY)
    return CardInventory(CardManager.GPUSHARE, cards, resources, policy.spread)


def volcano_gpu_inventory(node: core_v1.Node, policy: CardPolicy) -> CardInventory | None:
    """Return the node's cards; None where Volcano's older plugin has none there."""
    total = node.status.capacity or node.status.allocatable or {}
    if VOLCANO_GPU_MEMORY not in total:
        return None
    own = (VOLCANO_GPU_MEMORY, VOLCANO_GPU_NUMBER)
    try:
        memory, count = amount(total, VOLCANO_GPU_MEMORY) or 0, amount(total, VOLCANO_GPU_NUMBER) or 0
        cards = _alike(VOLCANO_GPU_NUMBER, count, memory * MIB, MIB, _unhealthy(node))
    except BadRegister as problem:
        return unusable(CardManager.VOLCANO_GPU, node, policy, problem, *own)
    return CardInventory(CardManager.VOLCANO_GPU, cards, kubelet_resources(node, policy, *own), policy.spread)


def _unhealthy(node: core_v1.Node) -> frozenset[int]:
    text = (node.metadata.annotations or {}).get(_UNHEALTHY, "")
    return frozenset(number(f"annotation {_UNHEALTHY}", part) for part in text.split(",") if part.strip())


def _alike(where: str, count: int, memory_bytes: int, unit: int, unhealthy: frozenset[int]) -> tuple[Card, ...]:
    each = memory_bytes // unit // card_count(where, count) * unit if count else 0
    return tuple(Card(index, memory_bytes=each, healthy=index not in unhealthy) for index in range(count))
