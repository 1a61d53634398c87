"""Whole GPUs: nvidia.com/gpu and nothing else. Other names of whole GPUs are resources like any other."""

from extender.model.device import NVIDIA_GPU, WHOLE_MILLI, CardDialect, CardNeed, CardRequest
from extender.wire import core_v1
from extender.wire.cards.asked import asked_by_container, containers_of
from extender.wire.cards.terms import hami_terms

KEYS = frozenset({NVIDIA_GPU})


def whole_cards(pod: core_v1.Pod) -> CardRequest:
    """Return the request; raises BadCards."""
    needs = tuple(
        CardNeed(amounts[NVIDIA_GPU], WHOLE_MILLI, memory_milli=WHOLE_MILLI, container=place)
        for place, amounts in asked_by_container(pod, KEYS)
    )
    return CardRequest(CardDialect.WHOLE, needs, hami_terms(pod.metadata.annotations), len(containers_of(pod)))
