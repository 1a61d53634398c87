"""How do HAMi and Volcano's vGPU write which cards each container gets? `UUID,NVIDIA,<MiB>,<percent of cores>:` a card.

What a plugin has made of a MIG card ends in brackets; the card is the one before them. Mirrors HAMi's
Encode/DecodeContainerDevices.
"""

import re
from collections.abc import Iterable, Iterator, Sequence

from extender.model.device import CardShare
from extender.wire.cards.amounts import MIB

CONTAINER_END = ";"
_MILLI_OF_PERCENT = 10
_ENTRY = re.compile(r"([^,:;\[]{1,128})(?:\[[^,:;]{0,128}\])?,[^,:;]{0,128},([0-9]{1,9}),([0-9]{1,3})")


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
