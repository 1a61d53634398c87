"""Filter in a cluster of which kube-scheduler offers a sample: 100 of 150 nodes.

A member's planned node is mostly not among them. It is named all the same where kube-scheduler would learn nothing by
looking at it; otherwise a nomination makes it look.
"""

from collections.abc import Sequence

import pytest
from msgspec import structs
from structlog.testing import capture_logs

from extender.decide.sample import is_everything, is_sample, sample_size
from extender.model.pod import AffinityTerm, ClaimUse, Pod, Relations
from tests.builders import a_node, a_pod, a_shape
from tests.rig import BINDING_S, Rig

NAMES = [f"n{i:03}" for i in range(150)]
SAMPLE = NAMES[50:]
"""None of the nodes that are planned first."""

LONELY = Relations(anti_affinity=(AffinityTerm("kubernetes.io/hostname"),))


def a_cluster(percentage: int = 1) -> Rig:
    return Rig(*[a_node(name, gpu=4) for name in NAMES], percentage=percentage)


def a_gang(rig: Rig, *, relations: Relations | None = None, claims: tuple[ClaimUse, ...] = ()) -> list[Pod]:
    shape = a_shape(relations=relations)
    pods = [structs.replace(a_pod(f"g-{i}", gang="g", shape=shape), claims=claims) for i in range(4)]
    rig.create(*pods)
    rig.later()
    return [rig.cluster.pods[pod.uid] for pod in pods]


def is_left_to_a_nomination(rig: Rig, pod: Pod, offered: Sequence[str] = SAMPLE) -> bool:
    assert rig.node_for(pod, offered) is None
    rig.turn_away(pod)
    rig.later()
    return [(each.name, each.node) for each in rig.nominations] == [(pod.name, rig.slot(pod).node)]


@pytest.mark.parametrize(
    ("nodes", "percentage", "size"),
    [(50, 1, 50), (100, 0, 100), (250, 0, 120), (5000, 0, 500), (5000, 1, 100), (5000, 10, 500), (20_000, 1, 200)],
)
def test_a_sample_is_as_large_as_kube_scheduler_makes_it(nodes: int, percentage: int, size: int) -> None:
    assert sample_size(nodes, percentage) == size
    assert is_sample(size, nodes, percentage) == (size < nodes)
    assert is_everything(size - 1, nodes, percentage)
    assert is_everything(size, nodes, percentage) == (size == nodes)


def test_the_whole_gang_is_let_through_to_its_planned_node_that_nobody_offered() -> None:
    rig = a_cluster()
    pods = a_gang(rig)
    assert [rig.node_for(pod, SAMPLE) for pod in pods] == ["n000"] * 4


def test_a_member_that_comes_again_is_looked_at_by_kube_scheduler() -> None:
    rig = a_cluster()
    pods = a_gang(rig)
    assert rig.node_for(pods[0], SAMPLE) == "n000"
    assert is_left_to_a_nomination(rig, pods[0])


def test_a_planned_node_that_is_missing_among_all_that_fit_was_refused() -> None:
    rig = a_cluster()
    pods = a_gang(rig)
    assert rig.node_for(pods[0], NAMES[1:100]) == "n001"


def test_where_all_nodes_are_looked_at_a_missing_one_was_refused() -> None:
    rig = a_cluster(percentage=100)
    pods = a_gang(rig)
    assert rig.node_for(pods[0], NAMES[1:]) == "n001"


def test_more_nodes_than_the_sample_should_have_are_no_sample_and_that_is_said_once() -> None:
    rig = a_cluster()
    pods = a_gang(rig)
    with capture_logs() as logs:
        assert is_left_to_a_nomination(rig, pods[0], NAMES[10:])
        rig.ask(pods[1], NAMES[10:])
    assert [(log["offered"], log["expected"], log["configured"]) for log in logs] == [(140, 100, 1)]


@pytest.mark.parametrize(
    ("relations", "claims"), [(LONELY, ()), (None, (ClaimUse("data"),))], ids=["anti-affinity", "a volume"]
)
def test_where_kube_scheduler_may_know_more_it_is_to_look(
    relations: Relations | None, claims: tuple[ClaimUse, ...]
) -> None:
    rig = a_cluster()
    pods = a_gang(rig, relations=relations, claims=claims)
    assert is_left_to_a_nomination(rig, pods[0])


def test_a_node_is_not_named_while_a_free_pod_may_be_on_its_way_there() -> None:
    rig = a_cluster()
    single = a_pod("single")
    assert "n000" in rig.ask(single, NAMES[:100]).accepted
    pods = a_gang(rig)
    assert is_left_to_a_nomination(rig, pods[0])
    rig.bind(single, "n001")
    assert rig.node_for(pods[1], SAMPLE) == "n000"


def test_a_node_is_named_again_when_the_free_pod_is_gone() -> None:
    rig = a_cluster()
    single = a_pod("single")
    rig.ask(single, NAMES[:100])
    pods = a_gang(rig)
    rig.delete(single)
    assert rig.node_for(pods[0], SAMPLE) == "n000"


def test_a_node_is_not_named_on_which_kube_scheduler_keeps_room_for_a_pod_that_had_others_killed() -> None:
    rig = a_cluster()
    pods = a_gang(rig)
    rig.create(a_pod("preemptor", nominated="n000"))
    assert is_left_to_a_nomination(rig, pods[0])


def test_no_node_is_named_while_a_pod_anywhere_keeps_others_off_its_own() -> None:
    rig = a_cluster()
    pods = a_gang(rig)
    repelling = a_pod("repelling", shape=a_shape(relations=LONELY), node="n140")
    rig.create(repelling)
    assert is_left_to_a_nomination(rig, pods[0])
    rig.delete(repelling)
    assert rig.node_for(pods[1], SAMPLE) == "n000"
    rig.create(repelling)
    rig.cluster.remove_node("n140")
    rig.cluster.upsert_node(a_node("n150", gpu=4))
    assert rig.node_for(pods[2], SAMPLE) == "n000"


def test_after_a_restart_nothing_is_named_until_those_who_were_on_their_way_are_heard_of() -> None:
    rig = a_cluster()
    single = a_pod("single")
    rig.create(single)
    rig.cluster.undecided.inherit([single.uid])
    pods = a_gang(rig)
    assert is_left_to_a_nomination(rig, pods[0])
    rig.bind(single, "n140")
    assert rig.node_for(pods[1], SAMPLE) == "n000"


def test_after_a_restart_those_of_whom_nothing_is_heard_are_given_up() -> None:
    rig = a_cluster()
    rig.cluster.undecided.inherit(["gone"])
    rig.cluster.undecided.disinherit()
    assert rig.node_for(a_gang(rig)[0], SAMPLE) == "n000"


def test_a_member_that_kube_scheduler_knows_otherwise_than_we_do_is_looked_at_by_it() -> None:
    rig = a_cluster()
    pods = a_gang(rig)
    newer = structs.replace(pods[0], shape=a_shape(node_selector={"disk": "ssd"}))
    assert not rig.ask(newer, SAMPLE).accepted
    assert rig.node_for(pods[1], SAMPLE) == "n000"


def test_a_node_on_which_another_scheduler_has_just_put_a_pod_is_not_named() -> None:
    rig = a_cluster()
    pods = a_gang(rig)
    rig.create(a_pod("foreign", gpu=1, node="n000"))
    assert is_left_to_a_nomination(rig, pods[0])


def test_in_a_sample_a_member_may_take_an_equal_room_that_is_offered() -> None:
    rig = Rig(*[a_node(name, gpu=1) for name in NAMES])
    rig.ask(a_pod("single"), NAMES[:100])
    pods = a_gang(rig)
    offered = rig.slot(pods[3]).node
    assert rig.node_for(pods[0], [*SAMPLE[:99], offered]) == offered
    assert rig.reserved() == 4


def test_a_further_member_goes_to_its_parameter_server_whatever_is_offered() -> None:
    rig = a_cluster()
    rig.create(
        a_pod("ps", gang="g", min_available=2, role="ps", gpu=0, node="n120"),
        a_pod("w-0", gang="g", min_available=2, role="worker", node="n010"),
    )
    further = a_pod("w-1", gang="g", min_available=2, role="worker")
    rig.create(further)
    assert rig.node_for(further, NAMES[:100]) == "n120"


def test_a_pod_that_is_asked_for_when_it_is_gone_keeps_no_node_from_being_named() -> None:
    rig = a_cluster()
    single = a_pod("single")
    rig.create(single)
    rig.delete(single)
    assert "n000" in rig.ask(single, NAMES[:100]).accepted
    pods = a_gang(rig)
    assert rig.node_for(pods[0], SAMPLE) == "n000"


def test_a_pod_that_is_asked_for_when_it_is_bound_keeps_no_node_from_being_named() -> None:
    rig = a_cluster()
    single = a_pod("single")
    rig.create(structs.replace(single, node_name="n140"))
    rig.ask(single, NAMES[:100])
    pods = a_gang(rig)
    assert rig.node_for(pods[0], SAMPLE) == "n000"


def test_a_node_is_named_again_when_kube_scheduler_keeps_it_for_the_pod_no_longer() -> None:
    rig = a_cluster()
    pods = a_gang(rig)
    rig.create(a_pod("preemptor", nominated="n000"))
    rig.create(a_pod("preemptor"))
    assert rig.node_for(pods[0], SAMPLE) == "n000"


def test_a_node_is_not_named_that_the_member_excludes_since_it_was_planned() -> None:
    rig = Rig(*[a_node(name, gpu=4, labels={"pool": "b" if name in SAMPLE else "a"}) for name in NAMES])
    pods = a_gang(rig)
    assert {rig.slot(pod).node for pod in pods} == {"n000"}
    narrowed = structs.replace(pods[0], shape=a_shape(node_selector={"pool": "b"}))
    rig.create(narrowed)
    assert rig.node_for(narrowed, SAMPLE) != "n000"


def test_no_node_is_named_while_a_pod_that_repels_others_may_be_anywhere_near() -> None:
    rig = Rig(*[a_node(name, gpu=4, labels={"zone": "z"}) for name in NAMES])
    repels_all = a_shape(relations=Relations(anti_affinity=(AffinityTerm("zone", (), ("default",)),)))
    assert rig.ask(a_pod("lonely", shape=repels_all), NAMES[50:]).accepted
    pods = a_gang(rig)
    assert rig.node_for(pods[0], SAMPLE) is None


def test_a_node_is_not_named_while_a_further_member_may_still_be_bound_there_although_its_time_is_over() -> None:
    names = [f"n{i:03}" for i in range(250)]
    rig = Rig(*[a_node(name, gpu=1) for name in names])
    rig.create(*[a_pod(f"filler-{name}", node=name) for name in names[:120]])
    rig.create(*[a_pod(f"f-{i}", gang="f", min_available=2, gpu=0, node="n120") for i in range(2)])
    further = a_pod("f-2", gang="f", min_available=2)
    rig.create(further)
    assert rig.node_for(further, names[100:200]) == "n120"
    rig.later(BINDING_S + 1)
    assert rig.cluster.reservations.slot_of(further.uid) is None
    there = next(pod for pod in a_gang(rig) if rig.slot(pod).node == "n120")
    assert rig.node_for(there, names[150:]) is None


def test_where_all_nodes_are_looked_at_one_that_we_do_not_know_yet_is_no_reason_to_doubt_the_setting() -> None:
    rig = a_cluster(percentage=100)
    with capture_logs() as logs:
        rig.ask(a_pod("single"), [*NAMES, "n150"])
    assert not logs
