"""Volcano vGPU: so many GPUs by volcano.sh/vgpu-number, and how much of each beside it.

Mirrors resourcereqs of Volcano's vgpu devices, but for a container without vgpu-number: Volcano takes it for one GPU,
but the device plugin is never asked for any.
"""

from typing import Final

from extender.model.device import CardDialect, CardRequest
from extender.wire import core_v1
from extender.wire.cards.asked import containers_of
from extender.wire.cards.hami import VirtualGpuNames, virtual_gpu_needs
from extender.wire.cards.qualifiers import VGPU_CORES, VGPU_MEMORY, VGPU_MEMORY_PERCENTAGE
from extender.wire.cards.terms import volcano_terms

VGPU_NUMBER: Final = "volcano.sh/vgpu-number"
KEYS: Final = frozenset({VGPU_NUMBER, VGPU_MEMORY, VGPU_MEMORY_PERCENTAGE, VGPU_CORES})

_NAMES: Final = VirtualGpuNames(VGPU_NUMBER, VGPU_MEMORY, VGPU_MEMORY_PERCENTAGE, VGPU_CORES)


def volcano_vgpu_cards(pod: core_v1.Pod) -> CardRequest:
    """Return the request; raises BadCards."""
    terms = volcano_terms(pod.metadata.annotations)
    return CardRequest(
        CardDialect.VOLCANO_VGPU,
        virtual_gpu_needs(pod, _NAMES),
        terms,
        len(containers_of(pod)),
        init_containers=len(pod.spec.init_containers or ()),
    )
