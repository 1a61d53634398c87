"""How do cards reach a container where no device plugin hands out shares? By an environment variable.

NVIDIA's container runtime shows a container the cards that NVIDIA_VISIBLE_DEVICES names; manifests/gpu-env takes its
value from our annotation. KubeShare's own annotations are written, and read of pods that KubeShare itself bound, where
they name a card: the identifiers that KubeShare 1 makes up do not, but there its filler pods take whole cards.
"""

from collections.abc import Mapping
from typing import Final

from extender.model.device import CardDialect, CardRequest, CardShare
from extender.wire import core_v1
from extender.wire.cards.amounts import BadCards
from extender.wire.cards.exact_record import DEVICES, record_of, recorded
from extender.wire.cards.handshake import CardChoice
from extender.wire.cards.kubeshare import GPUID, kubeshare_2_cards

VISIBLE_DEVICES: Final = "gang-extender.io/visible-devices"
"""The value of NVIDIA_VISIBLE_DEVICES."""
KUBESHARE_2_CARDS: Final = "sharedgpu/gpu_uuid"

NODE_LOCK: Final = ""

_KUBESHARE_KEYS = {CardDialect.KUBESHARE_1: GPUID, CardDialect.KUBESHARE_2: KUBESHARE_2_CARDS}
_UUID = "GPU-"


def given(pod: core_v1.Pod) -> tuple[CardShare, ...]:
    """Return the cards that we chose for the pod, or else those that KubeShare 2 did."""
    return recorded(pod) if DEVICES in (pod.metadata.annotations or {}) else _given_by_kubeshare(pod)


def awaits_plugin(_pod: core_v1.Pod) -> bool:
    """Nobody has to take it up: the kubelet reads the annotation as it starts the container."""
    return False


def annotations(choice: CardChoice) -> Mapping[str, str]:
    """Return the cards for the container's environment, for ourselves, and in KubeShare's own words."""
    visible = _visible(choice)
    written = {VISIBLE_DEVICES: visible, **record_of(choice)}
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
    """Return the cards that KubeShare 2 wrote on the pod, of each as much as it asks for."""
    uuids = (pod.metadata.annotations or {}).get(KUBESHARE_2_CARDS, "").split(",")
    try:
        request = kubeshare_2_cards(pod)
    except BadCards:
        return ()
    if request is None:
        return ()
    (need,) = request.needs
    return tuple(CardShare(-1, uuid, need.core_milli, need.memory_bytes) for uuid in uuids if uuid.startswith(_UUID))
