"""What does a full cluster cost those who must know all of it? kube-scheduler and the extender start on it in turn.

Its pods are on their nodes from the beginning. No kubelet plays them, so they stay Pending there.
"""

import time
from collections.abc import Iterator

from msgspec import Struct

from e2e.bench.arrivals import ARRIVALS, pod_writes, send_all
from e2e.bench.contenders import CONTENDERS
from e2e.bench.expenses import cpu_s, peak_mib
from e2e.bench.growth.objects import NAMESPACE, as_created, pods_of_nodes
from e2e.bench.report import Row
from e2e.bench.still_cluster import node_name, still_cluster
from e2e.bench.throughput import Shape, place
from e2e.cluster import EXTENDER, GANG_SCHEDULER, LEADING, Cluster, Namespace, wait_for
from e2e.processes import figures, is_ok

NAMED_BY = ("nodes", "pods", "process")
READY = "ready s"
"""Of both: it knows all nodes and pods. The extender then follows its kube-scheduler's election, and takes over."""

_START_S = 120.0  # kube-scheduler takes 8 s for 50,000 pods on two idle cores
_AT_WORK = Shape(5, 20)
"""Memory is read after these gangs were bound: both have worked by then."""


class _Start(Struct, frozen=True):
    """Of a process, until it was ready, and until it did its work."""

    ready_s: float
    cpu_s: float
    works_s: float


def measure_full_cluster(*, nodes: int, pods_per_node: int, rounds: int) -> Iterator[Row]:
    """Yield a row for each process and round; raises StartError."""
    with still_cluster(nodes) as namespace:
        cluster = namespace.cluster
        _fill(cluster, nodes, pods_per_node)
        for number in range(1, rounds + 1):
            # In this order, since the extender waits for its kube-scheduler to be elected.
            starts = {GANG_SCHEDULER: _start_scheduler(cluster), EXTENDER: _start_extender(cluster)}
            _work(namespace, f"round-{number}")
            for name, start in starts.items():
                process = cluster.processes[name]
                yield {
                    "nodes": str(nodes),
                    "pods": str(nodes * pods_per_node),
                    "process": name,
                    "round": str(number),
                    READY: start.ready_s,
                    "CPU s until ready": start.cpu_s,
                    "works s": start.works_s,
                    "MiB": peak_mib(process.pid),
                }
                process.stop()


def _fill(cluster: Cluster, nodes: int, pods_per_node: int) -> None:
    """Put pods on all nodes, in a namespace that no kube-controller-manager furnishes: it does not run."""
    path = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts"
    cluster.api.create("/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
    cluster.api.create(path, {"metadata": {"name": "default"}})
    pods = [as_created(pod, node_name(node)) for node, pod in pods_of_nodes(nodes, pods_per_node)]
    send_all(cluster, pod_writes(NAMESPACE, "", pods), ARRIVALS["burst"])


def _start_scheduler(cluster: Cluster) -> _Start:
    began_s = time.monotonic()
    cluster.restart_gang_scheduler()
    ready_s = time.monotonic() - began_s
    return _Start(ready_s, cpu_s(cluster.processes[GANG_SCHEDULER].pid), ready_s)


def _start_extender(cluster: Cluster) -> _Start:
    process = cluster.processes[EXTENDER]
    began_s = time.monotonic()
    process.restart()
    wait_for(lambda: is_ok(f"{cluster.probe_url}/readyz"), _START_S, "the extender knows the cluster")
    ready_s, spent_s = time.monotonic() - began_s, cpu_s(process.pid)
    wait_for(lambda: figures(f"{cluster.probe_url}/metrics").get(LEADING) == 1, _START_S, "the extender leads")
    return _Start(ready_s, spent_s, time.monotonic() - began_s)


def _work(namespace: Namespace, prefix: str) -> None:
    outcome = place(namespace, CONTENDERS["filter"], prefix, _AT_WORK, ARRIVALS["burst"])
    assert outcome.bound == _AT_WORK.gangs * _AT_WORK.members, f"only {outcome.bound} pods of {_AT_WORK} are bound"
