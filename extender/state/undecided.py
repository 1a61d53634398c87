"""Which pods is kube-scheduler placing right now on a node that nobody told us yet?

A pod without room of its own is let through to many nodes, or kube-scheduler nominates it where it has others killed.
Until it is bound, asked for again or gone, it may be on any of them for kube-scheduler: it must be asked before another
pod is put there. Once its Binding is posted the node is known, and its room there counts.
"""

from collections import Counter
from collections.abc import Iterable

from extender.model.pod import Occupant, PodUid


class Undecided:
    """The pods that were let through, and to which nodes."""

    def __init__(self) -> None:
        self._offered: dict[PodUid, tuple[str, ...]] = {}
        self._nominated: dict[PodUid, str] = {}
        self._repelling: set[PodUid] = set()
        self._pods_on: Counter[str] = Counter()
        self._inherited: set[PodUid] = set()
        self._node_of: dict[PodUid, str] = {}
        self._coming: dict[str, dict[PodUid, Occupant]] = {}

    def let_through(self, uid: PodUid, nodes: Iterable[str], *, repels: bool = False) -> None:
        """Note that the pod may go to these nodes, and to those only; whether it keeps others off nodes nearby."""
        self.settle(uid)
        if repels:
            self._repelling.add(uid)
        self._offered[uid] = tuple(nodes)
        self._pods_on.update(self._offered[uid])

    def nominated(self, uid: PodUid, node: str) -> None:
        """Note that the pod may go to this node as well, and no longer to the one before; empty for none."""
        self._take_off(self._nominated.pop(uid, ""))
        if node:
            self._nominated[uid] = node
            self._pods_on[node] += 1

    def inherit(self, uids: Iterable[PodUid]) -> None:
        """Note pods that the process before this one may have let through, nobody knows where to."""
        self._inherited.update(uids)

    def disinherit(self) -> None:
        """Take it that none of them is on its way any more."""
        self._inherited.clear()

    def bring(self, uid: PodUid, node: str, pod: Occupant) -> None:
        """Note that the pod is being bound to this node."""
        self._turn_back(uid)
        self._node_of[uid] = node
        self._coming.setdefault(node, {})[uid] = pod

    def on_their_way_to(self, node: str) -> Iterable[tuple[PodUid, Occupant]]:
        """Return the pods that are being bound to the node."""
        return self._coming.get(node, {}).items()

    def settle(self, uid: PodUid) -> None:
        """Note that it is known where the pod is, or that it is nowhere."""
        self._turn_back(uid)
        self._repelling.discard(uid)
        self._inherited.discard(uid)
        for node in (*self._offered.pop(uid, ()), self._nominated.pop(uid, "")):
            self._take_off(node)

    def may_matter_on(self, node: str) -> bool:
        """Whether one of them may be on the node, or near it and keep others off."""
        return node in self._pods_on or bool(self._repelling) or bool(self._inherited)

    def _turn_back(self, uid: PodUid) -> None:
        node = self._node_of.pop(uid, "")
        coming = self._coming.get(node, {})
        coming.pop(uid, None)
        if not coming:
            self._coming.pop(node, None)

    def _take_off(self, node: str) -> None:
        if self._pods_on[node] > 1:
            self._pods_on[node] -= 1
        else:
            self._pods_on.pop(node, None)
