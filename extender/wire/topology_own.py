"""Our own two annotations on where a gang's members must, or had better, be together."""

from collections.abc import Mapping
from typing import Final

from extender.model.claim import Terms
from extender.wire.level_names import LevelReader

REQUIRED: Final = "gang-extender.io/required-topology"
PREFERRED: Final = "gang-extender.io/preferred-topology"


def own_topology(annotations: Mapping[str, str]) -> Terms | None:
    """Return what they say; None without them. The value is a level's name or the key of a node label."""
    if REQUIRED not in annotations and PREFERRED not in annotations:
        return None
    read = LevelReader(annotations)
    return Terms(required=read.level(REQUIRED), preferred=read.level(PREFERRED), ignored=read.ignored)
