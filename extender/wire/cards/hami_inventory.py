"""Which cards does HAMi's device plugin register on a node?

Mirrors UnMarshalNodeDevices, DecodeNodeDevices (the text that older plugins write) and DecodePairScores of HAMi.
"""

from collections.abc import Mapping, Set
from typing import Final

from msgspec import MsgspecError, Struct
from msgspec.json import Decoder

from extender.model.device import Card, CardInventory, CardManager, CardPolicy
from extender.wire import core_v1
from extender.wire.cards.amounts import MIB
from extender.wire.cards.register import BadRegister, flag, kubelet_resources, number, unreadable, unusable

REGISTER: Final = "hami.io/node-nvidia-register"
_HANDSHAKE: Final = "hami.io/node-handshake"
_SCORES: Final = "hami.io/node-nvidia-score"
_WHERE: Final = f"annotation {REGISTER}"
_GONE: Final = "Deleted"
"""How the handshake of a plugin begins that HAMi's scheduler has given up: what it registered is left behind."""
_CORDONED: Final = "hami.io/device-cordon"
"""UUIDs of cards of which nothing new is given away; whoever has some keeps it."""
_SPLIT: Final = "mig"
"""The mode of a card that HAMi cuts into MIG devices; that is not ours to plan."""
_PERCENT_MILLI: Final = 10

Links = Mapping[str, tuple[tuple[str, int], ...]]


class _Device(Struct, frozen=True):
    id: str
    index: int = 0
    count: int = 0
    devmem: int = 0
    devcore: int = 0
    type: str = ""
    numa: int = 0
    mode: str = ""
    health: bool = False


class _Scores(Struct, frozen=True):
    uuid: str = ""
    score: dict[str, int] = {}


_DEVICES = Decoder(list[_Device])
_LINKS = Decoder(list[_Scores])


def hami_inventory(node: core_v1.Node, policy: CardPolicy) -> CardInventory | None:
    """Return the node's cards; None where HAMi has none there."""
    annotations = node.metadata.annotations or {}
    text = annotations.get(REGISTER)
    if text is None or is_gone(annotations.get(_HANDSHAKE)):
        return None
    try:
        devices = _devices(text)
    except BadRegister as problem:
        return unusable(CardManager.HAMI, node, policy, problem)
    links = _links(annotations.get(_SCORES))
    cordoned = {uuid.strip() for uuid in annotations.get(_CORDONED, "").split(",")}
    numbered = len({device.index for device in devices}) == len(devices)
    cards = tuple(
        _card(device, device.index if numbered else place, links, cordoned)
        for place, device in enumerate(sorted(devices, key=lambda device: device.index))
        if device.mode != _SPLIT
    )
    return CardInventory(CardManager.HAMI, cards, kubelet_resources(node, policy), policy.spread)


def is_gone(handshake: str | None) -> bool:
    """Whether the plugin that wrote the handshake is gone."""
    return handshake is not None and handshake.startswith(_GONE)


def _card(device: _Device, index: int, links: Links, cordoned: Set[str]) -> Card:
    return Card(
        index,
        device.id,
        device.devmem * MIB,
        device.devcore * _PERCENT_MILLI,
        device.type,
        device.health and device.id not in cordoned,
        device.numa,
        device.count,
        links.get(device.id, ()),
        device.mode,
    )


def _devices(text: str) -> list[_Device]:
    try:
        devices = _DEVICES.decode(text) if text.lstrip().startswith("[") else _listed(text)
    except (MsgspecError, RecursionError, UnicodeEncodeError):
        raise unreadable(_WHERE) from None
    keys = {device.id for device in devices}
    if "" in keys or len(keys) < len(devices) or any(_is_negative(device) for device in devices):
        raise unreadable(_WHERE)
    return devices


def _is_negative(device: _Device) -> bool:
    return min(device.index, device.count, device.devmem, device.devcore) < 0


def _listed(text: str) -> list[_Device]:
    """Read `id,count,MiB,cores,type,numa,health[,index,mode]:` for each card."""
    parts = [part.split(",") for part in text.split(":") if part.strip()]
    if not parts or any(len(fields) not in (7, 9) for fields in parts):
        raise unreadable(_WHERE)
    return [_of_fields(fields, place) for place, fields in enumerate(parts)]


def _of_fields(fields: list[str], place: int) -> _Device:
    uuid, count, memory, cores, kind, numa, health, *rest = fields
    return _Device(
        uuid.strip(),
        number(_WHERE, rest[0]) if rest else place,
        number(_WHERE, count),
        number(_WHERE, memory),
        number(_WHERE, cores),
        kind,
        -1 if numa.strip() == "-1" else number(_WHERE, numa),
        rest[1] if rest else "",
        flag(_WHERE, health),
    )


def _links(text: str | None) -> Links:
    """Return how near each card is to the others; a text that makes no sense costs only this preference."""
    try:
        scores = _LINKS.decode(text or "[]")
    except (MsgspecError, RecursionError, UnicodeEncodeError):
        return {}
    return {card.uuid: tuple(sorted(card.score.items())) for card in scores}
