"""How do cards reach a container where no device plugin hands out shares? By an environment variable.

NVIDIA's container runtime shows a container the cards that NVIDIA_VISIBLE_DEVICES names; manifests/gpu-env takes its
value from our annotation. KubeShare's own annotations are written, and read of pods that KubeShare itself bound, where
they name a card: the identifiers that KubeShare 1 makes up do not, but there its filler pods take whole cards.
"""

from collections.abc import Mapping
from typing import Annotated, Final

from msgspec import Meta, MsgspecError, Struct
from msgspec.json import Decoder, encode

from extender.model.device import WHOLE_MILLI, CardDialect, CardRequest, CardShare
from extender.wire import core_v1
from extender.wire.cards.handshake import CardChoice

VISIBLE_DEVICES: Final = "gang-extender.io/visible-devices"
"""The value of NVIDIA_VISIBLE_DEVICES."""
DEVICES: Final = "gang-extender.io/devices"
"""What was given, exactly."""
KUBESHARE_1_CARD: Final = "kubeshare/GPUID"
KUBESHARE_2_CARDS: Final = "sharedgpu/gpu_uuid"
KUBESHARE_2_REQUEST: Final = "sharedgpu/gpu_request"
KUBESHARE_2_MEMORY: Final = "sharedgpu/gpu_mem"

NODE_LOCK: Final = ""

_KUBESHARE_KEYS = {CardDialect.KUBESHARE_1: KUBESHARE_1_CARD, CardDialect.KUBESHARE_2: KUBESHARE_2_CARDS}
_UUID = "GPU-"
_Amount = Annotated[int, Meta(ge=0, le=2**62)]


class _Card(Struct):
    index: _Amount
    uuid: str
    milli: _Amount
    bytes: _Amount
    container: _Amount


class _Given(Struct):
    node: str
    cards: list[_Card]


_GIVEN = Decoder(_Given)


def given(pod: core_v1.Pod) -> tuple[CardShare, ...]:
    """Return the cards that we chose for the pod on this node, or else those that KubeShare 2 did."""
    try:
        record = _GIVEN.decode((pod.metadata.annotations or {}).get(DEVICES, ""))
    except (MsgspecError, UnicodeError):
        return _given_by_kubeshare(pod)
    if record.node != pod.spec.node_name:
        return ()
    return tuple(CardShare(each.index, each.uuid, each.milli, each.bytes, each.container) for each in record.cards)


def awaits_plugin(_pod: core_v1.Pod) -> bool:
    """Nobody has to take it up: the kubelet reads the annotation as it starts the container."""
    return False


def annotations(choice: CardChoice) -> Mapping[str, str]:
    """Return the cards for the container's environment, for ourselves, and in KubeShare's own words."""
    visible = _visible(choice)
    cards = [
        _Card(share.index, share.uuid, share.core_milli, share.memory_bytes, share.container) for share in choice.shares
    ]
    written = {VISIBLE_DEVICES: visible, DEVICES: encode(_Given(choice.node, cards)).decode()}
    key = _KUBESHARE_KEYS.get(choice.request.dialect)
    return written if key is None else {**written, key: visible}


def turn(_request: CardRequest) -> str:
    """Nobody waits for another."""
    return ""


def _visible(choice: CardChoice) -> str:
    """Return the UUIDs, or the indexes where a card has none: the runtime takes no mixture of them."""
    has_uuids = all(share.uuid for share in choice.shares)
    return ",".join(dict.fromkeys(share.uuid if has_uuids else str(share.index) for share in choice.shares))


def _given_by_kubeshare(pod: core_v1.Pod) -> tuple[CardShare, ...]:
    """Return the cards that KubeShare 2 wrote on the pod; several are whole ones."""
    said = {**(pod.metadata.labels or {}), **(pod.metadata.annotations or {})}
    uuids = [uuid for uuid in said.get(KUBESHARE_2_CARDS, "").split(",") if uuid.startswith(_UUID)]
    memory, request = said.get(KUBESHARE_2_MEMORY, "0"), said.get(KUBESHARE_2_REQUEST, "")
    try:
        milli = round(float(request[:32]) * WHOLE_MILLI) if len(uuids) == 1 else WHOLE_MILLI
        memory_bytes = int(memory[:20])
    except (ValueError, OverflowError):
        return ()
    if milli < 0 or memory_bytes < 0:
        return ()
    return tuple(CardShare(-1, uuid, min(milli, WHOLE_MILLI), memory_bytes) for uuid in uuids)
