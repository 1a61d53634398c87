"""How does Volcano's older plugin for GPU sharing come to know of our choice? It guesses.

Of the node's pending pods that are not assigned it takes the one of the oldest predicate-time that asks for as much as
the kubelet does, and sets gpu-assigned to true. A pod with two GPU containers it does not find. Mirrors Volcano's
devices, pkg/plugin/nvidia.
"""

import re
from collections.abc import Mapping
from typing import Final

from extender.model.device import WHOLE_MILLI, CardRequest, CardShare
from extender.wire import core_v1
from extender.wire.cards.amounts import MIB, BadCards
from extender.wire.cards.asked import asked_by_pod
from extender.wire.cards.exact_record import record_of, recorded
from extender.wire.cards.handshake import CardChoice
from extender.wire.cards.volcano_gpu import VOLCANO_GPU_MEMORY

CARDS: Final = "volcano.sh/gpu-index"
TIME: Final = "volcano.sh/predicate-time"
ASSIGNED: Final = "volcano.sh/gpu-assigned"

NODE_LOCK: Final = ""

_CARDS = re.compile(r"[0-9]{1,9}(,[0-9]{1,9}){0,255}")


def given(pod: core_v1.Pod) -> tuple[CardShare, ...]:
    """Return the cards that we chose for the pod, or else those that Volcano did, with what the pod asks for."""
    indexes = (pod.metadata.annotations or {}).get(CARDS, "")
    if not _CARDS.fullmatch(indexes):
        return ()
    try:
        _, amounts = asked_by_pod(pod, {VOLCANO_GPU_MEMORY})
    except BadCards:
        return ()
    memory_bytes = amounts.get(VOLCANO_GPU_MEMORY, 0) * MIB
    core_milli = 0 if memory_bytes else WHOLE_MILLI
    return recorded(pod) or tuple(CardShare(int(index), "", core_milli, memory_bytes) for index in indexes.split(","))


def awaits_plugin(pod: core_v1.Pod) -> bool:
    """Whether the plugin may still take the pod for the one that it is asked for."""
    written = pod.metadata.annotations or {}
    return TIME in written and written.get(ASSIGNED, "false") == "false"


def annotations(choice: CardChoice) -> Mapping[str, str]:
    """Return what Volcano's scheduler writes, and exactly what it means."""
    return {
        CARDS: ",".join(dict.fromkeys(str(share.index) for share in choice.shares)),
        TIME: str(choice.now_ns),
        ASSIGNED: "false",
        **record_of(choice),
    }


def turn(request: CardRequest) -> str:
    """Pods that ask for as much cannot be told from one another."""
    return ", ".join(f"{need.count} x {need.memory_bytes}" for need in request.needs)
