"""What each device manager writes of its cards, and what it wants to be told: one interface, a file for each manager.

A scheduler can only write its choice on the pod. How the manager's plugin finds that pod again when the kubelet asks
for cards decides how many pods may be on their way to one node at a time.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol

from extender.model.device import CardInventory, CardPolicy, CardRequest, CardShare
from extender.wire import core_v1


class Handshake(Protocol):
    """One device manager's side, as annotations and labels."""

    def inventory(self, node: core_v1.Node, policy: CardPolicy) -> CardInventory | None:
        """Return the node's cards; None where this manager has none there."""

    def given(self, pod: core_v1.Pod) -> tuple[CardShare, ...]:
        """Return the cards that a bound pod was given, as its annotations say; none where they do not."""

    def awaits_plugin(self, pod: core_v1.Pod) -> bool:
        """Whether a bound pod was given cards that the node's plugin has not handed out yet."""

    def annotations(
        self, request: CardRequest, shares: Sequence[CardShare], inventory: CardInventory, node: str, now_s: float
    ) -> Mapping[str, str]:
        """Return what is to be written on the pod together with its node; `now_s` is the time since the epoch."""

    def turn(self, request: CardRequest) -> str:
        """Return in which queue the pod waits on its node until those before it are taken up; empty for none."""
