"""Would the pods still be spread evenly enough with one more on this node?

Hard constraints only: kube-scheduler's own defaults are soft, and do not keep a pod off any node. Mirrors its
PodTopologySpread (calPreFilterState, updateWithPod, Filter), an oddity included: a selector that selects everything
counts nothing.
"""

from collections.abc import Iterable

from extender.decide.fit import untolerated_taint
from extender.decide.selectors import selects_labels, selects_node
from extender.model.node import Node, NodeRoom
from extender.model.pod import Occupant, SpreadConstraint
from extender.model.verdict import SpreadLabelMissing, SpreadTooUneven


class SpreadCounts:
    """For one pod: how many pods each of its constraints counts in each domain, starting from `rooms`."""

    def __init__(self, pod: Occupant, rooms: Iterable[NodeRoom]) -> None:
        relations = pod.shape.relations
        self._pod = pod
        self._constraints = relations.spread if relations else ()
        self._selves = [int(selects_labels(each.selector, pod.tags.labels)) for each in self._constraints]
        self._domains: list[dict[str, int]] = [{} for _ in self._constraints]
        for room in rooms if self._constraints else ():
            self._add_room(room)
        self.fewest = [self._fewest(index) for index in range(len(self._constraints))]
        """The least that is counted in a domain, by constraint; a node that is too full may fit when it rises."""

    def why_not(self, node: Node) -> SpreadLabelMissing | SpreadTooUneven | None:
        """Return why the pod may not go to the node; None if it may."""
        for index, constraint in enumerate(self._constraints):
            domain = node.labels.get(constraint.topology_key)
            if domain is None:
                return SpreadLabelMissing()
            count = self._domains[index].get(domain, 0) + self._selves[index]
            if count - self.fewest[index] > constraint.max_skew:
                return SpreadTooUneven()
        return None

    def count(self, other: Occupant, node: Node, more: int) -> None:
        """Note that there are `more` pods like `other` on the node, or fewer."""
        for index, constraint in enumerate(self._constraints):
            if self._counts(constraint, other) and self._is_place(constraint, node):
                domains, domain = self._domains[index], node.labels[constraint.topology_key]
                domains[domain] = domains.get(domain, 0) + more
                self.fewest[index] = self._fewest(index)

    def _add_room(self, room: NodeRoom) -> None:
        for index, constraint in enumerate(self._constraints):
            if self._is_place(constraint, room.node):
                domains, domain = self._domains[index], room.node.labels[constraint.topology_key]
                here = sum(self._counts(constraint, other) for other in room.pods)
                domains[domain] = domains.get(domain, 0) + here

    def _counts(self, constraint: SpreadConstraint, other: Occupant) -> bool:
        if other.terminating or other.tags.namespace != self._pod.tags.namespace:
            return False
        return bool(constraint.selector) and selects_labels(constraint.selector, other.tags.labels)

    def _is_place(self, constraint: SpreadConstraint, node: Node) -> bool:
        """Whether the node is part of a domain: it has every constraint's label, and the pod could go there."""
        for each in self._constraints:
            if each.topology_key not in node.labels:
                return False
        if constraint.honors_affinity and not selects_node(self._pod.shape, node):
            return False
        return not (constraint.honors_taints and untolerated_taint(self._pod.shape, node) is not None)

    def _fewest(self, index: int) -> int:
        domains = self._domains[index]
        if len(domains) < self._constraints[index].min_domains:
            return 0
        return min(domains.values())
