"""HAMi: so many GPUs by nvidia.com/gpu, and how much of each in further resources of the same container.

Mirrors GenerateResourceRequests of HAMi's NVIDIA device with its default settings: no word of memory means all of it,
no word of cores none, and MiB go before percent.
"""

from typing import Final

from msgspec import Struct, structs

from extender.model.device import NVIDIA_GPU, WHOLE_MILLI, CardDialect, CardNeed, CardRequest
from extender.wire import core_v1
from extender.wire.cards.amounts import MIB, BadCards, percent_milli
from extender.wire.cards.asked import Amounts, asked_by_container, containers_of
from extender.wire.cards.qualifiers import HAMI_CORES, HAMI_MEMORY, HAMI_MEMORY_PERCENTAGE
from extender.wire.cards.terms import hami_terms, wants_idle_cards

KEYS: Final = frozenset({HAMI_MEMORY, HAMI_MEMORY_PERCENTAGE, HAMI_CORES})
"""nvidia.com/gpu alone asks for whole GPUs."""


class VirtualGpuNames(Struct, frozen=True):
    """How the resources are named: HAMi's, or those of its child for Volcano."""

    count: str
    memory: str
    memory_percentage: str
    cores: str


_NAMES: Final = VirtualGpuNames(NVIDIA_GPU, HAMI_MEMORY, HAMI_MEMORY_PERCENTAGE, HAMI_CORES)


def hami_cards(pod: core_v1.Pod) -> CardRequest:
    """Return the request; raises BadCards."""
    needs = virtual_gpu_needs(pod, _NAMES)
    if wants_idle_cards(pod.metadata.annotations):
        needs = tuple(structs.replace(need, idle=True) for need in needs)
    return CardRequest(CardDialect.HAMI, needs, hami_terms(pod.metadata.annotations), len(containers_of(pod)))


def virtual_gpu_needs(pod: core_v1.Pod, names: VirtualGpuNames) -> tuple[CardNeed, ...]:
    """Return what each container asks for; raises BadCards."""
    asked = asked_by_container(pod, {names.count, names.memory, names.memory_percentage, names.cores})
    return tuple(_need(place, amounts, names) for place, amounts in asked)


def _need(place: int, amounts: Amounts, names: VirtualGpuNames) -> CardNeed:
    count = amounts.get(names.count)
    if count is None:
        raise BadCards(f"{min(amounts)} is there without {names.count}: the container must say of how many GPUs")
    memory_bytes = amounts.get(names.memory, 0) * MIB
    percentage = percent_milli(names.memory_percentage, amounts.get(names.memory_percentage, 0))
    return CardNeed(
        count,
        percent_milli(names.cores, amounts.get(names.cores, 0)),
        memory_bytes,
        memory_milli=0 if memory_bytes else percentage or WHOLE_MILLI,
        memory_unit=MIB,
        container=place,
    )
