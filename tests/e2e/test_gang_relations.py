"""Gangs whose members ask something of each other run whole."""

from collections import Counter

import pytest

from e2e.cluster import Cluster, Namespace, Object, wait_for
from tests.e2e.gang_watch import GANG_NAME, MIN_AVAILABLE

pytestmark = pytest.mark.timeout(120)

ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
DEADLINE_S = 20.0


def member(name: str, size: int, role: str, **spec: object) -> Object:
    requests = {"cpu": "100m", "nvidia.com/gpu": "1"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "labels": {"job": "j", "training.kubeflow.org/replica-type": role},
            "annotations": {GANG_NAME: "j", MIN_AVAILABLE: str(size)},
        },
        "spec": {
            "schedulerName": "gang-scheduler",
            "containers": [{"name": "main", "image": "train", "resources": {"requests": requests, "limits": requests}}],
            **spec,
        },
    }


def required(kind: str, key: str, **labels: str) -> Object:
    term = {"topologyKey": key, "labelSelector": {"matchLabels": labels}}
    return {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def add_zones(cluster: Cluster, nodes_by_zone: dict[str, list[int]]) -> None:
    for zone, gpus in nodes_by_zone.items():
        for index, gpu in enumerate(gpus):
            cluster.add_node(f"{zone}{index}", gpus=gpu, labels={ZONE: zone})


def nodes_of_the_running(namespace: Namespace, size: int) -> Counter[str]:
    wait_for(lambda: len(namespace.running("job=j")) == size, DEADLINE_S, f"{size} members run")
    return Counter(pod["spec"]["nodeName"] for pod in namespace.pods("job=j"))


def test_members_that_want_each_other_run_in_the_one_zone_that_takes_them_all(
    cluster: Cluster, namespace: Namespace
) -> None:
    add_zones(cluster, {"a": [2], "b": [2, 1], "c": [1]})
    together = required("podAffinity", ZONE, job="j")
    for index in range(3):
        namespace.apply(member(f"worker-{index}", 3, "worker", affinity=together))
    assert {node[0] for node in nodes_of_the_running(namespace, 3)} == {"b"}


def test_spread_members_run_evenly_over_the_zones(cluster: Cluster, namespace: Namespace) -> None:
    add_zones(cluster, {"a": [4], "b": [1, 1], "c": [4]})
    selector = {"matchLabels": {"job": "j"}}
    spread = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": selector}
    for index in range(6):
        namespace.apply(member(f"worker-{index}", 6, "worker", topologySpreadConstraints=[spread]))
    nodes = nodes_of_the_running(namespace, 6)
    assert Counter(name[0] for name in nodes.elements()) == {"a": 2, "b": 2, "c": 2}


def test_members_that_keep_apart_wait_until_each_can_have_a_node_of_its_own(
    cluster: Cluster, namespace: Namespace
) -> None:
    add_zones(cluster, {"a": [4, 4]})
    apart = required("podAntiAffinity", HOST, job="j")
    for index in range(3):
        namespace.apply(member(f"worker-{index}", 3, "worker", affinity=apart))
    wait_for(
        lambda: "2 node(s) didn't match pod anti-affinity rules" in namespace.describe_pod("worker-2"),
        DEADLINE_S,
        "the reason is told",
    )
    assert namespace.running("job=j") == []
    cluster.add_node("a2", gpus=1)
    assert set(nodes_of_the_running(namespace, 3).values()) == {1}
