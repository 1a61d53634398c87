"""More nodes than kube-scheduler looks at: it offers a hundred of them, each time others.

Gangs are packed all the same, each pod is asked for once, and nobody is put where somebody else just was.
"""

from collections import Counter
from random import Random

import pytest

from e2e.bench.waiting_load import filter_calls
from e2e.cluster import Cluster, Namespace, wait_for
from e2e.nodes import make_node
from tests.e2e.pods import bound, members, pod

pytestmark = pytest.mark.timeout(240)

NODES = 130
DEADLINE_S = 90.0


def nodes_of(namespace: Namespace, prefix: str) -> list[str]:
    """Return the nodes of the bound pods whose names begin so."""
    pods = [each for each in namespace.pods() if each["metadata"]["name"].startswith(prefix)]
    return [each["spec"]["nodeName"] for each in pods if each["spec"].get("nodeName")]


def test_gangs_are_packed_on_nodes_that_kube_scheduler_did_not_look_at(cluster: Cluster, namespace: Namespace) -> None:
    cluster.add_nodes([make_node(f"gpu-{index:03}", gpus=4) for index in range(NODES)])
    calls = filter_calls(cluster)
    for gang in range(10):
        namespace.apply(*members(f"gang-{gang}", 4))
    wait_for(lambda: len(bound(namespace)) == 40, DEADLINE_S, "all gangs are bound")
    assert all(len(set(nodes_of(namespace, f"gang-{gang}"))) == 1 for gang in range(10))
    assert filter_calls(cluster) - calls == 40, "a member was turned away, or came again"


def test_what_kube_scheduler_may_know_better_it_looks_at(cluster: Cluster, namespace: Namespace) -> None:
    cluster.add_nodes([make_node(f"gpu-{index:03}", gpus=4) for index in range(NODES)])
    apart = {"labelSelector": {"matchLabels": {"app": "apart"}}, "topologyKey": "kubernetes.io/hostname"}
    rule = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [apart]}}
    for member in members("apart", 8):
        member["metadata"]["labels"] = {"app": "apart"}
        namespace.apply({**member, "spec": {**member["spec"], "affinity": rule}})
    wait_for(lambda: len(bound(namespace)) == 8, DEADLINE_S, "the gang is bound")
    assert len(set(nodes_of(namespace, "apart"))) == 8


def test_gangs_and_single_pods_that_come_at_once_fill_every_node_and_none_too_far(
    cluster: Cluster, namespace: Namespace
) -> None:
    cluster.add_nodes([make_node(f"gpu-{index:03}", gpus=1) for index in range(NODES)])
    pods = [each for gang in range(13) for each in members(f"gang-{gang}", 5)]
    pods += [pod(f"single-{index}") for index in range(NODES - len(pods))]
    Random(1).shuffle(pods)  # noqa: S311 - chance that can be repeated is what is wanted
    namespace.apply(*pods)
    wait_for(lambda: len(bound(namespace)) == NODES, DEADLINE_S, "all pods are bound")
    assert max(Counter(nodes_of(namespace, "")).values()) == 1, "a GPU was given out twice"
