"""How often is the extender asked in vain while gangs wait that cannot run?

Gangs that the empty cluster would take wait beside a running pod that keeps their room, and that pod's status changes
again and again.
"""

import time
import urllib.request

from msgspec import Struct
from prometheus_client.parser import text_string_to_metric_families

from e2e.bench.churn import updated
from e2e.bench.gangs import members, pod_on
from e2e.cluster import Cluster, Namespace, wait_for
from e2e.nodes import make_node

_SIZE = 10
_SETTLED_S = 60.0  # 200 pods take a few seconds to be created, and each is turned away once or twice


class Load(Struct, frozen=True):
    """What was counted."""

    waiting: int
    seconds: float
    filter_calls: float

    @property
    def filter_calls_per_s(self) -> float:
        """Return the rate."""
        return self.filter_calls / self.seconds


def measure_waiting_load(
    cluster: Cluster, namespace: Namespace, *, pods: int, for_s: float, updates_per_s: float
) -> Load:
    """Let so many pods wait in gangs of ten and count the filter calls; raises DeadlineExceededError."""
    cluster.add_nodes([make_node(f"gpu-{index}", gpus=4) for index in range(3)])
    namespace.apply(pod_on("gpu-0", "running", gpus=3))
    wait_for(lambda: namespace.running() == ["running"], _SETTLED_S, "the pod that keeps the room runs")
    for gang in range(pods // _SIZE):
        namespace.apply(*members(f"gang-{gang}", _SIZE))
    wait_for(lambda: waiting(namespace) == pods, _SETTLED_S, f"all {pods} pods are turned away or held")
    with updated(namespace, "running", updates_per_s):
        time.sleep(1)  # so that nothing is counted of how it begins
        before, began_s = filter_calls(cluster), time.monotonic()
        time.sleep(for_s)
        counted, took_s = filter_calls(cluster) - before, time.monotonic() - began_s
    assert waiting(namespace) == pods, "a gang ran that should wait"
    return Load(waiting=pods, seconds=took_s, filter_calls=counted)


def filter_calls(cluster: Cluster) -> float:
    """Return how many filter calls the extender has answered, by its own metrics."""
    with urllib.request.urlopen(f"{cluster.probe_url}/metrics", timeout=10) as answer:  # noqa: S310 - our own process
        text = answer.read().decode()
    name = "gang_extender_verb_duration_seconds"
    return sum(
        sample.value
        for family in text_string_to_metric_families(text)
        if family.name == name
        for sample in family.samples
        if sample.name == f"{name}_count" and sample.labels["verb"] == "filter"
    )


def waiting(namespace: Namespace) -> int:
    """Count the pods that kube-scheduler has looked at and does not bind."""
    conditions = [each for pod in namespace.pods() for each in pod["status"].get("conditions", ())]
    return sum(each["type"] == "PodScheduled" and each["status"] == "False" for each in conditions)
