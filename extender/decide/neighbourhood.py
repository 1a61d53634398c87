"""What do the pods that are there, and those planned, mean for where one more may go?

Counted once for a pod over the whole cluster and kept up to date while others are placed, as kube-scheduler does with
its plugins' PreFilter state (AddPod, RemovePod). Pods that ask nothing of others, and of which nobody asks anything,
need none: see `Trial.neighbourhood`.
"""

from collections.abc import Iterable

from extender.decide.affinity import AffinityCounts, Namespaces
from extender.decide.spread import SpreadCounts
from extender.model.node import Node, NodeRoom
from extender.model.pod import Occupant
from extender.model.verdict import Relation


class Neighbourhood:
    """The neighbourhood of one pod; see `AffinityCounts` for the arguments."""

    def __init__(
        self, pod: Occupant, rooms: Iterable[NodeRoom], repelling: Iterable[NodeRoom], namespaces: Namespaces
    ) -> None:
        every = tuple(rooms) if pod.shape.relations else ()
        self._spread = SpreadCounts(pod, every)
        self._affinity = AffinityCounts(pod, every, repelling, namespaces)

    def why_not(self, node: Node) -> Relation | None:
        """Return why the pod may not go to the node, the first of kube-scheduler's filters; None if it may."""
        return self._spread.why_not(node) or self._affinity.why_not(node)

    def count(self, other: Occupant, node: Node, more: int) -> None:
        """Note that there are `more` pods like `other` on the node, or fewer."""
        self._spread.count(other, node, more)
        self._affinity.count(other, node, more)

    @property
    def floor(self) -> tuple[int, ...]:
        """What a node that has too many may wait for: it rises when the emptiest domains fill."""
        return tuple(self._spread.fewest)
