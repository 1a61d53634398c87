"""Scores: beside the parameter server, then beside siblings."""

from extender.decide.scoring import score_nodes
from extender.model.claim import GangKey
from extender.model.gang import Gang
from extender.model.topology import Topology
from tests.builders import a_pod
from tests.network import network_of, nodes_of


def test_the_parameter_servers_node_is_best_and_a_siblings_node_better_than_others() -> None:
    bound = (a_pod("ps", role="ps", node="n1"), a_pod("w", role="worker", node="n2"))
    gang = Gang(GangKey("default/g"), 2, bound=bound)
    assert score_nodes(gang, ["n1", "n2", "n3"], Topology()) == {"n1": 10, "n2": 5, "n3": 0}


def test_without_a_gang_all_nodes_are_equal() -> None:
    assert score_nodes(None, ["n1", "n2"], Topology()) == {"n1": 0, "n2": 0}


def test_nodes_near_siblings_on_the_network_come_next() -> None:
    network = network_of(nodes_of({"s/a": [1, 1], "s/b": [1], "t/c": [1]})).topology
    gang = Gang(GangKey("default/g"), 1, bound=(a_pod("w", node="a-0"),))
    names = ["a-0", "a-1", "b-0", "c-0"]
    assert score_nodes(gang, names, network) == {"a-0": 5, "a-1": 4, "b-0": 3, "c-0": 0}
