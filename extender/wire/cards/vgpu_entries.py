"""How do HAMi and its child, Volcano's vGPU, write which cards each container gets, and how far the plugin is?

A card is `UUID,NVIDIA,<MiB>,<percent of cores>:`.

What a plugin has made of a MIG card ends in brackets; the card is the one before them. Mirrors HAMi's
Encode/DecodeContainerDevices.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from extender.model.device import CardShare
from extender.wire import core_v1
from extender.wire.cards.amounts import MIB
from extender.wire.cards.handshake import CardChoice

CONTAINER_END = ";"
_MILLI_OF_PERCENT = 10
_ENTRY = re.compile(r"([^,:;\[]{1,128})(?:\[[^,:;]{0,128}\])?,[^,:;]{0,128},([0-9]{1,9}),([0-9]{1,3})")

_ALLOCATING = "allocating"


class VgpuKeys(Struct, frozen=True):
    """The annotations of one of the two."""

    node: str
    time: str
    to_allocate: str
    allocated: str
    bind_phase: str
    bind_time: str

    def given(self, pod: core_v1.Pod, first_container: int = 0) -> tuple[CardShare, ...]:
        """Return what is allocated to the containers from this one on, if it is so on the pod's node."""
        written = pod.metadata.annotations or {}
        return shares_in(written.get(self.allocated, ""), first_container) if self._is_here(pod) else ()

    def awaits_plugin(self, pod: core_v1.Pod) -> bool:
        """Whether the plugin has not said how it went."""
        return self._is_here(pod) and (pod.metadata.annotations or {}).get(self.bind_phase) == _ALLOCATING

    def annotations(self, choice: CardChoice, devices: str) -> Mapping[str, str]:
        """Return what the system's own scheduler writes."""
        now = str(int(choice.now_s))
        return {
            self.node: choice.node,
            self.time: now,
            self.to_allocate: devices,
            self.allocated: devices,
            self.bind_phase: _ALLOCATING,
            self.bind_time: now,
        }

    def _is_here(self, pod: core_v1.Pod) -> bool:
        return (pod.metadata.annotations or {}).get(self.node) == pod.spec.node_name


def entries_of(shares: Iterable[CardShare]) -> str:
    """Write the shares of one container; amounts between two units count as the upper one."""
    return "".join(
        f"{share.uuid},NVIDIA,{-(-share.memory_bytes // MIB)},{-(-share.core_milli // _MILLI_OF_PERCENT)}:"
        for share in shares
    )


def by_container(shares: Sequence[CardShare], containers: Iterable[int]) -> Iterator[str]:
    """Write the shares of each of these containers."""
    return (entries_of(share for share in shares if share.container == each) for each in containers)


def shares_in(text: str, first_container: int = 0) -> tuple[CardShare, ...]:
    """Read the shares of all containers from this one on; none if any of it makes no sense."""
    shares = []
    for container, part in enumerate(text.split(CONTAINER_END), first_container):
        for entry in filter(None, part.split(":")):
            match = _ENTRY.fullmatch(entry)
            if match is None:
                return ()
            uuid, mib, percent = match.groups()
            shares.append(CardShare(-1, uuid, int(percent) * _MILLI_OF_PERCENT, int(mib) * MIB, container))
    return tuple(shares)
