"""Who stands on which node, as far as it matters for those who want the room?"""

from collections import Counter
from collections.abc import Collection, Iterable

from extender.model.pod import Occupant, Pod, PodUid


class Occupants:
    """The pods that use room, by node; kept up to date, since a search must not look at every pod of the cluster."""

    def __init__(self) -> None:
        self.staying_generation = 0
        """Grows whenever a pod comes or goes that is there as long as its node is."""
        self.terminating: dict[PodUid, Pod] = {}
        self._by_node: dict[str, dict[PodUid, Pod]] = {}
        self._priorities: Counter[int] = Counter()

    def change(self, before: Pod | None, pod: Pod | None) -> None:
        """Take a pod's new state for its last one; None where it was, or is, not there."""
        if _stays(before) != _stays(pod):
            self.staying_generation += 1
        if before is not None and before.occupies_node:
            self.terminating.pop(before.uid, None)
            self._leave(before)
        if pod is not None and pod.occupies_node:
            self._by_node.setdefault(pod.node_name, {})[pod.uid] = pod
            self._priorities[pod.priority] += 1
            if pod.terminating:
                self.terminating[pod.uid] = pod

    def _leave(self, before: Pod) -> None:
        here = self._by_node[before.node_name]
        del here[before.uid]
        if not here:
            del self._by_node[before.node_name]
        self._priorities[before.priority] -= 1
        if not self._priorities[before.priority]:
            del self._priorities[before.priority]

    def has_below(self, priority: int) -> bool:
        """Whether anybody has a lower priority."""
        return any(each < priority for each in self._priorities)

    def on(self, nodes: Iterable[str]) -> list[Pod]:
        """Return the pods on these nodes that may go for others: not those that are going, or come back there."""
        here = (pod for node in nodes for pod in self._by_node.get(node, {}).values())
        return [pod for pod in here if not (pod.terminating or pod.stays_with_node)]

    def awaiting_on(self, node: str) -> list[Pod]:
        """Return the pods on the node that its device plugin has yet to take up."""
        return [pod for pod in self._by_node.get(node, {}).values() if pod.awaits_plugin]

    def named(self, node: str, namespace: str, name: str) -> list[Pod]:
        """Return the pods of this name that stand on the node, of which some may be going."""
        here = self._by_node.get(node, {}).values()
        return [pod for pod in here if (pod.namespace, pod.name) == (namespace, name)]

    def count(self, node: str) -> int:
        """Return how many pods stand on the node."""
        return len(self._by_node.get(node, ()))

    def staying_on(self, nodes: Collection[str]) -> list[Pod]:
        """Return the pods on these nodes that are there as long as their node is."""
        return [pod for node in nodes for pod in self._by_node.get(node, {}).values() if pod.stays_with_node]


def _stays(pod: Pod | None) -> tuple[str, Occupant] | None:
    """Return what such a pod takes, and where."""
    return (pod.node_name, pod.occupant) if pod is not None and pod.occupies_node and pod.stays_with_node else None
