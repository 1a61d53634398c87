"""Exactly which cards did we choose for a pod, where its manager's own annotations do not say it all?"""

from collections.abc import Mapping
from typing import Annotated, Final

from msgspec import Meta, MsgspecError, Struct
from msgspec.json import Decoder, encode

from extender.model.device import CardShare
from extender.wire import core_v1
from extender.wire.cards.handshake import CardChoice

DEVICES: Final = "gang-extender.io/devices"

_Amount = Annotated[int, Meta(ge=0, le=2**62)]


class _Card(Struct):
    index: _Amount
    uuid: str
    milli: _Amount
    bytes: _Amount
    container: _Amount


class _Record(Struct):
    node: str
    cards: list[_Card]


_RECORD = Decoder(_Record)


def record_of(choice: CardChoice) -> Mapping[str, str]:
    """Return the annotation that says it."""
    cards = [
        _Card(share.index, share.uuid, share.core_milli, share.memory_bytes, share.container) for share in choice.shares
    ]
    return {DEVICES: encode(_Record(choice.node, cards)).decode()}


def recorded(pod: core_v1.Pod) -> tuple[CardShare, ...]:
    """Return the cards that we chose for the pod on its node; none where nothing of the sort is written."""
    try:
        record = _RECORD.decode((pod.metadata.annotations or {}).get(DEVICES, ""))
    except (MsgspecError, UnicodeError):
        return ()
    if record.node != pod.spec.node_name:
        return ()
    return tuple(CardShare(each.index, each.uuid, each.milli, each.bytes, each.container) for each in record.cards)
