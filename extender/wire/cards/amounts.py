"""How are the numbers in requests for GPUs read? Exactly; what is none becomes a clause for the pod's owner."""

import re
from typing import Final

from extender.model.device import WHOLE_MILLI
from extender.model.resources import MEMORY
from extender.wire.quantity import BadQuantity, parse_quantity, whole_amount

MIB: Final = 2**20
GIB: Final = 2**30

_DECIMAL = re.compile(r"\+?(?P<whole>[0-9]{0,9})(?:\.(?P<part>[0-9]{0,40}))?")
"""Nine digits are more GPUs than there are; the part is bounded so that reading it is."""
_COUNT = re.compile(r"\+?[0-9]{1,9}")
_SHOWN = 63
"""Characters of a bad value that are shown: an annotation may hold 256 KiB."""


class BadCards(ValueError):  # noqa: N818 - says what is wrong, as BadQuantity does
    """A request for GPUs that makes no sense; the error's text is a clause without a full stop."""


def unlike(key: str, text: str, wanted: str) -> BadCards:
    """Return the complaint that the value of `key` is not what it must be."""
    return BadCards(f"{key} is {text[:_SHOWN]!r}: it must be {wanted}")


def share_milli(key: str, text: str) -> int:
    """Return how many thousandths of a GPU the decimal number is, rounded up; raises BadCards."""
    match = _DECIMAL.fullmatch(text)
    if match is None or not (match["whole"] or match["part"]):
        raise unlike(key, text, "a number such as 0.5")
    part = match["part"] or ""
    parts_of_one: int = 10 ** len(part)
    return -(-int(match["whole"] + part) * WHOLE_MILLI // parts_of_one)


def whole_count(key: str, text: str) -> int:
    """Return the whole number of 1 or more that the text is; raises BadCards."""
    count = int(text) if _COUNT.fullmatch(text) else 0
    if not count:
        raise unlike(key, text, "a whole number of 1 or more")
    return count


def byte_count(key: str, text: str) -> int:
    """Return how many bytes the quantity is, rounded up; raises BadCards."""
    try:
        return whole_amount(MEMORY, parse_quantity(text))
    except BadQuantity:
        raise unlike(key, text, "a number of bytes such as 3189243904 or 3Gi") from None


def percent_milli(key: str, percent: int) -> int:
    """Return so many percent of a GPU as thousandths; raises BadCards above the whole of it."""
    if percent > 100:
        raise unlike(key, str(percent), "100 or less, in percent of a GPU")
    return percent * WHOLE_MILLI // 100
