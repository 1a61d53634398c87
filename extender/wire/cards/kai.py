"""KAI: a share of a GPU, or so many MiB of it, in annotations of the pod.

Mirrors the checks of KAI's webhook. KAI shares memory alone; a fraction is taken of the cores, too, as KubeShare does
it, so that a GPU is never promised twice.
"""

from typing import Final

from extender.model.device import WHOLE_MILLI, CardDialect, CardNeed, CardRequest
from extender.wire import core_v1
from extender.wire.cards.amounts import MIB, BadCards, share_milli, unlike, whole_count
from extender.wire.cards.asked import containers_of

_FRACTION: Final = "gpu-fraction"
_MEMORY: Final = "gpu-memory"
_DEVICES: Final = "gpu-fraction-num-devices"
_CONTAINER: Final = "gpu-fraction-container-name"
KEYS: Final = frozenset({_FRACTION, _MEMORY, _DEVICES})
"""Of annotations."""


def kai_cards(pod: core_v1.Pod) -> CardRequest:
    """Return the request; raises BadCards."""
    annotations = pod.metadata.annotations or {}
    fraction, memory = annotations.get(_FRACTION), annotations.get(_MEMORY)
    if (fraction is None) == (memory is None):
        raise BadCards(f"of {_FRACTION} and {_MEMORY} one must be there, and not both")
    need = CardNeed(
        whole_count(_DEVICES, annotations.get(_DEVICES, "1")),
        core_milli=_fraction_milli(fraction) if fraction is not None else 0,
        memory_bytes=whole_count(_MEMORY, memory) * MIB if memory is not None else 0,
        memory_milli=_fraction_milli(fraction) if fraction is not None else 0,
        container=_place(pod, annotations.get(_CONTAINER, "")),
    )
    return CardRequest(CardDialect.KAI, (need,), containers=len(containers_of(pod)))


def _fraction_milli(text: str) -> int:
    milli = share_milli(_FRACTION, text)
    if not 0 < milli <= WHOLE_MILLI:
        raise unlike(_FRACTION, text, "above 0 and at most 1")
    return milli


def _place(pod: core_v1.Pod, name: str) -> int:
    """Return the place of the container of that name; without one it is the first that is no init container."""
    if not name:
        return len(pod.spec.init_containers or ())
    for place, container in enumerate(containers_of(pod)):
        if container.name == name:
            return place
    raise unlike(_CONTAINER, name, "the name of one of the pod's containers")
