"""KubeShare: shares of one GPU, or whole ones, in annotations (KubeShare 1) or labels (KubeShare 2) of the pod.

gpu_request is what the pod is sure to have, gpu_limit what it may use while nobody else does. Mirrors the checks of
KubeShare 1's controller and of KubeShare 2's getPodLabels.
"""

from collections.abc import Mapping
from typing import Final

from extender.model.device import WHOLE_MILLI, CardDialect, CardNeed, CardRequest, CardTerms
from extender.wire import core_v1
from extender.wire.cards.amounts import BadCards, byte_count, share_milli, unlike
from extender.wire.cards.asked import containers_of

_PREFIX_1: Final = "kubeshare"
_PREFIX_2: Final = "sharedgpu"
_REQUEST: Final = "gpu_request"
_LIMIT: Final = "gpu_limit"
_MEMORY: Final = "gpu_mem"
GPUID: Final = f"{_PREFIX_1}/GPUID"
_MODEL: Final = f"{_PREFIX_2}/gpu_model"

KEYS_1: Final = frozenset(f"{_PREFIX_1}/{name}" for name in (_REQUEST, _LIMIT, _MEMORY))
"""Of annotations."""
KEYS_2: Final = frozenset(f"{_PREFIX_2}/{name}" for name in (_REQUEST, _LIMIT, _MEMORY))
"""Of labels."""


def kubeshare_1_cards(pod: core_v1.Pod) -> CardRequest | None:
    """Return the request, None where it is for nothing; raises BadCards."""
    annotations = pod.metadata.annotations or {}
    gpu = "" if pod.spec.node_name else annotations.get(GPUID, "")  # on a bound pod it is what was given
    terms = CardTerms(uuids=(gpu,) if gpu else ())
    return _request(pod, CardDialect.KUBESHARE_1, annotations, _PREFIX_1, terms)


def kubeshare_2_cards(pod: core_v1.Pod) -> CardRequest | None:
    """Return the request, None where it is for nothing; raises BadCards."""
    labels = pod.metadata.labels or {}
    model = labels.get(_MODEL, "")
    return _request(pod, CardDialect.KUBESHARE_2, labels, _PREFIX_2, CardTerms(exact_model=model))


def _request(
    pod: core_v1.Pod, dialect: CardDialect, metadata: Mapping[str, str], prefix: str, terms: CardTerms
) -> CardRequest | None:
    request_milli, limit_milli = _shares(metadata, f"{prefix}/{_REQUEST}", f"{prefix}/{_LIMIT}")
    if not limit_milli:
        return None
    memory_bytes = byte_count(f"{prefix}/{_MEMORY}", metadata.get(f"{prefix}/{_MEMORY}", "0"))
    if limit_milli > WHOLE_MILLI:  # whole GPUs, with all their memory
        need = CardNeed(limit_milli // WHOLE_MILLI, WHOLE_MILLI, memory_milli=WHOLE_MILLI)
    else:
        need = CardNeed(
            core_milli=request_milli, memory_bytes=memory_bytes, memory_milli=0 if memory_bytes else request_milli
        )
    return CardRequest(dialect, (need,), terms, len(containers_of(pod)), limit_milli=min(limit_milli, WHOLE_MILLI))


def _shares(metadata: Mapping[str, str], request_key: str, limit_key: str) -> tuple[int, int]:
    """Return request and limit; raises BadCards where they do not go together."""
    request, limit = metadata.get(request_key, "0"), metadata.get(limit_key)
    if limit is None:
        raise BadCards(f"{limit_key} is missing: it must be there, and at least {request_key}")
    request_milli, limit_milli = share_milli(request_key, request), share_milli(limit_key, limit)
    if limit_milli < request_milli:
        raise unlike(limit_key, limit, f"at least {request_key}, which is {request[:63]!r}")
    if limit_milli > WHOLE_MILLI and (limit_milli % WHOLE_MILLI or limit_milli != request_milli):
        raise unlike(limit_key, limit, f"at most 1, or a whole number equal to {request_key}")
    return request_milli, limit_milli
