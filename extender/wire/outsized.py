"""Does a pod ask for so much that looking for a node would keep everybody waiting?

Each of its terms is compared with each node, or with each pod of the cluster: a template of a mebibyte, which the API
server takes, would keep the one event loop busy for many seconds, again and again.
"""

from typing import Final

from extender.model.flyweight import size_of
from extender.model.pod import PodShape

LARGEST_SHAPE: Final = 16_384
"""Bytes, as it is encoded; templates have 1,000. Of 350 expressions a plan on 5,000 nodes takes half a second."""

MOST_RELATIONS: Final = 32
"""Terms of affinity and spread constraints, each compared with all pods: as many take as long."""


def outsized(shape: PodShape) -> str:
    """Return what there is too much of; empty where it is not."""
    relations = shape.relations
    if relations and len(relations.affinity) + len(relations.anti_affinity) + len(relations.spread) > MOST_RELATIONS:
        return f"the pod has more than {MOST_RELATIONS} terms of pod affinity and spread constraints together"
    size = size_of(shape)
    if size > LARGEST_SHAPE:
        return f"the pod's resources, ports, selectors, tolerations and affinity are longer than {LARGEST_SHAPE} bytes"
    return ""
