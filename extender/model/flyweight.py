"""Which objects are worth keeping one of, where there are many equal ones?

The pods of a job repeat each other, so that what they share is kept once, for a while. What is far larger than any
template is not: somebody who makes such pods one after the other must not fill the memory with them.
"""

from typing import Final

from msgspec import Struct
from msgspec.msgpack import encode

KEPT: Final = 16_384
"""Objects of a sort: more than a large cluster has templates, at 1 KB each."""

LARGEST_BYTES: Final = 4096
"""As it is encoded, and four times that in memory: 250 MB of a sort, when somebody fills it."""


def size_of(each: Struct) -> int:
    """Return how large the object is, in bytes as it is encoded."""
    return len(encode(each))


def is_worth_keeping(each: Struct) -> bool:
    """Whether the object is not too large to be kept for others that may be equal."""
    return size_of(each) <= LARGEST_BYTES
