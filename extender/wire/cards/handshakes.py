"""Which cards was a bound pod given, and has the plugin of its node taken it up?

Annotations are copied with the templates of pods: only those are believed that speak of the bound pod's own node, or of
a request in the terms of their manager. Who asks calls for bound pods only.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from extender.model.device import CHOICES, BadCardRequest, CardManager, CardRequest, CardShare
from extender.wire import core_v1
from extender.wire.cards import (
    gpushare_handshake,
    hami_handshake,
    koordinator_handshake,
    own_handshake,
    volcano_gpu_handshake,
    volcano_vgpu_handshake,
)
from extender.wire.cards.handshake import Handshake

HANDSHAKES: Final[Mapping[CardManager, Handshake]] = {
    CardManager.OWN: own_handshake,
    CardManager.HAMI: hami_handshake,
    CardManager.GPUSHARE: gpushare_handshake,
    CardManager.VOLCANO_VGPU: volcano_vgpu_handshake,
    CardManager.VOLCANO_GPU: volcano_gpu_handshake,
    CardManager.KOORDINATOR: koordinator_handshake,
}


def given_cards(pod: core_v1.Pod, request: CardRequest | BadCardRequest | None) -> tuple[CardShare, ...]:
    """Return the cards that a bound pod was given, as far as anybody wrote it on the pod.

    Not more of them than it asks for: its owner may write there what he likes, and they are the node's.
    """
    shares = next((shares for each in _may_have_given(request) if (shares := each.given(pod))), ())
    return shares[: sum(need.count for need in request.needs)] if isinstance(request, CardRequest) else shares


def awaits_plugin(pod: core_v1.Pod, request: CardRequest | BadCardRequest | None) -> bool:
    """Whether the plugin of a bound pod's node has yet to take it up; once it runs it was."""
    if pod.status.phase not in ("", "Pending"):
        return False
    return any(each.awaits_plugin(pod) for each in _may_have_given(request))


def _may_have_given(request: CardRequest | BadCardRequest | None) -> Iterator[Handshake]:
    if isinstance(request, CardRequest):
        yield from (HANDSHAKES[manager] for manager, dialects in CHOICES.items() if request.dialect in dialects)
