"""Scores: beside the parameter server, then beside siblings."""

from extender.decide.scoring import score_nodes
from extender.model.claim import GangKey
from extender.model.gang import Gang
from tests.builders import a_pod


def test_the_parameter_servers_node_is_best_and_a_siblings_node_better_than_others() -> None:
    bound = (a_pod("ps", role="ps", node="n1"), a_pod("w", role="worker", node="n2"))
    gang = Gang(GangKey("default/g"), 2, bound=bound)
    assert score_nodes(gang, ["n1", "n2", "n3"]) == {"n1": 10, "n2": 5, "n3": 0}


def test_without_a_gang_all_nodes_are_equal() -> None:
    assert score_nodes(None, ["n1", "n2"]) == {"n1": 0, "n2": 0}
