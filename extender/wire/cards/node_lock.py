"""For which pod is a node locked, and since when? `<RFC 3339 time>,<namespace>,<pod>`, as HAMi writes it."""

from datetime import UTC, datetime
from enum import Enum

from msgspec import Struct

EXPIRES_S = 300.0
"""HAMi's own default: what is older nobody honours."""


class LockUse(Enum):
    """What a lock still means to the pod that it names."""

    WANTED = "the pod is on its way there"
    ENDING = "its cards were handed out; whoever did it is about to release the lock"
    OVER = "it is not on its way there"


class NodeLock(Struct, frozen=True):
    """A pod whose cards are being handed out; older versions of HAMi name none."""

    since_s: float
    namespace: str = ""
    name: str = ""

    @property
    def value(self) -> str:
        """What is written on the node."""
        since = datetime.fromtimestamp(self.since_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        return f"{since},{self.namespace},{self.name}"


def read_lock(text: str) -> NodeLock | None:
    """Return what an annotation says; None where it makes no sense, which locks nothing."""
    since, *owner = text.split(",")
    try:
        at = datetime.fromisoformat(since)
    except ValueError:
        return None
    if at.tzinfo is None or len(owner) not in (0, 2):
        return None
    return NodeLock(at.timestamp(), *owner)
