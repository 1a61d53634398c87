"""How does Koordinator's agent come to know of our choice? It reads it off the pod as the container starts.

Whoever is the pod, koordlet is told by the container runtime: nobody waits for another. Mirrors Koordinator's
apis/extension/device_share.go.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Final

from msgspec import Meta, MsgspecError, Struct, to_builtins
from msgspec.json import Decoder, encode

from extender.model.device import CardInventory, CardRequest, CardShare
from extender.wire import core_v1
from extender.wire.cards.handshake import CardChoice
from extender.wire.cards.koordinator import CORE, MEMORY, MEMORY_RATIO
from extender.wire.quantity import BadQuantity, parse_quantity

ALLOCATED: Final = "scheduling.koordinator.sh/device-allocated"

NODE_LOCK: Final = ""

_NANO = 10**9
_NANOS_OF_MILLI_CARD = _NANO // 10
"""All of a card are 100 of gpu-core."""


class _Device(Struct, omit_defaults=True):
    minor: Annotated[int, Meta(ge=0, le=10**6)]
    resources: dict[str, str | int] = {}
    id: str = ""


class _Allocations(Struct):
    gpu: list[_Device] = []


_ALLOCATIONS = Decoder(_Allocations)


def given(pod: core_v1.Pod) -> tuple[CardShare, ...]:
    """Return the GPUs; of a device in other resources than Koordinator's nobody knows how much is taken."""
    try:
        devices = _ALLOCATIONS.decode((pod.metadata.annotations or {}).get(ALLOCATED, "")).gpu
        return tuple(
            CardShare(
                device.minor,
                device.id,
                _nanos(device, CORE) // _NANOS_OF_MILLI_CARD,
                _nanos(device, MEMORY) // _NANO,
            )
            for device in devices
        )
    except (MsgspecError, UnicodeError, BadQuantity):
        return ()


def awaits_plugin(_pod: core_v1.Pod) -> bool:
    """Nobody has to take it up."""
    return False


def annotations(choice: CardChoice) -> Mapping[str, str]:
    """Return what Koordinator's scheduler writes."""
    devices = [_device(each, choice.inventory) for each in _by_card(choice.shares)]
    return {ALLOCATED: encode({"gpu": [to_builtins(device) for device in devices]}).decode()}


def turn(_request: CardRequest) -> str:
    """Nobody waits for another."""
    return ""


def _by_card(shares: Sequence[CardShare]) -> list[CardShare]:
    """Return one share of each card: Koordinator speaks of the pod as a whole."""
    cards: dict[int, CardShare] = {}
    for share in shares:
        before = cards.get(share.index, CardShare(share.index, share.uuid))
        cards[share.index] = CardShare(
            share.index,
            share.uuid,
            before.core_milli + share.core_milli,
            before.memory_bytes + share.memory_bytes,
        )
    return list(cards.values())


def _device(share: CardShare, inventory: CardInventory) -> _Device:
    total = next((card.memory_bytes for card in inventory.cards if card.index == share.index), 0)
    amounts = {CORE: _percent(share.core_milli), MEMORY: str(share.memory_bytes)}
    if total:
        amounts[MEMORY_RATIO] = str((200 * share.memory_bytes + total) // (2 * total))
    return _Device(share.index, {name: amount for name, amount in amounts.items() if amount != "0"}, share.uuid)


def _percent(core_milli: int) -> str:
    return str(core_milli // 10) if core_milli % 10 == 0 else f"{core_milli * 100}m"


def _nanos(device: _Device, resource: str) -> int:
    return parse_quantity(str(device.resources.get(resource, 0)))
