"""Volcano's older GPU sharing: memory of one GPU, or so many whole ones, for the pod as a whole.

The device plugin counts memory in MiB unless it is told otherwise; the node's share is read in the same unit.
"""

from typing import Final

from extender.model.device import WHOLE_MILLI, CardDialect, CardNeed, CardRequest
from extender.wire import core_v1
from extender.wire.cards.amounts import MIB, BadCards
from extender.wire.cards.asked import asked_by_pod, containers_of

VOLCANO_GPU_MEMORY: Final = "volcano.sh/gpu-memory"
VOLCANO_GPU_NUMBER: Final = "volcano.sh/gpu-number"
KEYS: Final = frozenset({VOLCANO_GPU_MEMORY, VOLCANO_GPU_NUMBER})


def volcano_gpu_cards(pod: core_v1.Pod) -> CardRequest:
    """Return the request; raises BadCards."""
    place, amounts = asked_by_pod(pod, KEYS)
    if len(amounts) > 1:
        raise BadCards(f"{VOLCANO_GPU_MEMORY} and {VOLCANO_GPU_NUMBER} are both there: one of them must go")
    if VOLCANO_GPU_NUMBER in amounts:
        need = CardNeed(amounts[VOLCANO_GPU_NUMBER], WHOLE_MILLI, memory_milli=WHOLE_MILLI, container=place)
    else:
        need = CardNeed(memory_bytes=amounts[VOLCANO_GPU_MEMORY] * MIB, container=place)
    return CardRequest(CardDialect.VOLCANO_GPU, (need,), containers=len(containers_of(pod)))
