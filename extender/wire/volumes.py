"""What is read of PersistentVolumeClaims and PersistentVolumes.

Mirrors isPVCFullyBound of VolumeBinding and getPVTopologies of VolumeZone.
"""

from msgspec import Struct

from extender.model.pod import NodeSelectorTerm
from extender.model.volume import PersistentVolume, VolumeClaim
from extender.wire.core_v1 import NodeSelector, ObjectMeta, Something

_BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
_ZONE_LABELS = (
    "failure-domain.beta.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region",
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
)
_ZONE_DELIMITER = "__"


class _Wire(Struct, frozen=True, gc=False, rename="camel"):
    pass


class ClaimSpec(_Wire, frozen=True):
    """`spec` of a PersistentVolumeClaim."""

    volume_name: str = ""
    access_modes: tuple[str, ...] | None = None


class ClaimStatus(_Wire, frozen=True):
    """`status` of a PersistentVolumeClaim."""

    phase: str = ""


class PersistentVolumeClaim(_Wire, frozen=True):
    """A v1 PersistentVolumeClaim."""

    metadata: ObjectMeta
    spec: ClaimSpec = ClaimSpec()
    status: ClaimStatus = ClaimStatus()


class VolumeNodeAffinity(_Wire, frozen=True):
    """`spec.nodeAffinity` of a PersistentVolume."""

    required: NodeSelector | None = None


class VolumeSpec(_Wire, frozen=True):
    """`spec` of a PersistentVolume; the last five are the in-tree kinds that are translated to CSI."""

    node_affinity: VolumeNodeAffinity | None = None
    csi: Something | None = None
    aws_elastic_block_store: Something | None = None
    azure_disk: Something | None = None
    cinder: Something | None = None
    gce_persistent_disk: Something | None = None
    portworx_volume: Something | None = None


class Volume(_Wire, frozen=True):
    """A v1 PersistentVolume."""

    metadata: ObjectMeta
    spec: VolumeSpec = VolumeSpec()


def volume_claim_of(claim: PersistentVolumeClaim) -> VolumeClaim:
    """Return the claim as scheduling sees it."""
    meta, spec = claim.metadata, claim.spec
    owners = [owner.uid for owner in meta.owner_references or () if owner.controller]
    return VolumeClaim(
        namespace=meta.namespace,
        name=meta.name,
        volume=spec.volume_name if _BIND_COMPLETED in (meta.annotations or {}) else "",
        made_for=owners[0] if owners else "",
        failing=meta.deletion_timestamp is not None or claim.status.phase == "Lost",
        single_pod="ReadWriteOncePod" in (spec.access_modes or ()),
    )


def persistent_volume_of(volume: Volume) -> PersistentVolume:
    """Return the volume as scheduling sees it."""
    spec, labels = volume.spec, volume.metadata.labels or {}
    in_tree = (spec.aws_elastic_block_store, spec.azure_disk, spec.cinder, spec.gce_persistent_disk)
    zones = [(key, _zones(labels[key])) for key in _ZONE_LABELS if key in labels]
    return PersistentVolume(
        name=volume.metadata.name,
        required_terms=_required_terms(spec.node_affinity),
        zones=tuple((key, values) for key, values in zones if values),
        counted=spec.csi is not None,
        migratable=any(each is not None for each in (*in_tree, spec.portworx_volume)),
    )


def _required_terms(affinity: VolumeNodeAffinity | None) -> tuple[NodeSelectorTerm, ...] | None:
    """Return the terms without their fields: the node that VolumeBinding compares them with has no name."""
    if affinity is None or affinity.required is None:
        return None
    terms = affinity.required.node_selector_terms or ()
    if any(term.match_fields and not term.match_expressions for term in terms):
        return None
    return tuple(NodeSelectorTerm(term.match_expressions or ()) for term in terms)


def _zones(label: str) -> frozenset[str]:
    """Return the zones that are named; none where one of them is empty, which makes the label count for nothing."""
    zones = frozenset(zone.strip() for zone in label.split(_ZONE_DELIMITER))
    return frozenset() if "" in zones else zones
