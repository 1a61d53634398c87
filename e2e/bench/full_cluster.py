"""What does a full cluster cost those who must know all of it? kube-scheduler and the extender start on it in turn.

Its pods are on their nodes from the beginning. No kubelet plays them, so they stay Pending there.
"""

import time
from collections.abc import Callable, Iterator

from msgspec import Struct

from e2e.bench.arrivals import ARRIVALS, pod_writes, send_all
from e2e.bench.contenders import CONTENDERS
from e2e.bench.expenses import cpu_s, peak_mib
from e2e.bench.growth.objects import NAMESPACE, as_created, pods_of_nodes
from e2e.bench.report import Row
from e2e.bench.still_cluster import node_name, still_cluster
from e2e.bench.throughput import Shape, place
from e2e.cluster import EXTENDER, GANG_SCHEDULER, Cluster, Namespace
from e2e.processes import Process

NAMED_BY = ("nodes", "pods", "process")
READY = "ready s"

_AT_WORK = Shape(5, 20)
"""Memory is read after these gangs were bound: both have worked by then."""


class _Start(Struct, frozen=True):
    ready_s: float
    cpu_s: float
    """Of the process, until it was ready."""


def measure_full_cluster(*, nodes: int, pods_per_node: int, rounds: int) -> Iterator[Row]:
    """Yield a row for each process and round; raises StartError."""
    with still_cluster(nodes) as namespace:
        cluster = namespace.cluster
        _fill(cluster, nodes, pods_per_node)
        for number in range(1, rounds + 1):
            starts = {  # in this order, since the extender waits for its kube-scheduler to be elected
                GANG_SCHEDULER: _start(cluster.processes[GANG_SCHEDULER], cluster.restart_gang_scheduler),
                EXTENDER: _start(cluster.processes[EXTENDER], cluster.restart_extender),
            }
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


def _start(process: Process, start: Callable[[], None]) -> _Start:
    process.stop()
    began_s = time.monotonic()
    start()
    return _Start(time.monotonic() - began_s, cpu_s(process.pid))


def _work(namespace: Namespace, prefix: str) -> None:
    outcome = place(namespace, CONTENDERS["filter"], prefix, _AT_WORK, ARRIVALS["burst"])
    assert outcome.bound == _AT_WORK.gangs * _AT_WORK.members, f"only {outcome.bound} pods of {_AT_WORK} are bound"
