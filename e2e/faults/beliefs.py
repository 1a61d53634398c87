"""Did an extender post a pod to a node of which it had been told that the node is not for it?

What an extender can know is what its proxy passed on: lists, and the lines of its watch. That is compared with the
first Binding that it posts for a pod; what it tries again within a post was decided then.
"""

import time
from collections import defaultdict
from collections.abc import Iterator, Mapping

import orjson
from msgspec import Struct

from e2e.client import Object
from e2e.faults.calls import Call
from e2e.faults.proxy import Moment, Proxy
from e2e.faults.reading import name_of, refusal_of

TOLD_S = 1.0
"""So long after it was told an extender may act as before: it reads its watch between other work, on a busy core."""

POST_S = 17.5
"""Posts for one pod that are no further apart are one, tried again."""


class Post(Struct, frozen=True):
    """A Binding that an extender began to post."""

    at_s: float
    uid: str
    node: str


class Beliefs:
    """What one extender was told of nodes, and what it posted."""

    def __init__(self) -> None:
        self.posts: list[Post] = []
        self._told: defaultdict[str, list[tuple[float, Object | None]]] = defaultdict(list)
        self._last_s: dict[tuple[str, str], float] = {}

    def tell(self, name: str, node: Object | None, at_s: float) -> None:
        """Note that it was told of this node, or that there is none any more."""
        self._told[name].append((at_s, node))

    def tell_all(self, nodes: Mapping[str, Object], at_s: float) -> None:
        """Note that it was told of all nodes there are."""
        for name in self._told.keys() | nodes.keys():
            self.tell(name, nodes.get(name), at_s)

    def post(self, uid: str, node: str, at_s: float) -> None:
        """Note that it posts a Binding, if it does not only try again."""
        if at_s - self._last_s.get((uid, node), -POST_S) >= POST_S:
            self.posts.append(Post(at_s, uid, node))
        self._last_s[uid, node] = at_s

    def against(self, pods: Mapping[str, Object]) -> Iterator[str]:
        """Yield what was posted although the node was known not to be for the pod."""
        for post in self.posts:
            pod = pods.get(post.uid)
            if pod is not None and (reasons := [refusal_of(pod, node) for node in self._known(post)]) and all(reasons):
                yield f"pod {name_of(pod)} was posted to node {post.node}: {reasons[-1]}"

    def _known(self, post: Post) -> list[Object | None]:
        """Return what it may have taken for the truth about the node."""
        told = [(at_s, node) for at_s, node in self._told[post.node] if at_s <= post.at_s]
        later = [node for at_s, node in told if at_s > post.at_s - TOLD_S]
        before = [node for at_s, node in told if at_s <= post.at_s - TOLD_S]
        return [*before[-1:], *later] if before else []


def believed(proxy: Proxy) -> Beliefs:
    """Collect what passes through this proxy from now on."""
    beliefs = Beliefs()

    def listen(call: Call, text: bytes) -> None:
        if call.resource != "nodes":
            return
        told = orjson.loads(text)
        if call.method == "LIST":
            beliefs.tell_all({each["metadata"]["name"]: each for each in told["items"]}, time.monotonic())
        elif told["type"] in ("ADDED", "MODIFIED", "DELETED"):
            node = told["object"]
            beliefs.tell(node["metadata"]["name"], None if told["type"] == "DELETED" else node, time.monotonic())

    def look(call: Call, moment: Moment) -> None:
        if moment == "came" and call.of_class == "api POST pods/binding":
            binding = orjson.loads(call.body)
            beliefs.post(binding["metadata"]["uid"], binding["target"]["name"], time.monotonic())

    proxy.listen, proxy.look = listen, look
    return beliefs
