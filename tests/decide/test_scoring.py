"""Scores: beside the parameter server, then beside siblings, then near; what needs no GPU goes where there is none."""

from extender.decide.scoring import score_nodes
from extender.model.claim import GangKey
from extender.model.gang import Gang
from extender.model.node import Node, NodeRoom
from extender.model.snapshot import Snapshot
from tests.builders import a_node, a_pod, a_shape, some_cards
from tests.network import network_of, nodes_of

GPU_SHAPE, CPU_SHAPE = a_shape(gpu=1), a_shape(gpu=0)
BOUND = (a_pod("ps", role="ps", node="n1"), a_pod("w", role="worker", node="n2"))
GANG = Gang(GangKey("default/g"), 2, bound=BOUND)


def known(*nodes: Node) -> Snapshot:
    return Snapshot(1, {node.name: NodeRoom(node) for node in nodes})


def test_the_parameter_servers_node_is_best_and_a_siblings_node_better_than_others() -> None:
    snapshot = known(*(a_node(name) for name in ("n1", "n2", "n3")))
    assert score_nodes(GPU_SHAPE, GANG, snapshot.rooms, snapshot) == {"n1": 10, "n2": 7, "n3": 0}


def test_nodes_near_siblings_on_the_network_come_next() -> None:
    network = network_of(nodes_of({"s/a": [1, 1], "s/b": [1], "t/c": [1]}))
    gang = Gang(GangKey("default/g"), 1, bound=(a_pod("w", node="a-0"),))
    names = ["a-0", "a-1", "b-0", "c-0"]
    assert score_nodes(GPU_SHAPE, gang, names, network) == {"a-0": 7, "a-1": 6, "b-0": 5, "c-0": 0}


def test_without_a_gang_nodes_are_equal_for_who_needs_a_gpu() -> None:
    snapshot = known(a_node("n1"), a_node("n2", gpu=0))
    assert score_nodes(GPU_SHAPE, None, snapshot.rooms, snapshot) == {"n1": 0, "n2": 0}


def test_who_needs_no_gpu_stays_off_the_nodes_that_have_some() -> None:
    snapshot = known(a_node("n1"), a_node("n2", gpu=0), a_node("n3", gpu=0, inventory=some_cards(1)))
    names = [*snapshot.rooms, "new"]
    assert score_nodes(CPU_SHAPE, None, names, snapshot) == {"n1": 0, "n2": 10, "n3": 0, "new": 0}


def test_a_member_that_needs_no_gpu_still_goes_beside_its_siblings_first() -> None:
    snapshot = known(a_node("n1"), a_node("n2"), a_node("n3"), a_node("n4", gpu=0))
    assert score_nodes(CPU_SHAPE, GANG, snapshot.rooms, snapshot) == {"n1": 10, "n2": 7, "n3": 0, "n4": 1}
