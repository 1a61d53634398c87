"""Which cards does Volcano's vGPU device plugin register on a node? Mirrors decodeNodeDevices of Volcano."""

from typing import Final

from extender.model.device import Card, CardInventory, CardManager, CardPolicy
from extender.wire import core_v1
from extender.wire.cards.amounts import MIB
from extender.wire.cards.hami_inventory import is_gone
from extender.wire.cards.register import BadRegister, flag, kubelet_resources, number, unreadable, unusable
from extender.wire.cards.volcano_vgpu import VGPU_NUMBER

REGISTER: Final = "volcano.sh/node-vgpu-register"
_HANDSHAKE: Final = "volcano.sh/node-vgpu-handshake"
_WHERE: Final = f"annotation {REGISTER}"
_SPLIT: Final = "mig"
"""The mode of a card that is cut into MIG devices; that is not ours to plan."""
_PLAIN: Final = "hami-core"
"""What Volcano takes every other mode for."""


def volcano_vgpu_inventory(node: core_v1.Node, policy: CardPolicy) -> CardInventory | None:
    """Return the node's cards; None where the plugin has none there."""
    annotations = node.metadata.annotations or {}
    text = annotations.get(REGISTER)
    if text is None or is_gone(annotations.get(_HANDSHAKE)):
        return None
    try:
        cards = _cards(text)
    except BadRegister as problem:
        return unusable(CardManager.VOLCANO_VGPU, node, policy, problem, VGPU_NUMBER)
    return CardInventory(CardManager.VOLCANO_VGPU, cards, kubelet_resources(node, policy, VGPU_NUMBER), policy.spread)


def _cards(text: str) -> tuple[Card, ...]:
    """Read `id,count,MiB,type,health[,mode]:` for each card; older plugins say no mode."""
    parts = [part.split(",") for part in text.split(":") if part.strip()]
    if not parts or any(len(fields) < 5 or not fields[0].strip() for fields in parts):
        raise unreadable(_WHERE)
    cards = tuple(_card(place, fields) for place, fields in enumerate(parts))
    if len({card.uuid for card in cards}) < len(cards):
        raise unreadable(_WHERE)
    return tuple(card for card, fields in zip(cards, parts, strict=True) if fields[5:6] != [_SPLIT])


def _card(place: int, fields: list[str]) -> Card:
    uuid, count, memory, kind, health, *_ = fields
    return Card(
        place,
        uuid.strip(),
        number(_WHERE, memory) * MIB,
        model=kind,
        healthy=flag(_WHERE, health),
        slots=number(_WHERE, count),
        mode=_PLAIN,
    )
