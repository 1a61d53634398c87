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
from extender.wire.cards.vgpu_entries import CONTAINER_END, VgpuKeys, by_container

KEYS: Final = VgpuKeys(
    node="volcano.sh/vgpu-node",
    time="volcano.sh/vgpu-time",
    to_allocate="volcano.sh/devices-to-allocate",
    allocated="volcano.sh/vgpu-ids-new",
    bind_phase="volcano.sh/bind-phase",
    bind_time="volcano.sh/bind-time",
)

NODE_LOCK: Final = ""
"""The plugin releases volcano.sh/mutex.lock, but does not look who has it."""


def given(pod: core_v1.Pod) -> tuple[CardShare, ...]:
    """Return what is allocated, if it is so on the pod's node."""
    return KEYS.given(pod, first_container=len(pod.spec.init_containers or ()))


def awaits_plugin(pod: core_v1.Pod) -> bool:
    """Whether the plugin has not said how it went."""
    return KEYS.awaits_plugin(pod)


def annotations(choice: CardChoice) -> Mapping[str, str]:
    """Return what Volcano writes: containers, without init containers, with semicolons between them."""
    request = choice.request
    parts = by_container(choice.shares, range(request.init_containers, request.containers))
    return KEYS.annotations(choice, CONTAINER_END.join(parts))


def turn(request: CardRequest) -> str:
    """Pods with as many cards cannot be told from one another."""
    return f"{sum(need.count for need in request.needs)} cards"
