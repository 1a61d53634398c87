"""What does a pod ask of GPUs, in whichever terms?

Most pods ask for none, which is found out by their keys alone.
"""

from collections.abc import Callable, Set
from typing import Final

from msgspec import Struct

from extender.model.device import BadCardRequest, CardRequest
from extender.wire import core_v1
from extender.wire.cards import gpushare, hami, kai, koordinator, kubeshare, volcano_gpu, volcano_vgpu, whole
from extender.wire.cards.amounts import BadCards
from extender.wire.cards.asked import containers_of, names_asked


class _Dialect(Struct, frozen=True):
    """Where a dialect stands on a pod, and how it is read; `includes` are the keys of another that it has, too."""

    read: Callable[[core_v1.Pod], CardRequest | None]
    resources: Set[str] = frozenset()
    annotations: Set[str] = frozenset()
    labels: Set[str] = frozenset()
    includes: Set[str] = frozenset()


_DIALECTS: Final = (
    _Dialect(hami.hami_cards, resources=hami.KEYS, includes=whole.KEYS),
    _Dialect(koordinator.koordinator_cards, resources=koordinator.KEYS, includes=whole.KEYS),
    _Dialect(whole.whole_cards, resources=whole.KEYS),
    _Dialect(volcano_vgpu.volcano_vgpu_cards, resources=volcano_vgpu.KEYS),
    _Dialect(volcano_gpu.volcano_gpu_cards, resources=volcano_gpu.KEYS),
    _Dialect(gpushare.gpushare_cards, resources=gpushare.KEYS),
    _Dialect(kubeshare.kubeshare_1_cards, annotations=kubeshare.KEYS_1),
    _Dialect(kubeshare.kubeshare_2_cards, labels=kubeshare.KEYS_2),
    _Dialect(kai.kai_cards, annotations=kai.KEYS),
)
_RESOURCES: Final = frozenset().union(*(dialect.resources for dialect in _DIALECTS))
_ANNOTATIONS: Final = frozenset().union(*(dialect.annotations for dialect in _DIALECTS))
_LABELS: Final = frozenset().union(*(dialect.labels for dialect in _DIALECTS))


def card_request(pod: core_v1.Pod) -> CardRequest | BadCardRequest | None:
    """Return what the pod asks of GPUs, None where it asks for none; raises BadQuantity."""
    if not _mentions_cards(pod):
        return None
    found = _dialects_of(pod)
    if len(found) > 1:
        (_, first), (_, second), *_ = found
        return BadCardRequest(f"{first} and {second} are both there: a pod must ask for GPUs in one way only")
    try:
        return found[0][0].read(pod) if found else None
    except BadCards as problem:
        return BadCardRequest(str(problem))


def _mentions_cards(pod: core_v1.Pod) -> bool:
    meta = pod.metadata
    if meta.annotations and not _ANNOTATIONS.isdisjoint(meta.annotations):
        return True
    if meta.labels and not _LABELS.isdisjoint(meta.labels):
        return True
    for container in containers_of(pod):
        resources = container.resources
        if resources is not None and resources.requests and not _RESOURCES.isdisjoint(resources.requests):
            return True
    return False


def _dialects_of(pod: core_v1.Pod) -> list[tuple[_Dialect, str]]:
    """Return the dialects that the pod uses, and a key of each."""
    asked = names_asked(pod, _RESOURCES)
    annotations, labels = (pod.metadata.annotations or {}).keys(), (pod.metadata.labels or {}).keys()
    found: list[tuple[_Dialect, str]] = []
    for dialect in _DIALECTS:
        used = (asked & dialect.resources) | (annotations & dialect.annotations) | (labels & dialect.labels)
        if used and not any(used <= other.includes for other, _ in found):
            found.append((dialect, min(used)))
    return found
