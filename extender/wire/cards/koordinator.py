"""Koordinator: cores and memory of one GPU, or of several, for the pod as a whole.

Mirrors ValidateDeviceRequest and calcDesiredRequestsAndCountForGPU of Koordinator's deviceshare plugin: which names may
stand together, and among how many GPUs they are divided. Its webhook may leave nvidia.com/gpu beside them; that is
accepted where both say the same.
"""

from typing import Final

from extender.model.device import NVIDIA_GPU, WHOLE_MILLI, CardDialect, CardNeed, CardRequest
from extender.wire import core_v1
from extender.wire.cards.amounts import BadCards, unlike
from extender.wire.cards.asked import Amounts, asked_by_pod, containers_of
from extender.wire.cards.qualifiers import KOORDINATOR_SHARED
from extender.wire.cards.terms import hami_terms

GPU: Final = "koordinator.sh/gpu"
CORE: Final = "koordinator.sh/gpu-core"
MEMORY: Final = "koordinator.sh/gpu-memory"
MEMORY_RATIO: Final = "koordinator.sh/gpu-memory-ratio"
KEYS: Final = frozenset({GPU, CORE, MEMORY, MEMORY_RATIO, KOORDINATOR_SHARED})

_TOGETHER: Final = frozenset(
    {
        frozenset({GPU}),
        *(
            frozenset({memory, *others})
            for memory in (MEMORY, MEMORY_RATIO)
            for others in ((), (CORE,), (KOORDINATOR_SHARED,), (KOORDINATOR_SHARED, CORE))
        ),
    }
)
_PERCENT_MILLI: Final = WHOLE_MILLI // 100


def koordinator_cards(pod: core_v1.Pod) -> CardRequest:
    """Return the request; raises BadCards."""
    place, amounts = asked_by_pod(pod, KEYS | {NVIDIA_GPU})
    whole = amounts.pop(NVIDIA_GPU, 0)
    if frozenset(amounts) not in _TOGETHER:
        names = " and ".join(sorted(amounts))
        raise BadCards(
            f"{names} must not stand so: Koordinator takes {GPU} alone, or {MEMORY} or {MEMORY_RATIO}, with or without"
            f" {CORE} and {KOORDINATOR_SHARED}"
        )
    need = _need(amounts, place)
    if whole and (need.count, need.core_milli, need.memory_milli) != (whole, WHOLE_MILLI, WHOLE_MILLI):
        raise unlike(NVIDIA_GPU, str(whole), f"as many GPUs as {' and '.join(sorted(amounts))} ask for in whole")
    terms = hami_terms(pod.metadata.annotations)
    return CardRequest(CardDialect.KOORDINATOR, (need,), terms, len(containers_of(pod)))


def _need(amounts: Amounts, place: int) -> CardNeed:
    core, ratio = amounts.get(CORE, amounts.get(GPU, 0)), amounts.get(MEMORY_RATIO, amounts.get(GPU, 0))
    ratio_key, core_key = (GPU, GPU) if GPU in amounts else (MEMORY_RATIO, CORE)
    count = amounts.get(KOORDINATOR_SHARED) or _cards_of(ratio_key, ratio)
    return CardNeed(
        count,
        _each_milli(core_key, core, count),
        memory_bytes=amounts.get(MEMORY, 0) // count,
        memory_milli=_each_milli(ratio_key, ratio, count),
        container=place,
    )


def _cards_of(key: str, percent: int) -> int:
    """Return among how many GPUs so many percent are divided."""
    if percent > 100 and percent % 100:
        raise unlike(key, str(percent), "at most 100, in percent of a GPU, or a multiple of 100")
    return max(1, percent // 100)


def _each_milli(key: str, percent: int, count: int) -> int:
    if percent % count or percent // count > 100:
        among = "one GPU" if count == 1 else f"each of the {count} GPUs"
        raise unlike(key, str(percent), f"a whole number of percent, at most 100, of {among}")
    return percent // count * _PERCENT_MILLI
