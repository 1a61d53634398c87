"""A gang along the network, with the real kube-scheduler: one block or nothing, and ranks side by side."""

import pytest

from e2e.cluster import Cluster, Namespace, wait_for
from tests.e2e.pods import DEADLINE_S, members

pytestmark = pytest.mark.timeout(120)

BLOCK, SPINE = "network.topology.nvidia.com/leaf", "network.topology.nvidia.com/spine"
REQUIRED = "gang-extender.io/required-topology"
RANK, DOMAIN = "gang-extender.io/rank", "gang-extender.io/topology-domain"


def add_blocks(cluster: Cluster, gpus_by_block: dict[str, list[int]]) -> None:
    for block, gpus in gpus_by_block.items():
        for index, gpu in enumerate(gpus):
            cluster.add_node(f"{block}{index}", gpus=gpu, labels={BLOCK: block, SPINE: "s"})


def test_a_gang_runs_in_the_one_block_that_takes_it_or_not_at_all(cluster: Cluster, namespace: Namespace) -> None:
    add_blocks(cluster, {"a": [2, 1], "b": [1, 2]})
    for pod in members("g", 4):
        pod["metadata"]["annotations"][REQUIRED] = "block"
        namespace.apply(pod)
    said = 'in the "block" domain that takes most of it; of 4 members that must be in one it takes 3'
    wait_for(lambda: said in namespace.describe_pod("g-3"), DEADLINE_S, "the reason is told")
    assert namespace.running("") == []
    cluster.add_node("b2", gpus=1, labels={BLOCK: "b", SPINE: "s"})
    wait_for(lambda: len(namespace.running("")) == 4, DEADLINE_S, "all members run")
    pods = sorted(namespace.pods(), key=lambda pod: pod["metadata"]["name"])
    assert [pod["spec"]["nodeName"] for pod in pods] == ["b1", "b1", "b0", "b2"]
    assert [pod["metadata"]["annotations"][RANK] for pod in pods] == ["0", "1", "2", "3"]
    assert {pod["metadata"]["annotations"][DOMAIN] for pod in pods} == {"block=b,spine=s"}
