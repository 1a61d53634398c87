"""What a pod says of its gang, before anybody looks at its siblings."""

from typing import NewType

from msgspec import Struct

GangKey = NewType("GangKey", str)
"""`namespace/name`, as it is shown to users: the same name in two namespaces is two gangs."""


class GangClaim(Struct, frozen=True, gc=False):
    """The gang that a pod declares itself a member of."""

    key: GangKey
    min_available: int


class BadGangClaim(Struct, frozen=True, gc=False):
    """Gang metadata that cannot be honoured; `problem` is a sentence for the pod's owner."""

    key: GangKey
    problem: str


def gang_key(namespace: str, name: str) -> GangKey:
    """Return the key of the gang `name` in `namespace`."""
    return GangKey(f"{namespace}/{name}")
