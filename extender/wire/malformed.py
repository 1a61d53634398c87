"""What is wrong with bytes that cannot be read."""

from typing import TypeVar

from msgspec import MsgspecError
from msgspec.json import Decoder

T = TypeVar("T")


UNREADABLE = (MsgspecError, RecursionError, ValueError, OverflowError)
"""What reading raises: no such object, nested too deeply, no UTF-8, no quantity, a time or number out of range."""


class MalformedBody(Exception):  # noqa: N818 - says what is wrong, as StopIteration does
    """Bytes that are not what they should be; the text is a sentence that says what was wanted and where it is not."""


def decode(decoder: Decoder[T], body: bytes | memoryview, wanted: str) -> T:
    """Return the decoded body; raises MalformedBody. `wanted` names what the body should have been."""
    try:
        return decoder.decode(body)
    except UNREADABLE as error:
        raise MalformedBody(f"This is no {wanted}: {error}.") from error
