"""Which cards does a pod say that it wants, beside how much of them? HAMi's annotations, and Volcano's after them."""

from collections.abc import Mapping, Sequence
from typing import Final

from extender.model.device import CardTerms

_USE_MODELS: Final = "nvidia.com/use-gputype"
_SHUN_MODELS: Final = "nvidia.com/nouse-gputype"
_USE_UUIDS: Final = "nvidia.com/use-gpuuuid"
_SHUN_UUIDS: Final = "nvidia.com/nouse-gpuuuid"
_ONE_NUMA: Final = "nvidia.com/numa-bind"
_POLICY: Final = "hami.io/gpu-scheduler-policy"
_MODE: Final = "nvidia.com/vgpu-mode"
_VGPU_MODE: Final = "volcano.sh/vgpu-mode"
_VGPU_USE_UUIDS: Final = "volcano.sh/vgpu-use-gpuuuid"
_VGPU_SHUN_UUIDS: Final = "volcano.sh/vgpu-nouse-gpuuuid"
_VGPU_USE_MODELS: Final = "volcano.sh/vgpu-use-gputype"
_VGPU_SHUN_MODELS: Final = "volcano.sh/vgpu-nouse-gputype"

_TRUE = frozenset({"1", "t", "T", "TRUE", "true", "True"})
"""What Go's strconv.ParseBool takes for true."""
_SPREAD: Final = {"binpack": False, "spread": True}
"""HAMi's other policies leave it to the configuration; the first of a list counts that does not."""
_MUTEX: Final = "mutex"
"""The one that asks for cards that nobody uses."""

_NO_TERMS = CardTerms()
_KEYS = frozenset(
    {
        _USE_MODELS,
        _SHUN_MODELS,
        _USE_UUIDS,
        _SHUN_UUIDS,
        _ONE_NUMA,
        _POLICY,
        _MODE,
        _VGPU_MODE,
        _VGPU_USE_UUIDS,
        _VGPU_SHUN_UUIDS,
        _VGPU_USE_MODELS,
        _VGPU_SHUN_MODELS,
    }
)


def hami_terms(annotations: Mapping[str, str] | None) -> CardTerms:
    """Return what HAMi's annotations say; they count for whole GPUs as well."""
    if annotations is None or _KEYS.isdisjoint(annotations):
        return _NO_TERMS
    return CardTerms(
        models=_listed(annotations, _USE_MODELS),
        not_models=_listed(annotations, _SHUN_MODELS),
        uuids=_listed(annotations, _USE_UUIDS),
        not_uuids=_listed(annotations, _SHUN_UUIDS),
        one_numa=annotations.get(_ONE_NUMA) in _TRUE,
        spread=next((_SPREAD[each] for each in _listed(annotations, _POLICY) if each in _SPREAD), None),
        mode=annotations.get(_MODE, ""),
    )


def wants_idle_cards(annotations: Mapping[str, str] | None) -> bool:
    """Whether HAMi's annotations say that only cards will do of which nobody has any."""
    return annotations is not None and _MUTEX in _listed(annotations, _POLICY)


def volcano_terms(annotations: Mapping[str, str] | None) -> CardTerms:
    """Return what Volcano's annotations say; models go by HAMi's keys there, too."""
    if annotations is None or _KEYS.isdisjoint(annotations):
        return _NO_TERMS
    return CardTerms(
        models=_listed(annotations, _VGPU_USE_MODELS, _USE_MODELS),
        not_models=_listed(annotations, _VGPU_SHUN_MODELS, _SHUN_MODELS),
        uuids=_listed(annotations, _VGPU_USE_UUIDS),
        not_uuids=_listed(annotations, _VGPU_SHUN_UUIDS),
        mode=annotations.get(_VGPU_MODE, ""),
    )


def _listed(annotations: Mapping[str, str], *keys: str) -> tuple[str, ...]:
    """Return what the first of the keys lists that is there."""
    found = next((annotations[key] for key in keys if key in annotations), "")
    return _items(found.split(","))


def _items(parts: Sequence[str]) -> tuple[str, ...]:
    return tuple(item for part in parts if (item := part.strip()))
