"""What does a pod ask of GPUs, in whichever terms?

Most pods ask for none, which is found out by their keys alone.
"""

from collections.abc import Callable, Set
from functools import lru_cache
from typing import Final

from msgspec import Struct

from extender.model.device import BadCardRequest, CardRequest
from extender.wire import core_v1
from extender.wire.cards import gpushare, hami, kai, koordinator, kubeshare, volcano_gpu, volcano_vgpu, whole
from extender.wire.cards.amounts import BadCards
from extender.wire.cards.asked import containers_of, names_asked


class _Dialect(Struct, frozen=True):
    """By which keys a dialect is known, and how it is read; `includes` are the keys of another that it has, too."""

    read: Callable[[core_v1.Pod], CardRequest | None]
    keys: Set[str]
    includes: Set[str] = frozenset()


_OF_RESOURCES: Final = (
    _Dialect(hami.hami_cards, hami.KEYS, includes=whole.KEYS),
    _Dialect(koordinator.koordinator_cards, koordinator.KEYS, includes=whole.KEYS),
    _Dialect(whole.whole_cards, whole.KEYS),
    _Dialect(volcano_vgpu.volcano_vgpu_cards, volcano_vgpu.KEYS),
    _Dialect(volcano_gpu.volcano_gpu_cards, volcano_gpu.KEYS),
    _Dialect(gpushare.gpushare_cards, gpushare.KEYS),
)
_OF_ANNOTATIONS: Final = (
    _Dialect(kubeshare.kubeshare_1_cards, kubeshare.KEYS_1),
    _Dialect(kai.kai_cards, kai.KEYS),
)
_OF_LABELS: Final = (_Dialect(kubeshare.kubeshare_2_cards, kubeshare.KEYS_2),)

_RESOURCES: Final = frozenset().union(*(dialect.keys for dialect in _OF_RESOURCES))
_ANNOTATIONS: Final = frozenset().union(*(dialect.keys for dialect in _OF_ANNOTATIONS))
_LABELS: Final = frozenset().union(*(dialect.keys for dialect in _OF_LABELS))


def card_request(pod: core_v1.Pod) -> CardRequest | BadCardRequest | None:
    """Return what the pod asks of GPUs, None where it asks for none; raises BadQuantity."""
    if not _mentions_cards(pod):
        return None
    annotations, labels = (pod.metadata.annotations or {}).keys(), (pod.metadata.labels or {}).keys()
    keys = names_asked(pod, _RESOURCES) | (annotations & _ANNOTATIONS) | (labels & _LABELS)
    dialect = _dialect_of(frozenset(keys))
    if not isinstance(dialect, _Dialect):
        return dialect
    try:
        return dialect.read(pod)
    except BadCards as bad:
        return BadCardRequest(str(bad))


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


@lru_cache(maxsize=1024)  # as many as there are ways to ask; the bound is against hostile variety
def _dialect_of(keys: frozenset[str]) -> _Dialect | BadCardRequest | None:
    """Return the dialect that has these keys."""
    found: list[tuple[_Dialect, str]] = []
    for dialect in (*_OF_RESOURCES, *_OF_ANNOTATIONS, *_OF_LABELS):
        used = keys & dialect.keys
        if used and not any(used <= other.includes for other, _ in found):
            found.append((dialect, min(used)))
    if len(found) > 1:
        (_, first), (_, second), *_ = found
        return BadCardRequest(f"{first} and {second} are both there: a pod must ask for GPUs in one way only")
    return found[0][0] if found else None
