"""How does HAMi's device plugin come to know of our choice? It reads the pod that the node's lock names.

Then it takes the next container's cards off what is to be allocated, and says `success` in the pod's bind-phase when
nothing is left, or `failed`; with either it releases the lock. Mirrors HAMi's pkg/util and device/nvidia.
"""

from collections.abc import Mapping
from typing import Final

from extender.model.device import CardRequest, CardShare
from extender.wire import core_v1
from extender.wire.cards.handshake import CardChoice
from extender.wire.cards.vgpu_entries import CONTAINER_END, by_container, shares_in

NODE: Final = "hami.io/vgpu-node"
TIME: Final = "hami.io/vgpu-time"
TO_ALLOCATE: Final = "hami.io/vgpu-devices-to-allocate"
ALLOCATED: Final = "hami.io/vgpu-devices-allocated"
BIND_PHASE: Final = "hami.io/bind-phase"
BIND_TIME: Final = "hami.io/bind-time"
ALLOCATING: Final = "allocating"

NODE_LOCK: Final = "hami.io/mutex.lock"

_EVERYBODY = "every pod"
"""The name of the one queue: the lock names one pod of the node at a time."""


def given(pod: core_v1.Pod) -> tuple[CardShare, ...]:
    """Return what is allocated, if it is so on the pod's node."""
    written = pod.metadata.annotations or {}
    return shares_in(written.get(ALLOCATED, "")) if written.get(NODE) == pod.spec.node_name else ()


def awaits_plugin(pod: core_v1.Pod) -> bool:
    """Whether the plugin has not said how it went."""
    written = pod.metadata.annotations or {}
    return written.get(NODE) == pod.spec.node_name and written.get(BIND_PHASE) == ALLOCATING


def annotations(choice: CardChoice) -> Mapping[str, str]:
    """Return what HAMi's own scheduler writes: every container ends in a semicolon, those without a card, too."""
    parts = by_container(choice.shares, range(choice.request.containers))
    devices = "".join(f"{part}{CONTAINER_END}" for part in parts)
    now = str(int(choice.now_s))
    return {
        NODE: choice.node,
        TIME: now,
        TO_ALLOCATE: devices,
        ALLOCATED: devices,
        BIND_PHASE: ALLOCATING,
        BIND_TIME: now,
    }


def turn(_request: CardRequest) -> str:
    """All pods of a node go one after the other."""
    return _EVERYBODY
