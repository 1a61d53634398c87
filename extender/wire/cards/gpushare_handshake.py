"""How does Alibaba's gpushare plugin come to know of our choice? It guesses.

Of the node's pending pods that are not assigned it takes the one of the oldest ASSUME_TIME whose memory is as much as
the kubelet asks for, and sets ASSIGNED to true. A pod with two GPU containers it does not find. Mirrors
gpushare-device-plugin's allocate.go and podutils.go.
"""

import re
from collections.abc import Mapping
from typing import Final

from extender.model.device import CardRequest, CardShare
from extender.wire import core_v1
from extender.wire.cards.gpushare import UNIT_BYTES
from extender.wire.cards.handshake import CardChoice

CARD: Final = "ALIYUN_COM_GPU_MEM_IDX"
OF_POD: Final = "ALIYUN_COM_GPU_MEM_POD"
OF_CARD: Final = "ALIYUN_COM_GPU_MEM_DEV"
ASSIGNED: Final = "ALIYUN_COM_GPU_MEM_ASSIGNED"
ASSUME_TIME: Final = "ALIYUN_COM_GPU_MEM_ASSUME_TIME"

NODE_LOCK: Final = ""

_NUMBER = re.compile(r"[0-9]{1,9}")


def given(pod: core_v1.Pod) -> tuple[CardShare, ...]:
    """Return the one card, and how much of its memory is the pod's."""
    written = pod.metadata.annotations or {}
    index, units = written.get(CARD, ""), written.get(OF_POD, "")
    if not (_NUMBER.fullmatch(index) and _NUMBER.fullmatch(units)):
        return ()
    return (CardShare(int(index), memory_bytes=int(units) * UNIT_BYTES),)


def awaits_plugin(pod: core_v1.Pod) -> bool:
    """Whether the plugin may still take the pod for the one that it is asked for."""
    written = pod.metadata.annotations or {}
    return written.get(ASSIGNED) == "false" and ASSUME_TIME in written


def annotations(choice: CardChoice) -> Mapping[str, str]:
    """Return what gpushare's own extender writes."""
    (share,) = choice.shares
    card = next(card for card in choice.inventory.cards if card.index == share.index)
    return {
        CARD: str(share.index),
        OF_POD: str(_units(share.memory_bytes)),
        OF_CARD: str(card.memory_bytes // UNIT_BYTES),
        ASSIGNED: "false",
        ASSUME_TIME: str(choice.now_ns),
    }


def turn(request: CardRequest) -> str:
    """Pods of one size cannot be told from one another."""
    return f"{sum(_units(need.memory_bytes) for need in request.needs)} units"


def _units(memory_bytes: int) -> int:
    return -(-memory_bytes // UNIT_BYTES)
