"""How does Volcano's vGPU plugin come to know of our choice? It guesses.

Of the pods that name its node it takes the one with the oldest vgpu-time whose cards are as many as the kubelet asks
for. Then it erases them from what is to be allocated, and sets the time to one that never comes. Two GPU containers in
a pod it does not find. Mirrors volcano-vgpu-device-plugin's pkg/util.
"""

from collections.abc import Mapping
from typing import Final

from extender.model.device import CardRequest, CardShare
from extender.wire import core_v1
from extender.wire.cards.handshake import CardChoice
from extender.wire.cards.vgpu_entries import CONTAINER_END, by_container, shares_in

NODE: Final = "volcano.sh/vgpu-node"
TIME: Final = "volcano.sh/vgpu-time"
TO_ALLOCATE: Final = "volcano.sh/devices-to-allocate"
ALLOCATED: Final = "volcano.sh/vgpu-ids-new"
BIND_PHASE: Final = "volcano.sh/bind-phase"
BIND_TIME: Final = "volcano.sh/bind-time"
ALLOCATING: Final = "allocating"

NODE_LOCK: Final = ""
"""The plugin releases volcano.sh/mutex.lock, but does not look who has it."""


def given(pod: core_v1.Pod) -> tuple[CardShare, ...]:
    """Return what is allocated, if it is so on the pod's node."""
    written = pod.metadata.annotations or {}
    if written.get(NODE) != pod.spec.node_name:
        return ()
    return shares_in(written.get(ALLOCATED, ""), len(pod.spec.init_containers or ()))


def awaits_plugin(pod: core_v1.Pod) -> bool:
    """Whether the plugin has not said how it went."""
    written = pod.metadata.annotations or {}
    return written.get(NODE) == pod.spec.node_name and written.get(BIND_PHASE) == ALLOCATING


def annotations(choice: CardChoice) -> Mapping[str, str]:
    """Return what Volcano writes: containers, without init containers, with semicolons between them."""
    request = choice.request
    parts = by_container(choice.shares, range(request.init_containers, request.containers))
    devices, now = CONTAINER_END.join(parts), str(int(choice.now_s))
    return {
        NODE: choice.node,
        TIME: now,
        TO_ALLOCATE: devices,
        ALLOCATED: devices,
        BIND_PHASE: ALLOCATING,
        BIND_TIME: now,
    }


def turn(request: CardRequest) -> str:
    """Pods with as many cards cannot be told from one another."""
    return f"{sum(need.count for need in request.needs)} cards"
