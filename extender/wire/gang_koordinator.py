"""The gang that Koordinator's two annotations name.

Mirrors the annotation protocol of Koordinator's coscheduling, but strict: what Koordinator ignores silently is said to
the pod's owner here.
"""

import re

from extender.model.claim import BadGangClaim, GangClaim, gang_key
from extender.wire.core_v1 import Pod

NAME = "gang.scheduling.koordinator.sh/name"
MIN_AVAILABLE = "gang.scheduling.koordinator.sh/min-available"

_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,251}[A-Za-z0-9])?")
"""Wider than an object's name, for the sake of existing jobs, but fit to be shown in one line of an event."""
_COUNT = re.compile(r"\+?[0-9]{1,9}")
_SHOWN = 63
"""Characters of a bad value that are shown: an annotation may hold 256 KiB."""


def koordinator_gang(pod: Pod) -> GangClaim | BadGangClaim | None:
    """Return the gang that the pod's annotations name."""
    annotations = pod.metadata.annotations or {}
    name = annotations.get(NAME)
    if name is None:
        return None
    if not _NAME.fullmatch(name):
        problem = f"{_written(NAME, name)}: it must be at most 253 letters, digits, '-', '_' and '.'"
        return BadGangClaim(gang_key(pod.metadata.namespace, name[:_SHOWN]), problem)
    key = gang_key(pod.metadata.namespace, name)
    count = annotations.get(MIN_AVAILABLE)
    min_available = int(count) if count is not None and _COUNT.fullmatch(count.strip()) else 0
    if min_available < 1:
        return BadGangClaim(key, f"{_written(MIN_AVAILABLE, count)}: it must be a whole number of 1 or more")
    return GangClaim(key, min_available)


def _written(annotation: str, value: str | None) -> str:
    return f"annotation {annotation} is " + ("missing" if value is None else repr(value[:_SHOWN]))
