"""Kueue's annotations on where a pod set must, or had better, be together: of its Topology Aware Scheduling.

They stand on the pod template. A pod set is one role of a job; the gang as a whole is held to what they say. Mirrors
kueue.x-k8s.io/v1beta1: both at once is refused there, and so is nonsense here. `podset-unconstrained-topology` asks
for nothing that is not done anyway.
"""

from collections.abc import Mapping
from typing import Final

from msgspec import structs

from extender.model.claim import Ignored, Terms
from extender.wire.level_names import LevelReader

REQUIRED: Final = "kueue.x-k8s.io/podset-required-topology"
PREFERRED: Final = "kueue.x-k8s.io/podset-preferred-topology"


def kueue_topology(annotations: Mapping[str, str]) -> Terms | None:
    """Return what they say; None without them. The value is the key of a node label."""
    if REQUIRED not in annotations and PREFERRED not in annotations:
        return None
    read = LevelReader(annotations, kind="label")
    terms = Terms(required=read.level(REQUIRED), preferred=read.level(PREFERRED), ignored=read.ignored)
    if terms.required and terms.preferred:
        both = Ignored(f"annotation {PREFERRED}", annotations[PREFERRED], f"alone, without {REQUIRED}")
        return structs.replace(terms, preferred=None, ignored=(*terms.ignored, both))
    return terms
