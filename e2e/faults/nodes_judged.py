"""Is more on a node or card than there is, is a pod where it may not be, or was it bound twice?

Judged when a pod is bound: a node that shrinks or is tainted afterwards is nobody's fault. A terminating pod uses its
node until it is gone.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping

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
    wanted_cards,
)


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
    """Whether a node was for the pod when it was bound there, or so shortly before that nobody need have known."""

    def __init__(self, stale_s: float) -> None:
        self._stale_s = stale_s
        self._versions: defaultdict[str, list[tuple[float, Object | None]]] = defaultdict(list)
        self._occupied = _Occupied()

    def see_node(self, node: Object, at_s: float, *, gone: bool) -> None:
        """Take in a node; of its past only what may still excuse is kept."""
        versions = self._versions[node["metadata"]["name"]]
        versions.append((at_s, None if gone else node))
        while len(versions) > 1 and versions[1][0] < at_s - self._stale_s:
            del versions[0]

    def see_pod(self, pod: Object, at_s: float, *, gone: bool) -> Iterator[str]:
        """Take in a pod; yield what is wrong."""
        if not self._occupied.is_new(pod, gone=gone):
            return
        versions = self._versions[node_of(pod)]
        latest = versions[-1][1] if versions else None
        excuses = [node for place, (_, node) in enumerate(versions) if self._was_so(place, versions, at_s)]
        if not any(refusal_of(pod, node) == "" for node in excuses):
            yield f"pod {name_of(pod)} was bound to node {node_of(pod)}: {refusal_of(pod, latest)}"

    def _was_so(self, place: int, versions: list[tuple[float, Object | None]], at_s: float) -> bool:
        """Whether this version was the latest within the last `stale_s`."""
        return place == len(versions) - 1 or versions[place + 1][0] >= at_s - self._stale_s
