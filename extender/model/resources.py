"""Amounts of resources as plain integers.

Units: `cpu` in milli-cores, `memory` and `ephemeral-storage` in bytes, everything else (GPUs, pods) in units.
A pod asks for one of `pods`, so that a node's limit on their number is a resource like any other.
"""

from collections.abc import Iterable, Mapping

Resources = Mapping[str, int]
"""Resource name -> amount. Treated as immutable; a name that is absent means zero."""

CPU = "cpu"
MEMORY = "memory"
EPHEMERAL_STORAGE = "ephemeral-storage"
PODS = "pods"


def add_up(amounts: Iterable[tuple[str, int]], to: Resources) -> dict[str, int]:
    """Return `to` with `amounts` added."""
    total = dict(to)
    for name, amount in amounts:
        total[name] = total.get(name, 0) + amount
    return total


def take_off(amounts: Iterable[tuple[str, int]], of: Resources) -> dict[str, int]:
    """Return `of` with `amounts` subtracted; what comes to zero is left out."""
    rest = dict(of)
    for name, amount in amounts:
        rest[name] = rest.get(name, 0) - amount
        if rest[name] == 0:
            del rest[name]
    return rest
