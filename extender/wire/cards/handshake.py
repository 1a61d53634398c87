"""What does each device manager want to be told of the cards that were chosen? One interface, a file for each manager.

A scheduler can only write its choice on the pod. How the manager's plugin finds that pod again when the kubelet asks
for cards decides how many pods may be on their way to one node at a time.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol

from msgspec import Struct

from extender.model.device import CardInventory, CardRequest, CardShare
from extender.wire import core_v1


class CardChoice(Struct, frozen=True):
    """Cards of `node` for a pod; `now_s` is the time since the epoch."""

    request: CardRequest
    shares: Sequence[CardShare]
    inventory: CardInventory
    node: str
    now_s: float

    @property
    def now_ns(self) -> int:
        """The same in nanoseconds, from which plugins tell who came first; a float has no more digits than these."""
        return round(self.now_s * 1e6) * 1000


class Handshake(Protocol):
    """One device manager's side, as annotations; a module is one.

    `NODE_LOCK` is the node's annotation that names the pod whose cards are being handed out; empty where there is none.
    """

    NODE_LOCK: str

    def given(self, pod: core_v1.Pod, /) -> tuple[CardShare, ...]:
        """Return the cards that a bound pod was given, as its annotations say; none where they make no sense."""

    def awaits_plugin(self, pod: core_v1.Pod, /) -> bool:
        """Whether a bound pod was given cards that the node's plugin has not handed out yet."""

    def annotations(self, choice: CardChoice, /) -> Mapping[str, str]:
        """Return what is to be written on the pod together with its node."""

    def turn(self, request: CardRequest, /) -> str:
        """Return in which queue the pod waits on its node until those before it are taken up; empty for none."""
