"""Which cards has a node where nobody but the kubelet's NVIDIA plugin hands them out?

KubeShare's collector names them with their UUIDs; GPU feature discovery's labels say their number, model and memory;
without either there is the number that the kubelet offers. Where a card is offered more than once, or in parts (time
slicing, MPS, MIG), the plugin shares it already, and no share is ours to give.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from extender.model.device import NVIDIA_GPU, Card, CardInventory, CardManager, CardPolicy
from extender.wire import core_v1
from extender.wire.cards.amounts import MIB
from extender.wire.cards.register import (
    BadRegister,
    amount,
    card_count,
    check_health,
    kubelet_resources,
    number,
    unreadable,
    unusable,
)

_KUBESHARE: Final = "kubeshare/gpu_info"
_WHERE: Final = f"annotation {_KUBESHARE}"
_COUNT: Final = "nvidia.com/gpu.count"
_MEMORY: Final = "nvidia.com/gpu.memory"
_PRODUCT: Final = "nvidia.com/gpu.product"
_REPLICAS: Final = "nvidia.com/gpu.replicas"
_STRATEGY: Final = "nvidia.com/gpu.sharing-strategy"
_IN_PARTS: Final = ("-SHARED", "-MIG-")
"""What the product's name has in it where the plugin shares the cards, in its single MIG strategy or by replicas."""


def own_inventory(node: core_v1.Node, policy: CardPolicy) -> CardInventory | None:
    """Return the node's cards; None where it has none, or none that is ours to share."""
    labels = node.metadata.labels or {}
    registered = (node.metadata.annotations or {}).get(_KUBESHARE)
    resources = kubelet_resources(node, policy)
    if registered is None and _COUNT not in labels and NVIDIA_GPU not in (node.status.allocatable or {}):
        return None
    try:
        if _is_in_parts(node, labels, resources - policy.whole_resources):
            return None
        check_health(node, NVIDIA_GPU)
        cards = _unnamed(node, labels, policy) if registered is None else _named(registered, labels)
        _check_offered(node, cards)
    except BadRegister as problem:
        return unusable(CardManager.OWN, node, policy, problem)
    return CardInventory(CardManager.OWN, cards, resources, policy.spread) if cards else None


def _check_offered(node: core_v1.Node, cards: Sequence[Card]) -> None:
    """Raise BadRegister where a plugin offers fewer cards than there are.

    Without a plugin none are offered, or 0 once it has been there.
    """
    offered = amount(node.status.capacity, NVIDIA_GPU)
    if offered and offered < len(cards):
        raise BadRegister(f"fewer {NVIDIA_GPU} are offered than there are GPUs, and nothing says which is left out")


def _is_in_parts(node: core_v1.Node, labels: Mapping[str, str], parts: frozenset[str]) -> bool:
    product, count = labels.get(_PRODUCT, ""), labels.get(_COUNT)
    offered = amount(node.status.capacity, NVIDIA_GPU) or 0
    return (
        bool(parts)
        or any(mark in product for mark in _IN_PARTS)
        or labels.get(_STRATEGY, "none") != "none"
        or labels.get(_REPLICAS, "1") not in ("0", "1")
        or (count is not None and offered > number(f"label {_COUNT}", count))
    )


def _named(text: str, labels: Mapping[str, str]) -> tuple[Card, ...]:
    """Read `UUID:MiB,` for each card."""
    parts = [part.strip().rpartition(":") for part in text.split(",") if part.strip()]
    uuids = {uuid for uuid, _, _ in parts}
    if "" in uuids or len(uuids) < len(parts):
        raise unreadable(_WHERE)
    model = labels.get(_PRODUCT, "")
    return tuple(
        Card(index, uuid, number(_WHERE, memory) * MIB, model=model) for index, (uuid, _, memory) in enumerate(parts)
    )


def _unnamed(node: core_v1.Node, labels: Mapping[str, str], policy: CardPolicy) -> tuple[Card, ...]:
    where, model = f"label {_COUNT}", labels.get(_PRODUCT, "")
    text = labels.get(_COUNT)
    count = number(where, text) if text is not None else amount(node.status.allocatable, NVIDIA_GPU) or 0
    memory = labels.get(_MEMORY)
    each = policy.memory_bytes.get(model, 0) if memory is None else number(f"label {_MEMORY}", memory) * MIB
    return tuple(Card(index, memory_bytes=each, model=model) for index in range(card_count(where, count)))
