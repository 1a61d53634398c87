"""A gang that needs the whole cluster, and single pods that keep coming: neither starves the other.

There is room for one pod all the time, and for the whole gang never unless somebody keeps it free. But nobody is to
keep it free for a gang that a cluster of this size can never take.
"""

import os
import time
from collections.abc import Callable

import pytest

from e2e.cluster import Cluster, Namespace
from e2e.nodes import make_node
from tests.e2e.pods import bound, members, pod

pytestmark = pytest.mark.timeout(300)

PATIENCE_S = float(os.environ.get("STARVATION_SECONDS", "40"))
"""How long the gang may wait while single pods keep coming; STARVATION_SECONDS=90 is for a slow machine."""

COUNTED_S = PATIENCE_S / 2.5
"""For so long single pods are counted: at 40 s the stream ends 20 of them and more, a few more or less by chance."""

GPUS = 8
LIFE_S = 5.0
WAITING = 4
"""So many single pods wait at any time: more than the cluster ends in a second, so that it never runs out of them."""


class Stream:
    """Single pods of a GPU each, of which the next comes whenever one ends."""

    def __init__(self, namespace: Namespace) -> None:
        self.ended = 0
        self._namespace = namespace
        self._made = 0
        self._started_s: dict[str, float] = {}

    def flow(self, for_s: float, until: Callable[[], bool] = lambda: False) -> bool:
        """Keep the pods coming for so long, or until something is so; return whether it is."""
        end_s = time.monotonic() + for_s
        while not (reached := until()) and time.monotonic() < end_s:
            self._step()
            time.sleep(0.1)
        return reached

    def is_everywhere(self) -> bool:
        """Whether every GPU is in use by a single pod."""
        return len(bound(self._namespace, "single-")) == GPUS

    def stop(self) -> None:
        """Delete all single pods."""
        for each in self._namespace.pods("app=single"):
            self._namespace.delete_pod(each["metadata"]["name"])

    def _step(self) -> None:
        pods = self._namespace.pods("app=single")
        now_s = time.monotonic()
        for each in pods:
            self._grow_old(each["metadata"]["name"], now_s, runs=each["status"]["phase"] == "Running")
        waiting = sum(not each["spec"].get("nodeName") for each in pods)
        for _ in range(waiting, WAITING):
            self._namespace.apply(pod(f"single-{self._made}", labels={"app": "single"}))
            self._made += 1

    def _grow_old(self, name: str, now_s: float, *, runs: bool) -> None:
        if not runs or now_s - self._started_s.setdefault(name, now_s) < LIFE_S:
            return
        self._namespace.delete_pod(name)
        self._started_s[name] = float("inf")  # counted once, should it be seen again
        self.ended += 1


@pytest.fixture
def stream(cluster: Cluster, namespace: Namespace) -> Stream:
    """Return a stream that fills the cluster."""
    cluster.add_nodes([make_node(f"gpu-{index}", gpus=1) for index in range(GPUS)])
    stream = Stream(namespace)
    assert stream.flow(20, until=stream.is_everywhere), "the stream fills the cluster"
    return stream


def test_a_gang_of_the_whole_cluster_runs_though_single_pods_keep_coming_and_then_they_run_again(
    namespace: Namespace, stream: Stream
) -> None:
    namespace.apply(*members("whole", GPUS))
    assert stream.flow(PATIENCE_S, until=lambda: len(bound(namespace, "whole-")) == GPUS), "the gang runs"
    assert not stream.is_everywhere()

    for index in range(GPUS):
        namespace.delete_pod(f"whole-{index}")
    assert stream.flow(20, until=stream.is_everywhere), "single pods run again"


def test_a_gang_larger_than_the_cluster_takes_nothing_from_single_pods(namespace: Namespace, stream: Stream) -> None:
    stream.flow(COUNTED_S)
    alone = stream.ended
    namespace.apply(*members("larger", GPUS + 1))
    stream.flow(COUNTED_S)
    beside_the_gang = stream.ended - alone
    assert alone >= 0.5 * GPUS * COUNTED_S / LIFE_S, "the stream is no stream"
    assert beside_the_gang >= 0.8 * alone
    assert not bound(namespace, "larger-")
