"""Bind calls of pods without room of ours: kube-scheduler may be behind our watch, or ahead of it."""

from msgspec import structs

from extender.model.pod import HostPort, Pod
from tests.bind_rig import BindRig
from tests.builders import a_node, a_pod, a_shape, whole_gpus

TAKEN = 'node "n1" has no room for pod "default/late" any more: Insufficient nvidia.com/gpu'


def running(rig: BindRig, name: str, **fields: object) -> Pod:
    """Return a pod with one GPU that runs on n1."""
    pod = structs.replace(a_pod(name, node="n1"), **fields)
    rig.create(pod)
    return pod


def waiting(rig: BindRig, pod: Pod | None = None) -> Pod:
    """Return a pod that wants a GPU, if not told otherwise; kube-scheduler sees room for it on n1."""
    pod = pod or a_pod("late")
    rig.create(pod)
    assert "n1" in rig.ask(pod, ["n1"]).accepted
    return pod


async def test_kube_scheduler_has_forgotten_a_pod_that_was_bound_while_it_was_paused() -> None:
    rig = BindRig(a_node("n1", gpu=1))
    running(rig, "forgotten")
    assert await rig.answer_to(rig.call(waiting(rig), "n1")) == TAKEN
    assert rig.binder.posted == []


async def test_kube_scheduler_knows_of_the_forgotten_pod_when_the_other_one_comes_again() -> None:
    rig = BindRig(a_node("n1", gpu=1), a_node("n2", gpu=1))
    running(rig, "forgotten")
    pod = waiting(rig)
    await rig.answer_to(rig.call(pod, "n1"))
    assert list(rig.ask(pod, ["n2"]).accepted) == ["n2"]
    assert await rig.call(pod, "n2") == ""


async def test_kube_scheduler_has_seen_the_end_of_a_pod_and_our_watch_is_late() -> None:
    rig = BindRig(a_node("n1", gpu=1))
    gone = running(rig, "gone", terminating=True)
    call = rig.call(waiting(rig), "n1")
    await rig.settle()
    assert rig.binder.posted == []
    rig.delete(gone)
    assert await call == ""


async def test_a_pod_that_is_being_deleted_has_its_room_until_it_is_gone() -> None:
    rig = BindRig(a_node("n1", gpu=1))
    running(rig, "victim", terminating=True)
    assert await rig.answer_to(rig.call(waiting(rig), "n1")) == TAKEN


async def test_a_pod_that_has_finished_has_no_room() -> None:
    rig = BindRig(a_node("n1", gpu=1))
    running(rig, "done", finished=True)
    assert await rig.call(waiting(rig), "n1") == ""


async def test_two_come_at_once_to_a_node_with_room_for_one_and_the_watch_has_shown_neither() -> None:
    rig = BindRig(a_node("n1", gpu=2))
    running(rig, "forgotten")
    first, second = waiting(rig, a_pod("first")), waiting(rig)
    calls = [rig.call(first, "n1"), rig.call(second, "n1")]
    assert await rig.answer_to(calls[1]) == TAKEN
    assert await calls[0] == ""
    assert rig.binder.posted == ["first"]
    rig.bind(first, "n1")
    rig.delete(first)
    assert await rig.call(second, "n1") == "", "what was being bound counts no more once it was seen"


async def test_two_come_at_once_to_a_node_with_room_for_both_whose_gpus_are_held_for_them() -> None:
    rig = BindRig(a_node("n1", gpu=2))
    shape = a_shape(gpu=1, cards=whole_gpus(1))
    pods = [waiting(rig, a_pod(name, shape=shape)) for name in ("first", "second")]
    assert [await rig.call(pod, "n1") for pod in pods] == ["", ""]


async def test_the_first_of_two_cannot_be_bound_and_the_second_one_has_its_room() -> None:
    rig = BindRig(a_node("n1", gpu=1))
    first, second = waiting(rig, a_pod("first")), waiting(rig)
    rig.binder.failing = {"first"}
    assert await rig.call(first, "n1") == "the API server said no"
    assert await rig.call(second, "n1") == ""


async def test_nobody_knows_whether_the_first_of_two_was_bound() -> None:
    rig = BindRig(a_node("n1", gpu=1))
    first, second = waiting(rig, a_pod("first")), waiting(rig)
    rig.binder.unknown = {"first"}
    assert await rig.call(first, "n1") == "the API server did not say"
    assert await rig.answer_to(rig.call(second, "n1")) == TAKEN
    rig.delete(first)
    assert await rig.call(second, "n1") == ""


async def test_a_pod_that_was_deleted_while_its_call_waited_takes_no_room() -> None:
    rig = BindRig(a_node("n1", gpu=1))
    gone, first, second = running(rig, "gone"), waiting(rig, a_pod("first")), waiting(rig)
    rig.binder.unknown = {"first"}
    call = rig.call(first, "n1")
    await rig.settle()
    rig.delete(first, gone)
    assert "was deleted" in await call
    assert await rig.call(second, "n1") == ""


async def test_a_further_member_that_is_deleted_while_its_call_waits_is_not_posted() -> None:
    rig = BindRig(a_node("n1", gpu=1), a_node("n2", gpu=1))
    running(rig, "w0", node_name="n2", gang=a_pod("w0", gang="g", min_available=1).gang)
    rig.later()
    gone, late = running(rig, "gone"), waiting(rig, a_pod("late", gang="g", min_available=1))
    call = rig.call(late, "n1")
    await rig.settle()
    assert not call.done()
    rig.delete(late, gone)
    assert "was deleted" in await rig.answer_to(call)
    assert rig.binder.posted == []


async def test_a_call_that_is_repeated_does_not_stand_in_its_own_way() -> None:
    rig = BindRig(a_node("n1", gpu=1))
    pod = waiting(rig)
    rig.binder.unknown = {"late"}
    assert await rig.call(pod, "n1") == "the API server did not say"
    rig.binder.unknown = set()
    assert await rig.call(pod, "n1") == ""


async def test_a_pod_that_is_bound_while_its_call_waits_does_not_stand_in_its_own_way() -> None:
    rig = BindRig(a_node("n1", gpu=1))
    running(rig, "forgotten")
    pod = waiting(rig)
    call = rig.call(pod, "n1")
    await rig.settle()
    rig.bind(pod, "n1")
    assert await call == "", "the API server says where it is"


async def test_an_overcommitted_node_takes_who_needs_nothing_of_what_is_short() -> None:
    rig = BindRig(a_node("n1", gpu=1))
    running(rig, "ours")
    running(rig, "anothers", scheduler_name="another-scheduler")
    assert await rig.call(waiting(rig, a_pod("cpu-only", gpu=0)), "n1") == ""
    assert await rig.answer_to(rig.call(waiting(rig), "n1")) == TAKEN


async def test_a_node_that_has_shrunk_takes_nobody_until_it_has_grown() -> None:
    rig = BindRig(a_node("n1", gpu=4))
    running(rig, "first")
    rig.cluster.upsert_node(a_node("n1", gpu=1))
    call = rig.call(waiting(rig), "n1")
    await rig.settle()
    assert rig.binder.posted == []
    rig.cluster.upsert_node(a_node("n1", gpu=2))
    assert await call == ""


async def test_what_a_node_has_nothing_of_is_for_kube_scheduler_to_judge() -> None:
    """It may have been told to ignore it, or find it elsewhere."""
    rig = BindRig(a_node("n1", gpu=0))
    asks = a_shape(gpu=1, requests={"example.com/licence": 1})
    assert await rig.call(waiting(rig, a_pod("late", shape=asks)), "n1") == ""


async def test_a_node_that_only_kube_scheduler_knows_yet() -> None:
    rig = BindRig()
    pod = a_pod("late")
    rig.create(pod)
    assert await rig.call(pod, "n1") == ""


async def test_a_port_of_the_node_is_not_taken_twice() -> None:
    rig = BindRig(a_node("n1"))
    shape = a_shape(host_ports=(HostPort(80),))
    running(rig, "forgotten", shape=shape)
    assert "free ports" in await rig.answer_to(rig.call(waiting(rig, a_pod("late", shape=shape)), "n1"))


async def test_room_that_was_planned_for_a_gang_meanwhile_is_his_whom_kube_scheduler_put_there() -> None:
    rig = BindRig(a_node("n1", gpu=1))
    pod, member = waiting(rig), a_pod("w0", gang="g", min_available=1)
    rig.create(member)
    rig.later()
    assert rig.slot(member).node == "n1"
    assert await rig.call(pod, "n1") == ""


async def test_room_to_which_a_member_was_let_through_is_not_his_who_comes_later() -> None:
    """kube-scheduler counts the member there, unless it has forgotten it."""
    rig = BindRig(a_node("n1", gpu=1))
    pod = waiting(rig)
    rig.let_through(a_pod("w0", gang="g", min_available=1))
    assert await rig.answer_to(rig.call(pod, "n1")) == TAKEN


async def test_a_further_member_of_a_gang_that_runs_is_looked_at_like_a_pod_without_a_gang() -> None:
    rig = BindRig(a_node("n1", gpu=2))
    running(rig, "w0", gang=a_pod("w0", gang="g", min_available=1).gang)
    rig.later()
    running(rig, "forgotten")
    late = waiting(rig, a_pod("late", gang="g", min_available=1))
    assert await rig.answer_to(rig.call(late, "n1")) == TAKEN


async def test_whoever_fits_waits_for_nothing() -> None:
    rig = BindRig(a_node("n1", gpu=2))
    running(rig, "other")
    call = rig.call(waiting(rig), "n1")
    await rig.settle()
    assert call.done()
