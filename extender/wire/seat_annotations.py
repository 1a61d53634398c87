"""What is written on a gang's member with its Binding: its sorted rank, and where on the network its node is."""

from collections.abc import Mapping, Sequence
from typing import Final

RANK: Final = "gang-extender.io/rank"
DOMAIN: Final = "gang-extender.io/topology-domain"


def seat_annotations(sorted_rank: int, whereabouts: Sequence[tuple[str, str]]) -> Mapping[str, str]:
    """Return the annotations; levels of which the node is in no domain are left out: `block=b7,spine=s1`."""
    domain = ",".join(f"{level}={value}" for level, value in whereabouts)
    return {RANK: str(sorted_rank), **({DOMAIN: domain} if domain else {})}


def sorted_rank_of(annotations: Mapping[str, str]) -> int | None:
    """Return the sorted rank that a bound pod was given."""
    text = annotations.get(RANK, "")
    return int(text) if text.isdecimal() and len(text) < 10 else None
