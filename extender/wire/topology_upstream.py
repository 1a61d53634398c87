"""Kubernetes' own `schedulingConstraints.topology`, in the spec of a PodGroup.

Mirrors PodGroupSchedulingConstraints of scheduling.k8s.io/v1alpha2 (alpha in 1.36, feature gate
TopologyAwareWorkloadScheduling): all pods of the group in one domain of the label. At most one is allowed there.
"""

from msgspec import Struct

from extender.model.claim import Terms
from extender.model.topology import LevelName


class TopologyConstraint(Struct, frozen=True, gc=False):
    """One of `spec.schedulingConstraints.topology`."""

    key: str = ""


class SchedulingConstraints(Struct, frozen=True, gc=False):
    """`spec.schedulingConstraints`."""

    topology: tuple[TopologyConstraint, ...] | None = None


def upstream_topology(constraints: SchedulingConstraints | None) -> Terms | None:
    """Return what they say; None where they say nothing."""
    keys = [each.key for each in (constraints.topology or () if constraints else ()) if each.key]
    return Terms(required=tuple(LevelName(key, "label") for key in keys)) if keys else None
