"""Can a node reach the volumes of a pod?

Mirrors kube-scheduler's VolumeBinding, as far as claims are bound, and VolumeZone. Whatever else may keep a pod with
volumes off a node is named as `unmodelled`.
"""

from collections.abc import Mapping

from extender.decide.selectors import matches_any
from extender.model.node import Node
from extender.model.pod import ClaimUse, Pod, VolumeTerms
from extender.model.verdict import NoVolumeZone, Reason, VolumeElsewhere
from extender.model.volume import PersistentVolume, VolumeClaim, claim_key

_GA_NAME = {
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
}
_ZONE_LABELS = frozenset(_GA_NAME) | frozenset(_GA_NAME.values())


def reach_volumes(volumes: VolumeTerms | None, node: Node) -> tuple[Reason, ...]:
    """Return why the node does not reach them; empty if it does."""
    if volumes is None:
        return ()
    for terms in volumes.required_terms:
        if not matches_any(terms, node):
            return (VolumeElsewhere(),)
    if volumes.zones and not _ZONE_LABELS.isdisjoint(node.labels):
        for key, values in volumes.zones:
            if node.labels.get(key, node.labels.get(_GA_NAME.get(key, key))) not in values:
                return (NoVolumeZone(),)
    return ()


def volume_terms(
    pod: Pod, claims: Mapping[str, VolumeClaim], volumes: Mapping[str, PersistentVolume]
) -> VolumeTerms | None:
    """Return what the pod's claims, by key, and their volumes, by name, ask of its node; None where that is nothing."""
    required_terms = []
    zones: list[tuple[str, frozenset[str]]] = []
    unmodelled: set[str] = set()
    for use in pod.claims:
        claim = claims.get(claim_key(pod.namespace, use.name))
        volume = volumes.get(claim.volume) if claim else None
        unmodelled |= _unmodelled(pod, use, claim, volume)
        if volume is not None and volume.required_terms is not None:
            required_terms.append(volume.required_terms)
        if volume is not None and not use.ephemeral:  # VolumeZone does not look at ephemeral ones
            zones += volume.zones
    if not (required_terms or zones or unmodelled):
        return None
    return VolumeTerms(tuple(required_terms), tuple(zones), tuple(sorted(unmodelled)))


def _unmodelled(pod: Pod, use: ClaimUse, claim: VolumeClaim | None, volume: PersistentVolume | None) -> set[str]:
    """Return what of the claim only kube-scheduler can judge."""
    if claim is None or volume is None or claim.failing or (use.ephemeral and claim.made_for != pod.uid):
        return {"unbound volumes"}
    found = set()
    if claim.single_pod:
        found.add("volumes of one pod")
    if volume.counted:
        found.add("volume limits")
    if volume.migratable:
        found.add("in-tree volumes")
    return found
