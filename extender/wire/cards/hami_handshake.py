"""How does HAMi's device plugin come to know of our choice? It reads the pod that the node's lock names.

Then it takes the next container's cards off what is to be allocated, and says `success` in the pod's bind-phase when
nothing is left, or `failed`; with either it releases the lock. Mirrors HAMi's pkg/util and device/nvidia.
"""

from collections.abc import Mapping
from typing import Final

from extender.model.device import CardRequest, CardShare
from extender.wire import core_v1
from extender.wire.cards.handshake import CardChoice
from extender.wire.cards.vgpu_entries import CONTAINER_END, VgpuKeys, by_container

KEYS: Final = VgpuKeys(
    node="hami.io/vgpu-node",
    time="hami.io/vgpu-time",
    to_allocate="hami.io/vgpu-devices-to-allocate",
    allocated="hami.io/vgpu-devices-allocated",
    bind_phase="hami.io/bind-phase",
    bind_time="hami.io/bind-time",
)

NODE_LOCK: Final = "hami.io/mutex.lock"

_EVERYBODY = "every pod"
"""The name of the one queue: the lock names one pod of the node at a time."""


def given(pod: core_v1.Pod) -> tuple[CardShare, ...]:
    """Return what is allocated, if it is so on the pod's node."""
    return KEYS.given(pod)


def awaits_plugin(pod: core_v1.Pod) -> bool:
    """Whether the plugin has not said how it went."""
    return KEYS.awaits_plugin(pod)


def annotations(choice: CardChoice) -> Mapping[str, str]:
    """Return what HAMi's own scheduler writes: every container ends in a semicolon, those without a card, too."""
    parts = by_container(choice.shares, range(choice.request.containers))
    return KEYS.annotations(choice, "".join(f"{part}{CONTAINER_END}" for part in parts))


def turn(_request: CardRequest) -> str:
    """All pods of a node go one after the other."""
    return _EVERYBODY
