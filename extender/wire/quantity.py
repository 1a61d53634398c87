"""How much "1500m" or "2Gi" is.

Kubernetes' resource.Quantity as exact integers. Nano is the smallest part that it keeps (what is smaller is rounded
up), so an amount in nano-units is exact; amounts are added first and rounded up to the units of `model.resources`
last, as kube-scheduler does.

Only the grammar that Kubernetes documents is accepted, and nothing below zero, which the API server refuses in
resources. Mirrors k8s.io/apimachinery/pkg/api/resource.
"""

import re
from functools import lru_cache

from extender.model.resources import CPU

_GRAMMAR = re.compile(
    r"\+?(?P<whole>[0-9]*)(?:\.(?P<part>[0-9]*))?"
    r"(?:(?P<suffix>[KMGTPE]i|[numkMGTPE])|[eE](?P<exponent>[+-]?[0-9]+))?"
)
_SUFFIXES = {
    None: (10, 0),
    "n": (10, -9),
    "u": (10, -6),
    "m": (10, -3),
    "k": (10, 3),
    "M": (10, 6),
    "G": (10, 9),
    "T": (10, 12),
    "P": (10, 15),
    "E": (10, 18),
    "Ki": (2, 10),
    "Mi": (2, 20),
    "Gi": (2, 30),
    "Ti": (2, 40),
    "Pi": (2, 50),
    "Ei": (2, 60),
}
_NANOS_OF_MILLI = 10**6
_NANOS_OF_UNIT = 10**9
_LONGEST = 64
"""Characters. No amount on earth needs more, and the time to read one stays bounded."""
_LARGEST_EXPONENT = 30
"""Kubernetes' amounts end at 2^63; this is well beyond, and "1e999999999" must not fill the memory."""


class BadQuantity(ValueError):  # noqa: N818 - says what is wrong, as StopIteration does
    """Text that is no quantity; the error's text quotes it."""


@lru_cache(maxsize=16_384)  # clusters repeat a few hundred amounts; the bound is against hostile variety
def parse_quantity(text: str) -> int:
    """Return the amount in nano-units, rounded up; raises BadQuantity."""
    match = _GRAMMAR.fullmatch(text) if len(text) <= _LONGEST else None
    if match is None or not (match["whole"] or match["part"]):
        raise BadQuantity(
            f"{text[:_LONGEST]!r} is no quantity: write a number with an optional suffix, as 1500m or 2Gi"
        )
    base, power = _scale(match, text)
    part = match["part"] or ""
    digits = int(match["whole"] + part)
    numerator: int = digits * _NANOS_OF_UNIT * base ** max(power, 0)
    denominator: int = 10 ** len(part) * base ** max(-power, 0)
    return -(-numerator // denominator)


def _scale(match: re.Match[str], text: str) -> tuple[int, int]:
    if match["exponent"] is None:
        return _SUFFIXES[match["suffix"]]
    exponent = int(match["exponent"])
    if abs(exponent) > _LARGEST_EXPONENT:
        raise BadQuantity(f"{text!r} is out of range: exponents go from -{_LARGEST_EXPONENT} to {_LARGEST_EXPONENT}")
    return 10, exponent


def whole_amount(resource: str, nanos: int) -> int:
    """Return the amount in the unit that `model.resources` gives this resource, rounded up."""
    return -(-nanos // (_NANOS_OF_MILLI if resource == CPU else _NANOS_OF_UNIT))
