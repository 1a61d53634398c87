"""Is more on a node or card than there is, is a pod where it may not be, or was it bound twice?

Judged when a pod is bound: a node that shrinks or is tainted afterwards is nobody's fault. A terminating pod uses its
node until it is gone.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence

from e2e.client import Object
from e2e.faults.reading import (
    GPU,
    added_up,
    cards_of,
    is_over,
    name_of,
    node_of,
    offer_of,
    refusal_of,
    requests_of,
    shares_of,
    taints_of,
    wanted_cards,
)

Calls = Mapping[tuple[str, str], Sequence[float]]
"""When kube-scheduler asked for a pod to be bound to a node, by UID and name."""


class _Occupied:
    """Which pods use which node, by UID."""

    def __init__(self) -> None:
        self.on: defaultdict[str, dict[str, Object]] = defaultdict(dict)

    def is_new(self, pod: Object, *, gone: bool) -> bool:
        """Take in a pod; whether it has come to its node by this."""
        uid, node = pod["metadata"]["uid"], node_of(pod)
        if not node:
            return False
        if gone or is_over(pod):
            self.on[node].pop(uid, None)
            return False
        came = uid not in self.on[node]
        self.on[node][uid] = pod
        return came


class NodesWithinSize:
    """The sums of requests by node."""

    def __init__(self) -> None:
        self._nodes: dict[str, Object] = {}
        self._occupied = _Occupied()

    def see_node(self, node: Object, *, gone: bool) -> None:
        """Take in a node."""
        name = node["metadata"]["name"]
        if gone:
            self._nodes.pop(name, None)
        else:
            self._nodes[name] = node

    def see_pod(self, pod: Object, *, gone: bool) -> Iterator[str]:
        """Take in a pod; yield what is wrong."""
        if not self._occupied.is_new(pod, gone=gone) or node_of(pod) not in self._nodes:
            return
        name = node_of(pod)
        offer = offer_of(self._nodes[name])
        used = added_up(requests_of(each) for each in self._occupied.on[name].values())
        wanted = requests_of(pod)
        for resource in sorted(wanted):
            if wanted[resource] and used[resource] > offer.get(resource, 0):
                yield (
                    f"node {name} has {float(offer.get(resource, 0)):g} of {resource}, {float(used[resource]):g} are "
                    f"used by {sorted(name_of(each) for each in self._occupied.on[name].values())}"
                )


class CardsWithinSize:
    """The sums of shares by card. Whoever has whole GPUs that nobody chose must not share a node with shares."""

    def __init__(self) -> None:
        self._cards: dict[str, Mapping[str, int]] = {}
        self._occupied = _Occupied()
        self.given = 0

    def see_node(self, node: Object, *, gone: bool) -> None:
        """Take in a node; the cards of one that is gone are still its pods'."""
        if not gone:
            self._cards[node["metadata"]["name"]] = cards_of(node)

    def see_pod(self, pod: Object, *, gone: bool) -> Iterator[str]:
        """Take in a pod; yield what is wrong."""
        if not self._occupied.is_new(pod, gone=gone):
            return
        node = node_of(pod)
        cards, here = self._cards.get(node, {}), self._occupied.on[node].values()
        given = {name_of(each): shares_of(each, cards) or {} for each in here}
        if wanted_cards(pod):
            self.given += 1
            yield from self._misgiven(pod, given[name_of(pod)])
        used = added_up(given.values())
        for uuid, share in used.items():
            if share > 1:
                holders = sorted(name for name, shares in given.items() if uuid in shares)
                yield f"card {uuid} of node {node} is given away {float(share):g} times, to {holders}"
        if used and any(GPU in requests_of(each) for each in here):
            yield f"node {node} has shares of cards and pods with whole GPUs, {name_of(pod)} the last"

    def _misgiven(self, pod: Object, given: Collection[str]) -> Iterator[str]:
        node = node_of(pod)
        if len(given) != wanted_cards(pod):
            yield f"pod {name_of(pod)} asks for {wanted_cards(pod)} cards and was given {list(given)}"
        if node in self._cards and not set(given) <= self._cards[node].keys():
            yield f"pod {name_of(pod)} was given {list(given)}, but node {node} has {list(self._cards[node])}"


class BoundOnce:
    """The node of each pod, which never changes."""

    def __init__(self) -> None:
        self._node_of: dict[str, str] = {}

    def see_pod(self, pod: Object, *, gone: bool) -> Iterator[str]:
        """Take in a pod; yield what is wrong."""
        uid, node = pod["metadata"]["uid"], node_of(pod)
        before = self._node_of.get(uid, "")
        if before and node != before:
            yield f"pod {name_of(pod)} was on node {before} and is on {node or 'none'}"
        if node:
            self._node_of[uid] = node
        if gone:
            self._node_of.pop(uid, None)


class Constraints:
    """Whether a node was for the pod when kube-scheduler asked for the Binding, or just before, when it looked.

    What happens to the node afterwards, while the call waits for the gang, undoes nothing: neither does kube-scheduler
    look again then. Where calls are not known the Binding's own time counts; where they are, each Binding has one.
    """

    def __init__(self, stale_s: float, calls: Calls | None = None) -> None:
        self._stale_s = stale_s
        self._calls = calls
        self._versions: defaultdict[str, list[tuple[float, Object | None]]] = defaultdict(list)
        self._occupied = _Occupied()

    def see_node(self, node: Object, at_s: float, *, gone: bool) -> None:
        """Take in a node, or a mere heartbeat of it."""
        versions = self._versions[node["metadata"]["name"]]
        if gone or not versions or not _is_alike(versions[-1][1], node):
            versions.append((at_s, None if gone else node))

    def see_pod(self, pod: Object, at_s: float, *, gone: bool) -> Iterator[str]:
        """Take in a pod; yield what is wrong."""
        if not self._occupied.is_new(pod, gone=gone):
            return
        node = node_of(pod)
        asked_s = [at_s] if self._calls is None else self._calls.get((pod["metadata"]["uid"], node), [])
        if not asked_s:
            yield f"pod {name_of(pod)} was bound to node {node}, for which kube-scheduler never asked"
        elif not any(refusal_of(pod, each) == "" for moment_s in asked_s for each in self._seen(node, moment_s)):
            refusals = [refusal_of(pod, each) for each in self._seen(node, asked_s[-1])] or ["it was never there"]
            ago = ", ".join(f"{at_s - moment_s:.1f}" for moment_s in asked_s)
            yield f"pod {name_of(pod)} was bound to node {node}, asked for {ago} s before: {refusals[-1]}"

    def _seen(self, node: str, moment_s: float) -> list[Object | None]:
        """Return the versions of the node that were the latest within `stale_s` before this."""
        versions = [(at_s, each) for at_s, each in self._versions[node] if at_s <= moment_s]
        ends_s = [at_s for at_s, _ in versions[1:]] + [moment_s]
        return [each for (_, each), end_s in zip(versions, ends_s, strict=False) if end_s >= moment_s - self._stale_s]


def _is_alike(known: Object | None, node: Object) -> bool:
    if known is None:
        return False
    same_labels = known["metadata"].get("labels") == node["metadata"].get("labels")
    return same_labels and taints_of(known) == taints_of(node)
