"""May the pod be beside the pods that are there, by its required affinity and anti-affinity and by theirs?

Mirrors kube-scheduler's InterPodAffinity (its PreFilter, updateWithPod and Filter): what counts is kept by topology
pair, the label's key and value that nodes share.
"""

from collections.abc import Iterable, Mapping

from extender.decide.selectors import selects_labels
from extender.model.node import Node, NodeRoom
from extender.model.pod import AffinityTerm, Occupant, Relations, Tags
from extender.model.verdict import PodAffinityUnmet, PodAntiAffinityViolated, RepelledByPods

Namespaces = Mapping[str, Mapping[str, str]]
"""The labels of each namespace."""

TopologyPairs = dict[tuple[str, str], int]
"""How many pods, or terms of pods, concern the nodes with this label; never zero."""

_NO_RELATIONS = Relations()


class AffinityCounts:
    """For one pod: where the pods are that it wants beside it, those it does not, and those that do not want it.

    It starts from `rooms`, and from `repelling`, those of them that hold pods with anti-affinity.
    """

    def __init__(
        self, pod: Occupant, rooms: Iterable[NodeRoom], repelling: Iterable[NodeRoom], namespaces: Namespaces
    ) -> None:
        self._pod = pod
        self._namespaces = namespaces
        self._relations = pod.shape.relations or _NO_RELATIONS
        self._wanted: TopologyPairs = {}
        self._unwanted: TopologyPairs = {}
        self._repelled: TopologyPairs = {}
        self._wants_its_like = self._is_wanted(pod.tags)
        for room in repelling:
            for other in room.repelling:
                self._count_repulsion(other, room.node, 1)
        for room in rooms if self._relations.affinity or self._relations.anti_affinity else ():
            for other in room.pods:
                self._count_wishes(other, room.node, 1)

    def why_not(self, node: Node) -> PodAffinityUnmet | PodAntiAffinityViolated | RepelledByPods | None:
        """Return why the pod may not go to the node; None if it may."""
        if self._relations.affinity and not self._meets_affinity(node):
            return PodAffinityUnmet()
        if self._unwanted and self._violates_anti_affinity(node):
            return PodAntiAffinityViolated()
        if self._repelled and any(pair in self._repelled for pair in node.labels.items()):
            return RepelledByPods()
        return None

    def count(self, other: Occupant, node: Node, more: int) -> None:
        """Note that there are `more` pods like `other` on the node, or fewer."""
        self._count_repulsion(other, node, more)
        self._count_wishes(other, node, more)

    def _meets_affinity(self, node: Node) -> bool:
        met = True
        for term in self._relations.affinity:
            domain = node.labels.get(term.topology_key)
            if domain is None:
                return False
            met = met and (term.topology_key, domain) in self._wanted
        # The first of pods that want each other may go anywhere, or none of them ever could.
        return met or (not self._wanted and self._wants_its_like)

    def _violates_anti_affinity(self, node: Node) -> bool:
        for term in self._relations.anti_affinity:
            domain = node.labels.get(term.topology_key)
            if domain is not None and (term.topology_key, domain) in self._unwanted:
                return True
        return False

    def _count_wishes(self, other: Occupant, node: Node, more: int) -> None:
        if self._relations.affinity and self._is_wanted(other.tags):
            for term in self._relations.affinity:
                _add(self._wanted, node, term, more)
        for term in self._relations.anti_affinity:
            if self._asks_about(term, other.tags):
                _add(self._unwanted, node, term, more)

    def _count_repulsion(self, other: Occupant, node: Node, more: int) -> None:
        if other.shape.relations is not None:
            for term in other.shape.relations.anti_affinity:
                if _is_about(term, self._pod.tags, self._namespaces):
                    _add(self._repelled, node, term, more)

    def _is_wanted(self, tags: Tags) -> bool:
        return all(self._asks_about(term, tags) for term in self._relations.affinity)

    def _asks_about(self, term: AffinityTerm, tags: Tags) -> bool:
        """Whether the pod's own term is about pods tagged so.

        An oddity of kube-scheduler 1.36: a namespace selector that selects a namespace without labels selects every
        namespace (mergeAffinityTermNamespacesIfNotEmpty changes a copy, and the selector stays). Others' terms do not.
        """
        if selects_labels(term.namespace_selector, {}):
            return selects_labels(term.selector, tags.labels)
        return _is_about(term, tags, self._namespaces)


def _is_about(term: AffinityTerm, tags: Tags, namespaces: Namespaces) -> bool:
    """Whether the term is about pods that are tagged so."""
    if tags.namespace not in term.namespaces and not selects_labels(
        term.namespace_selector, namespaces.get(tags.namespace, {})
    ):
        return False
    return selects_labels(term.selector, tags.labels)


def _add(pairs: TopologyPairs, node: Node, term: AffinityTerm, more: int) -> None:
    domain = node.labels.get(term.topology_key)
    if domain is None:
        return
    pair = term.topology_key, domain
    pairs[pair] = pairs.get(pair, 0) + more
    if pairs[pair] == 0:
        del pairs[pair]
