"""Gangs along the network: what they require, what they prefer, and who goes where without a word."""

from typing import Any

from msgspec import structs

from extender.decide.explain import explain_admission
from extender.decide.gang import admit_gang
from extender.model.claim import GangKey
from extender.model.gang import Gang
from extender.model.job import JobRole
from extender.model.pod import AffinityTerm, Occupant, Pod, Relations, Requirement, SpreadConstraint
from extender.model.snapshot import Snapshot
from extender.model.topology import Level
from extender.model.verdict import Admission, NoRoom, Placed
from tests.builders import a_pod, a_shape
from tests.network import BLOCK, SPINE, network_of, nodes_of

JOB = (Requirement("job", "In", ("j",)),)
ZONE = Level("zone", ("topology.kubernetes.io/zone",))


def a_gang(*waiting: Pod, needs: int = 0, **fields: Any) -> Gang:
    return Gang(GangKey("default/g"), needs or len(waiting), waiting=waiting, **fields)


def workers(count: int, gpu: int = 1, **fields: Any) -> list[Pod]:
    return [a_pod(f"w-{i}", gpu=gpu, created_at=i, **fields) for i in range(count)]


def seats(admission: Admission) -> list[str]:
    assert isinstance(admission, Placed), admission
    return [placement.node for placement in admission.placements]


def blocks(admission: Admission) -> set[str]:
    return {node.partition("-")[0] for node in seats(admission)}


def text(gang: Gang, admission: Admission) -> str:
    assert isinstance(admission, NoRoom)
    return explain_admission(gang, admission)


# Required


def test_a_gang_that_requires_a_block_waits_although_two_blocks_together_would_do() -> None:
    network = network_of(nodes_of({"a": [2, 2], "b": [2, 1]}))
    gang = a_gang(*workers(5), required_level=BLOCK)
    assert text(gang, admit_gang(gang, network)) == (
        'Gang "default/g" gets rejected due to member Pod "w-4" is unschedulable with reason "0/2 nodes are available: '
        '2 Insufficient nvidia.com/gpu." in the "block" domain that takes most of it; of 5 members that must be in one '
        "it takes 4"
    )
    assert len(seats(admit_gang(structs.replace(gang, required_level=None), network))) == 5


def test_of_two_blocks_in_which_the_gang_takes_as_many_nodes_it_gets_the_tighter_one() -> None:
    network = network_of(nodes_of({"a": [4, 4, 4], "b": [4, 3], "c": [4, 4]}))
    assert blocks(admit_gang(a_gang(*workers(6), required_level=BLOCK), network)) == {"b"}


def test_a_block_in_which_the_gang_takes_fewer_nodes_comes_before_a_tighter_one() -> None:
    network = network_of(nodes_of({"a": [8, 8, 8], "b": [2, 3], "c": [8, 8]}))
    assert blocks(admit_gang(a_gang(*workers(4), required_level=BLOCK), network)) == {"c"}
    assert blocks(admit_gang(a_gang(*workers(4), preferred_level=BLOCK), network)) == {"c"}


def test_among_blocks_with_as_few_nodes_the_one_with_more_workers_beside_their_server_comes_first() -> None:
    network = network_of(nodes_of({"a": [3, 3], "b": [5, 4]}))
    job = [a_pod("ps-0", gpu=0, role="ps"), *workers(6)]
    placed = admit_gang(a_gang(*job, required_level=BLOCK), network)
    assert blocks(placed) == {"b"}


def test_members_above_min_available_are_in_the_same_block_or_wait() -> None:
    network = network_of(nodes_of({"a": [2, 2], "b": [3, 3], "c": [8]}))
    placed = admit_gang(a_gang(*workers(10), needs=3, required_level=BLOCK), network)
    assert (blocks(placed), len(seats(placed))) == ({"c"}, 8)


def test_members_that_run_fix_the_block() -> None:
    network = network_of(nodes_of({"a": [2, 2], "b": [4, 4]}))
    running = a_pod("w-9", node="a-0")
    assert blocks(admit_gang(a_gang(*workers(3), needs=4, bound=(running,), required_level=BLOCK), network)) == {"a"}
    too_many = a_gang(*workers(5), needs=6, bound=(running,), required_level=BLOCK)
    assert "it takes 4" in text(too_many, admit_gang(too_many, network))


def test_room_that_members_hold_fixes_the_block() -> None:
    network = network_of(nodes_of({"a": [2], "b": [4]}))
    first, *others = workers(3)
    gang = a_gang(first, *others, required_level=BLOCK)
    held = admit_gang(structs.replace(gang, waiting=(first,), min_available=1), network)
    assert isinstance(held, Placed)
    assert blocks(held) == {"a"}
    assert isinstance(admit_gang(gang, network, kept=[structs.replace(held.placements[0], node="a-0")]), Placed)
    more = structs.replace(gang, waiting=tuple(workers(4)), min_available=4)
    assert isinstance(admit_gang(more, network, kept=[held.placements[0]]), NoRoom)


def test_a_node_without_the_label_is_in_no_domain() -> None:
    network = network_of(nodes_of({"": [8, 8], "a": [2]}))
    gang = a_gang(*workers(3), required_level=BLOCK)
    assert "it takes 2" in text(gang, admit_gang(gang, network))


def test_where_no_node_has_the_label_it_is_said() -> None:
    gang = a_gang(*workers(3), required_level=ZONE)
    assert text(gang, admit_gang(gang, network_of(nodes_of({"a": [8]})))).endswith(
        'in a "zone" domain: there is none; of 3 members that must be in one it takes 0'
    )


def test_role_minimums_and_leaders_are_in_the_same_block() -> None:
    network = network_of(nodes_of({"a": [1, 1], "b": [1, 1, 1]}))
    ps = a_pod("ps-0", role="ps", created_at=9)
    gang = a_gang(*workers(2), ps, required_level=BLOCK, role_minimums=(("ps", 1), ("worker", 2)))
    assert blocks(admit_gang(gang, network)) == {"b"}


def test_followers_are_in_the_same_block() -> None:
    network = network_of(nodes_of({"a": [1, 1], "b": [1, 1, 1]}))
    master = a_pod("m-0", role="master")
    followers = (JobRole("worker", 2, sample=Occupant(a_shape())),)
    assert blocks(admit_gang(a_gang(master, required_level=BLOCK, followers=followers), network)) == {"b"}


def test_members_that_must_not_share_a_node_find_the_block_with_enough_nodes() -> None:
    nodes = nodes_of({"a": [8, 8], "b": [1, 1, 1]})
    named = [structs.replace(node, labels={**node.labels, "kubernetes.io/hostname": node.name}) for node in nodes]
    network = network_of(named)
    apart = Relations(anti_affinity=(AffinityTerm("kubernetes.io/hostname", JOB, ("default",)),))
    members = workers(3, shape=a_shape(relations=apart), labels={"job": "j"})
    assert blocks(admit_gang(a_gang(*members, required_level=BLOCK), network)) == {"b"}


def test_members_that_must_be_in_different_blocks_cannot_be_in_one() -> None:
    network = network_of(nodes_of({"a": [8], "b": [8]}))
    spread = Relations(spread=(SpreadConstraint(1, BLOCK.labels[0], JOB),))
    gang = a_gang(*workers(4, shape=a_shape(relations=spread), labels={"job": "j"}))
    assert blocks(admit_gang(gang, network)) == {"a", "b"}
    assert isinstance(admit_gang(structs.replace(gang, required_level=BLOCK), network), NoRoom)


# Preferred


def test_the_nearest_level_of_which_one_domain_takes_the_gang_is_used() -> None:
    network = network_of(nodes_of({"s/a": [2], "s/b": [3], "t/c": [9]}))
    assert blocks(admit_gang(a_gang(*workers(3), preferred_level=BLOCK), network)) == {"b"}
    network = network_of(nodes_of({"s/a": [2], "s/b": [3], "t/c": [3], "t/d": [1], "t/e": [3]}))
    assert blocks(admit_gang(a_gang(*workers(5), preferred_level=BLOCK), network)) == {"a", "b"}


def test_a_preference_costs_no_member_its_place() -> None:
    network = network_of(nodes_of({"s/a": [4], "t/b": [3]}))
    placed = admit_gang(a_gang(*workers(9), needs=2, preferred_level=BLOCK), network)
    assert len(seats(placed)) == 7


def test_where_no_domain_takes_it_the_fewest_of_the_nearest_level_do() -> None:
    network = network_of(nodes_of({"r/a": [2], "s/b": [2], "s/c": [4], "t/d": [1], "t/e": [3], "u/f": [3]}))
    assert len(blocks(admit_gang(a_gang(*workers(7), preferred_level=BLOCK), network))) == 2


def test_a_preference_within_a_requirement() -> None:
    network = network_of(nodes_of({"s/a": [2], "s/b": [2], "s/c": [2], "t/d": [3], "t/e": [3], "u/f": [5]}))
    gang = a_gang(*workers(6), required_level=SPINE, preferred_level=BLOCK)
    assert blocks(admit_gang(gang, network)) == {"d", "e"}
    gang = a_gang(*workers(5), required_level=SPINE, preferred_level=BLOCK)
    assert blocks(admit_gang(gang, network)) == {"f"}


def test_a_preference_looks_to_where_members_run() -> None:
    network = network_of(nodes_of({"s/a": [3], "s/b": [9], "t/c": [4]}))
    gang = a_gang(*workers(4), needs=5, bound=(a_pod("w-9", node="a-0"),), preferred_level=BLOCK)
    assert blocks(admit_gang(gang, network)) == {"a", "b"}


# Without a word


def test_among_equal_nodes_those_near_the_first_one_go_first() -> None:
    network = network_of(nodes_of({"s/a": [2, 2], "s/b": [2, 2], "t/c": [3, 2]}))
    assert seats(admit_gang(a_gang(*workers(7)), network)) == ["c-0"] * 3 + ["c-1"] * 2 + ["a-0"] * 2


def test_among_equal_nodes_those_near_members_that_run_go_first() -> None:
    network = network_of(nodes_of({"s/a": [2, 2], "s/b": [2, 2, 0], "t/c": [2, 2]}))
    gang = a_gang(*workers(4), needs=5, bound=(a_pod("w-9", node="b-2"),))
    assert blocks(admit_gang(gang, network)) == {"b"}
    gang = a_gang(*workers(6), needs=7, bound=(a_pod("w-9", node="b-2"),))
    assert blocks(admit_gang(gang, network)) == {"a", "b"}


def test_a_fuller_node_still_comes_before_a_nearer_one() -> None:
    network = network_of(nodes_of({"s/a": [4, 1, 1, 1], "t/b": [3]}))
    assert blocks(admit_gang(a_gang(*workers(7)), network)) == {"a", "b"}


def test_the_same_state_gives_the_same_plan() -> None:
    def plan(order: int) -> list[str]:
        nodes = nodes_of({"s/a": [2, 2, 1], "s/b": [2, 2], "t/c": [2, 2]})
        network: Snapshot = network_of(nodes[::order])
        return seats(admit_gang(a_gang(*workers(6), preferred_level=BLOCK), network))

    assert plan(1) == plan(1) == plan(-1)
