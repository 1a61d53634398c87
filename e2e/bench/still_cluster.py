"""A control plane for benches in which only the contender works: how is it made?

Nodes are objects that say of themselves that they are Ready. No kubelet is played, so bound pods never run; neither
kwok, which would renew 5,000 leases, nor kube-controller-manager, which would miss these, nor the default
kube-scheduler runs.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import orjson

from e2e.bench.arrivals import ARRIVALS, Write, send_all
from e2e.cluster import EXTENDER, GANG_SCHEDULER, Cluster, Namespace, start_cluster
from e2e.nodes import completed, make_node

GPUS = 8
"""Of a node, as those have that train."""

_NEEDED = {"etcd", "kube-apiserver"}
_READY = {"conditions": [{"type": "Ready", "status": "True", "reason": "Bench", "message": "says the bench"}]}


@contextmanager
def still_cluster(nodes: int) -> Iterator[Namespace]:
    """Give a namespace in a control plane of so many nodes, in which neither extender nor kube-scheduler runs yet."""
    with start_cluster() as cluster:
        namespace = cluster.namespace("bench")
        for name in (GANG_SCHEDULER, EXTENDER, *(cluster.processes.keys() - _NEEDED)):
            cluster.processes[name].stop()
        _add_nodes(cluster, nodes)
        yield namespace


def node_name(number: int) -> str:
    """Return the name of one of its nodes, counted from 0."""
    return f"gpu-{number:04}"


def _add_nodes(cluster: Cluster, nodes: int) -> None:
    made = [make_node(node_name(index), GPUS, cpu="96", memory="1Ti") for index in range(nodes)]
    ready = [completed({**node, "status": {**node["status"], **_READY}}) for node in made]
    send_all(cluster, [Write("POST", "/api/v1/nodes", orjson.dumps(node)) for node in ready], ARRIVALS["burst"])
    # Every node is born with the taint of one that is not ready.
    free = orjson.dumps({"spec": {"taints": None}})
    paths = [f"/api/v1/nodes/{node['metadata']['name']}" for node in made]
    send_all(cluster, [Write("PATCH", path, free) for path in paths], ARRIVALS["burst"])
