"""What does a pod ask for, as scheduling sees it?"""

from extender.model.pod import NodeSelectorTerm, PodShape
from extender.wire import core_v1
from extender.wire.cards.requests import card_request
from extender.wire.pod_relations import relations_of
from extender.wire.pod_requests import effective_requests, host_ports


def shape_of(pod: core_v1.Pod) -> PodShape:
    """Return what the pod asks for; raises BadQuantity."""
    return PodShape(
        requests=effective_requests(pod),
        node_selector=tuple(sorted((pod.spec.node_selector or {}).items())),
        required_terms=_required_terms(pod.spec.affinity),
        tolerations=pod.spec.tolerations or (),
        host_ports=host_ports(pod),
        relations=relations_of(pod),
        cards=card_request(pod),
        unmodelled=_unmodelled(pod.spec),
    )


def _unmodelled(spec: core_v1.PodSpec) -> tuple[str, ...]:
    names = ["resource claims"] if spec.resource_claims else []
    names += ["disks"] if any(_is_disk(volume) for volume in spec.volumes or ()) else []
    return tuple(names)


def _is_disk(volume: core_v1.Volume) -> bool:
    """Whether it is of a kind of which a node takes only so many, or that pods may not share (VolumeRestrictions)."""
    disks = (volume.aws_elastic_block_store, volume.azure_disk, volume.cinder, volume.gce_persistent_disk)
    return any(disk is not None for disk in (*disks, volume.iscsi, volume.rbd))


def _required_terms(affinity: core_v1.Affinity | None) -> tuple[NodeSelectorTerm, ...] | None:
    if affinity is None or affinity.node_affinity is None or affinity.node_affinity.required is None:
        return None
    terms = affinity.node_affinity.required.node_selector_terms or ()
    return tuple(NodeSelectorTerm(term.match_expressions or (), term.match_fields or ()) for term in terms)
