"""Volcano's `networkTopology`, in the spec of a PodGroup.

Mirrors NetworkTopologySpec of scheduling.volcano.sh/v1beta1. Its tiers are those of HyperNode objects, which are not
read: tier 1 is the first level of our own configuration, and a tier's name is a level's. As in Volcano, `hard` tries
nearer tiers first, and says nothing without a highest one; `soft` has no bound.
"""

from msgspec import Struct

from extender.model.claim import Ignored, Terms
from extender.model.topology import LevelName

_NEAREST = (LevelName("1", "tier"),)
_HARD = "hard"
"""The CRD's default."""


class NetworkTopology(Struct, frozen=True, rename="camel", gc=False):
    """`spec.networkTopology`."""

    mode: str = _HARD
    highest_tier_allowed: int | None = None
    highest_tier_name: str = ""


def volcano_topology(spec: NetworkTopology | None) -> Terms | None:
    """Return what it says; None without it."""
    if spec is None:
        return None
    if spec.mode == "soft":
        return Terms(preferred=_NEAREST)
    if spec.mode not in {_HARD, ""}:
        return Terms(ignored=(Ignored("networkTopology.mode of its PodGroup", spec.mode, "hard or soft"),))
    if spec.highest_tier_name:
        return Terms(required=(LevelName(spec.highest_tier_name, "name"),), preferred=_NEAREST)
    if spec.highest_tier_allowed is None:
        where, wanted = "networkTopology.mode of its PodGroup", "soft, or beside highestTierAllowed or highestTierName"
        return Terms(ignored=(Ignored(where, _HARD, wanted),))
    return Terms(required=(LevelName(str(spec.highest_tier_allowed), "tier"),), preferred=_NEAREST)
