"""The filter verb: who is let through to which node, and what the others are told."""

from typing import Any

from msgspec import structs

from extender.model.node import Taint
from extender.model.pod import Pod
from extender.state.standings import TEXT_HOLDS_S
from tests.builders import a_node, a_pod, a_shape
from tests.rig import GATHERING_S, Rig


def workers(gang: str, count: int, **options: Any) -> list[Pod]:
    return [a_pod(f"{gang}-worker-{i}", gang=gang, created_at=i, **options) for i in range(count)]


def test_a_pod_without_a_gang_passes_untouched() -> None:
    rig = Rig(a_node("n1"), a_node("n2"))
    assert rig.ask(a_pod("single"), ["n2"]).accepted == ["n2"]
    assert rig.reserved() == 0


def test_a_gang_that_does_not_fit_is_rejected_in_the_seeds_words() -> None:
    control_plane = [
        a_node(f"cp{i}", gpu=0, taints=(Taint("node-role.kubernetes.io/control-plane"),)) for i in range(3)
    ]
    others = [a_node(f"cpu{i}", gpu=0, labels={"pool": "cpu"}) for i in range(8)]
    gpus = [a_node(f"gpu{i}", gpu=1, labels={"pool": "gpu"}) for i in range(2)]
    rig = Rig(*control_plane, *others, *gpus)
    shape = a_shape(gpu=1, node_selector={"pool": "gpu"})
    pods = workers("mnist", 4, shape=shape, namespace="dlrover")
    rig.create(*pods[:2])
    for pod in pods[:2]:
        rig.ask(pod, ["gpu0", "gpu1"])
    rig.create(pods[2])
    answer = rig.ask(pods[2], ["gpu0", "gpu1"])
    assert set(answer.rejected.values()) == {
        (
            'Gang "dlrover/mnist" gets rejected due to member Pod "mnist-worker-2" is unschedulable with reason '
            '"0/13 nodes are available: 2 Insufficient nvidia.com/gpu, 3 node(s) had untolerated taint '
            "{node-role.kubernetes.io/control-plane: }, 8 node(s) didn't match Pod's node affinity/selector.\""
        )
    }
    assert set(answer.rejected) == set(rig.cluster.snapshot().rooms), "every node is named, offered or not"
    assert rig.reserved() == 0


def test_after_a_restart_nobody_gets_the_room_that_a_gang_in_part_still_needs() -> None:
    """The first one who is asked for comes before the first cycle."""
    rig = Rig(a_node("n1", gpu=2))
    first, second = workers("g", 2, min_available=2)
    rig.create(structs.replace(first, node_name="n1"), second)
    single = a_pod("single")
    rig.create(single)

    assert rig.ask(single).accepted == []
    assert rig.node_for(second) == "n1"


def test_the_first_member_is_let_through_and_room_is_held_for_those_to_come() -> None:
    rig = Rig(a_node("n1", gpu=4))
    first, *others = workers("g", 4)
    rig.create(first)
    assert rig.node_for(first) == "n1"
    assert rig.reserved() == 4
    rival = a_pod("rival-0", gang="rival", min_available=1)
    rig.create(rival)
    assert rig.node_for(rival) is None, "the room of members that do not exist yet is taken"
    for pod in others:
        rig.create(pod)
        assert rig.node_for(pod) == "n1"
    assert rig.reserved() == 4


def test_members_that_do_not_come_lose_the_room_and_are_planned_again_with_the_next_member() -> None:
    rig = Rig(a_node("n1", gpu=4))
    first, second, *_ = workers("g", 4)
    rig.create(first)
    rig.ask(first)
    rig.later(GATHERING_S)
    assert rig.reserved() == 0
    assert "GangMembersMissing" in [a.reason for a in rig.announcements]
    assert "fewer than its min-available 4 exist" in rig.text_for(first)
    rig.create(second)
    assert rig.node_for(second) == "n1"
    assert rig.reserved() == 4


def test_a_parameter_server_alone_says_nothing_of_its_workers_so_the_gang_gathers() -> None:
    rig = Rig(a_node("n1", gpu=4))
    ps = a_pod("ps", gang="g", min_available=5, gpu=0, role="ps")
    rig.create(ps)
    assert "fewer than its min-available 5 exist" in rig.text_for(ps)
    pods = workers("g", 4, min_available=5)
    rig.create(*pods)
    assert {rig.node_for(pod) for pod in [ps, *pods]} == {"n1"}


def test_a_wrong_guess_about_absent_members_is_mended_when_the_real_one_comes() -> None:
    rig = Rig(a_node("n1", gpu=4, cpu_milli=4000), a_node("n2", gpu=1))
    pods = workers("g", 4, min_available=5)
    rig.create(*pods)
    assert [rig.node_for(pod) for pod in pods] == ["n1"] * 4
    assert rig.reserved() == 5, "a fifth worker is expected"
    ps = a_pod("ps", gang="g", min_available=5, gpu=0, cpu_milli=16_000, role="ps")
    rig.create(ps)
    assert rig.node_for(ps) == "n2"
    assert [rig.node_for(pod) for pod in pods] == ["n1"] * 4, "who was let through stays where kube-scheduler counts it"
    assert rig.reserved() == 5


def test_two_gangs_with_room_for_one_never_hold_half_each() -> None:
    rig = Rig(a_node("n1"), a_node("n2"))
    mine, theirs = workers("a", 4), workers("b", 4)
    outcomes = []
    for pair in zip(mine, theirs, strict=True):
        for pod in pair:
            rig.create(pod)
            outcomes.append((pod.name[0], rig.node_for(pod) is not None))
    assert set(outcomes) == {("a", True), ("b", False)}


def test_the_waiting_gang_is_planned_and_woken_when_the_first_one_is_deleted() -> None:
    rig = Rig(a_node("n1"), a_node("n2"))
    mine, theirs = workers("a", 4), workers("b", 4)
    rig.create(*mine)
    running = [rig.bind(pod, rig.node_for(pod)) for pod in mine]
    rig.create(*theirs)
    for pod in theirs:
        rig.ask(pod)
        rig.turn_away(pod)
    rig.later()
    assert rig.nominations == []
    rig.delete(*running)
    rig.later()
    assert {nomination.name for nomination in rig.nominations} == {pod.name for pod in theirs}
    rig.later()
    assert len(rig.nominations) == 4, "asked once each"


def test_a_nomination_that_kube_scheduler_wipes_is_written_again() -> None:
    rig = Rig(a_node("n1", gpu=0))
    (pod,) = workers("g", 1, min_available=1)
    rig.create(pod)
    rig.ask(pod)
    asleep = rig.turn_away(pod)
    rig.cluster.upsert_node(a_node("n1", gpu=1))
    rig.later()
    rig.create(structs.replace(asleep, nominated_node="n1"))
    rig.later()
    rig.create(asleep)
    rig.later(0.2)
    assert [nomination.node for nomination in rig.nominations] == ["n1", "n1"]


def test_exactly_min_available_members_are_let_through_when_no_more_fit() -> None:
    rig = Rig(a_node("n1", gpu=1), a_node("n2", gpu=1))
    pods = workers("g", 4, min_available=2)
    rig.create(*pods)
    assert sorted(filter(None, map(rig.node_for, pods))) == ["n1", "n2"]


def test_a_repeated_call_gets_the_same_answer_and_takes_no_more_room() -> None:
    rig = Rig(a_node("n1", gpu=2), a_node("n2", gpu=2))
    pods = workers("g", 4)
    rig.create(*pods)
    first = [rig.node_for(pod) for pod in pods]
    assert [rig.node_for(pod) for pod in pods] == first
    assert rig.reserved() == 4


def test_a_node_that_kube_scheduler_refuses_is_left_out_and_the_gang_planned_again() -> None:
    rig = Rig(a_node("n1", gpu=4), a_node("n2", gpu=4))
    pods = workers("g", 4)
    rig.create(*pods)
    rig.later()
    home = next(iter(rig.cluster.reservations)).slots[0].node
    other = "n2" if home == "n1" else "n1"
    assert rig.node_for(pods[0], [other]) == other


def test_where_the_model_cannot_tell_all_nodes_that_are_not_offered_are_left_out_at_once() -> None:
    rig = Rig(*[a_node(f"n{i}", gpu=1) for i in range(30)])
    pods = workers("g", 2, min_available=2, shape=structs.replace(a_shape(), unmodelled=("resource claims",)))
    rig.create(*pods)
    rig.later()
    offered = ["n28", "n29"]
    assert {rig.node_for(pod, offered) for pod in pods} == set(offered), "each one's first call finds out"


def test_where_the_model_can_tell_only_the_planned_node_is_left_out() -> None:
    rig = Rig(*[a_node(f"n{i}", gpu=1) for i in range(4)])
    (pod,) = workers("g", 1, min_available=1)
    rig.create(pod)
    rig.later()
    first = rig.slot(pod).node
    assert rig.node_for(pod, ["n3"]) is None
    assert rig.slot(pod).node not in {first, "n3"}


def test_a_gang_that_fits_nowhere_else_waits_until_the_refusal_is_over() -> None:
    rig = Rig(a_node("n1", gpu=2), a_node("n2", gpu=2))
    pods = workers("g", 4)
    rig.create(*pods)
    rig.later()
    assert rig.reserved() == 4
    assert rig.node_for(pods[0], ["n2"]) is None
    assert rig.reserved() == 0, "without n1 the gang cannot be whole, so it holds nothing"
    rig.later(11)
    assert rig.reserved() == 4


def test_a_call_for_an_outdated_nomination_only_is_no_refusal() -> None:
    rig = Rig(a_node("n1", gpu=4), a_node("n2", gpu=1))
    pods = workers("g", 4)
    rig.create(*pods)
    answer = rig.ask(pods[0], ["n2"], nominated="n2")
    assert not answer.accepted
    assert rig.node_for(pods[0]) == "n1"


def test_a_bad_claim_is_rejected_with_its_problem() -> None:
    rig = Rig(a_node("n1"))
    pod = a_pod("w", gang="g", problem="min-available is no number")
    assert rig.text_for(pod) == 'Gang "default/g": min-available is no number'


def test_a_member_of_another_scheduler_is_told_what_to_change() -> None:
    rig = Rig(a_node("n1"))
    assert "schedulerNames" in rig.text_for(a_pod("w", gang="g", scheduler_name="other"))


def test_members_that_disagree_follow_the_oldest_and_the_others_are_warned() -> None:
    rig = Rig(a_node("n1", gpu=2))
    oldest = a_pod("w0", gang="g", min_available=2, created_at=1)
    other = a_pod("w1", gang="g", min_available=3, created_at=2)
    rig.create(other, oldest)
    rig.later()
    assert rig.gang("default/g").min_available == 2
    assert [(a.pod.name, a.reason) for a in rig.announcements] == [("w1", "GangMembersDisagree")]
    rig.later()
    assert len(rig.announcements) == 1, "warned once"


def test_an_extra_member_of_a_running_gang_keeps_off_reserved_room() -> None:
    rig = Rig(a_node("n1", gpu=2), a_node("n2", gpu=1), a_node("n3", gpu=1))
    pods = workers("g", 2, min_available=2)
    rig.create(*pods)
    for pod in pods:
        rig.bind(pod, rig.node_for(pod))
    planned = a_pod("p", gang="planned", min_available=1, created_at=5)
    rig.create(planned)
    node = rig.node_for(planned)
    extra = a_pod("extra", gang="g", min_available=2, created_at=9)
    rig.create(extra)
    answer = rig.ask(extra, ["n2", "n3"])
    assert list(answer.accepted) == [name for name in ["n2", "n3"] if name != node]


def test_a_text_is_constant_while_only_its_numbers_change_and_not_for_ever() -> None:
    rig = Rig(*[a_node(f"n{i}", gpu=1) for i in range(3)])
    pods = workers("g", 4)
    rig.create(*pods)
    before = rig.text_for(pods[0])
    rig.cluster.upsert_node(a_node("another", gpu=0))
    rig.later(1)
    assert rig.text_for(pods[0]) == before
    rig.later(TEXT_HOLDS_S)
    assert rig.text_for(pods[0]) != before


def test_members_told_an_outdated_reason_get_an_event_with_the_new_one() -> None:
    rig = Rig(a_node("n1", gpu=2))
    pods = workers("g", 4)
    rig.create(pods[0])
    assert "does not exist yet" in rig.text_for(pods[0])
    rig.create(*pods[1:])
    rig.later()
    (told,) = [event for event in rig.announcements if event.reason == "FailedScheduling"]
    assert (told.pod.name, told.reason) == (pods[0].name, "FailedScheduling")
    assert 'member Pod "g-worker-2"' in told.note


def test_the_text_does_not_turn_with_every_pod_that_comes_and_goes() -> None:
    rig = Rig(a_node("n1", gpu=3))
    pods = workers("g", 4)
    rig.create(*pods)
    texts = set()
    single = a_pod("single", node="n1")
    for _ in range(3):
        texts.add(rig.text_for(pods[0]))
        rig.create(single)
        rig.later(0.1)
        texts.add(rig.text_for(pods[0]))
        rig.delete(single)
        rig.later(0.1)
    assert len(texts) == 1, texts


def test_an_extra_member_that_is_kept_off_reserved_room_is_not_told_otherwise_in_an_event() -> None:
    rig = Rig(a_node("n1", gpu=1), a_node("n2", gpu=1))
    first = a_pod("first", gang="g", min_available=1, created_at=1)
    rig.create(first)
    rig.bind(first, rig.node_for(first))
    rig.later()
    planned = a_pod("p", gang="planned", min_available=1, created_at=5)
    rig.create(planned)
    rig.node_for(planned)
    extra = a_pod("extra", gang="g", min_available=1, created_at=9)
    rig.create(extra)
    for _ in range(3):
        assert not rig.ask(extra, ["n2"]).accepted
        rig.turn_away(extra)
        rig.later(1)
    assert [a.note for a in rig.announcements if a.reason == "FailedScheduling"] == []


def test_a_terminating_member_is_not_told_to_change_its_schedulers_name() -> None:
    rig = Rig(a_node("n1", gpu=1))
    pod = a_pod("w", gang="g", min_available=1)
    rig.create(structs.replace(pod, terminating=True))
    assert "schedulerName" not in rig.text_for(pod)


def test_a_call_for_a_deleted_pod_leaves_nothing_behind() -> None:
    rig = Rig(a_node("n1", gpu=0))
    pod = a_pod("w", gang="g", min_available=1)
    rig.create(pod)
    rig.delete(pod)
    rig.later()
    rig.ask(pod)
    rig.later()
    assert not rig.planner.standings._told
