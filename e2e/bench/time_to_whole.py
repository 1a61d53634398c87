"""How long does it take from what makes a gang able to run until its last member is bound?

Told by the API server's own watches: from the creation of the last member, from the end of the pod that had its room,
or from the moment at which a further node can take pods.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from random import Random

from msgspec import Struct

from e2e.bench.churn import updated
from e2e.bench.gangs import members, pod_on
from e2e.cluster import Cluster, Namespace, Object, wait_for
from e2e.nodes import is_usable, make_node
from e2e.watching import follow, follow_pods

_SIZE = 4
_DEADLINE_S = 60.0  # far above kube-scheduler's longest back-off, so that a slow variant is measured and not cut off


class Waits(Struct, frozen=True):
    """How long a gang waits before what it lacks comes: evenly spread between these."""

    least_s: float
    most_s: float


class Moments:
    """When the watches told what happened."""

    def __init__(self) -> None:
        self.created_s: dict[str, float] = {}
        self.bound_s: dict[str, float] = {}
        self.gone_s: dict[str, float] = {}
        self.usable_s: dict[str, float] = {}

    def see_pod(self, event_type: str, pod: Object) -> None:
        """Take in an event about a pod."""
        now_s, name = time.monotonic(), pod["metadata"]["name"]
        self.created_s.setdefault(name, now_s)
        if event_type == "DELETED":
            self.gone_s.setdefault(name, now_s)
        elif pod["spec"].get("nodeName"):
            self.bound_s.setdefault(name, now_s)

    def see_node(self, event_type: str, node: Object) -> None:
        """Take in an event about a node."""
        if event_type != "DELETED" and is_usable(node):
            self.usable_s.setdefault(node["metadata"]["name"], time.monotonic())


class Bench:
    """Four nodes with a GPU each, and one gang after another that needs them all."""

    def __init__(self, cluster: Cluster, namespace: Namespace, moments: Moments, chance: Callable[[], float]) -> None:
        self._cluster = cluster
        self._namespace = namespace
        self._moments = moments
        self._wait_s = chance

    def last_member_created(self, number: int) -> float:
        """Return the seconds from the creation of the last member."""
        gang = f"created-{number}"
        *early, last = members(gang, _SIZE)
        self._namespace.apply(*early)
        time.sleep(self._wait_s())
        self._namespace.apply(last)
        return self._seconds_to_whole(gang, self._moments.created_s, last["metadata"]["name"])

    def room_freed(self, number: int) -> float:
        """Return the seconds from the end of the pod that had the room of one member."""
        gang, other = f"freed-{number}", f"other-{number}"
        self._namespace.apply(pod_on("gpu-0", other, gpus=1))
        wait_for(lambda: other in self._namespace.running(), _DEADLINE_S, "a pod has the room")
        self._namespace.apply(*members(gang, _SIZE))
        time.sleep(self._wait_s())
        assert not self._bound(gang)
        self._namespace.delete_pod(other)
        return self._seconds_to_whole(gang, self._moments.gone_s, other)

    def node_added(self, number: int) -> float:
        """Return the seconds from the moment at which the fourth node can take pods."""
        gang, node = f"node-{number}", f"further-{number}"
        self._cluster.delete_node("gpu-0")
        self._namespace.apply(*members(gang, _SIZE))
        time.sleep(self._wait_s())
        assert not self._bound(gang)
        self._cluster.add_node(node, gpus=1)
        seconds = self._seconds_to_whole(gang, self._moments.usable_s, node)
        self._cluster.delete_node(node)
        self._cluster.add_node("gpu-0", gpus=1)
        return seconds

    def _bound(self, gang: str) -> list[str]:
        return [name for name in self._moments.bound_s if name.startswith(f"{gang}-")]

    def _seconds_to_whole(self, gang: str, since_s: Mapping[str, float], name: str) -> float:
        wait_for(lambda: len(self._bound(gang)) == _SIZE, _DEADLINE_S, f"gang {gang} is whole")
        wait_for(lambda: name in since_s, _DEADLINE_S, f"the watch tells of {name}")
        whole_s = max(self._moments.bound_s[member] for member in self._bound(gang))
        for index in range(_SIZE):
            self._namespace.delete_pod(f"{gang}-{index}")
        wait_for(lambda: self._are_gone(gang), _DEADLINE_S, f"gang {gang} is gone")
        return whole_s - since_s[name]

    def _are_gone(self, gang: str) -> bool:
        return all(f"{gang}-{index}" in self._moments.gone_s for index in range(_SIZE))


EVENTS: Mapping[str, Callable[[Bench, int], float]] = {
    "last member created": Bench.last_member_created,
    "room freed": Bench.room_freed,
    "node added": Bench.node_added,
}


def measure_time_to_whole(  # noqa: PLR0913 - each of them is a figure that a bench is asked for
    cluster: Cluster, namespace: Namespace, *, event: str, tries: int, seed: int, waits: Waits, updates_per_s: float
) -> list[float]:
    """Return the seconds of each try, a running pod's status changing meanwhile; raises DeadlineExceededError."""
    chance = Random(seed)  # noqa: S311 - chance that can be repeated is what is wanted
    with _moments(cluster, namespace) as moments:
        cluster.add_nodes([*(make_node(f"gpu-{index}", gpus=1) for index in range(_SIZE)), make_node("cpu-0")])
        namespace.apply(pod_on("cpu-0", "running", gpus=0))
        wait_for(lambda: "running" in namespace.running(), _DEADLINE_S, "the pod runs whose status changes")
        bench = Bench(cluster, namespace, moments, lambda: chance.uniform(waits.least_s, waits.most_s))
        with updated(namespace, "running", updates_per_s):
            return [EVENTS[event](bench, number) for number in range(tries)]


@contextmanager
def _moments(cluster: Cluster, namespace: Namespace) -> Iterator[Moments]:
    moments = Moments()
    with follow_pods(namespace, moments.see_pod), follow(cluster, "/api/v1/nodes", moments.see_node):
        yield moments
