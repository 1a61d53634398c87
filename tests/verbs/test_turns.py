"""Turns on nodes whose device plugin finds pods by size and age, or by the node's lock."""

import asyncio
from typing import Any

import pytest
from msgspec import structs

from extender.effects.binding import LAST_LOOK_S
from extender.effects.node_lock import RELEASE_S
from extender.model.device import CardDialect, CardManager, CardNeed, CardRequest
from extender.model.node import Node
from extender.model.pod import Pod
from extender.verbs.bind import POSTING_S, TURN_AFTER_S
from extender.verbs.turns import PLUGIN_S
from extender.wire.cards.handshake import Handshake
from extender.wire.cards.node_lock import LockUse
from tests.bind_rig import BindRig
from tests.builders import GIB, a_node, a_pod, a_shape, some_cards
from tests.rig import BINDING_S

HTTP_TIMEOUT_S = 90.0
"""The bind entry's."""

DIALECTS = {
    CardManager.GPUSHARE: CardDialect.GPUSHARE,
    CardManager.VOLCANO_VGPU: CardDialect.VOLCANO_VGPU,
    CardManager.HAMI: CardDialect.HAMI,
}


def a_gpu_node(name: str, manager: CardManager = CardManager.GPUSHARE) -> Node:
    return a_node(name, inventory=some_cards(2, prefix=f"GPU-{name}", manager=manager))


def a_sharer(name: str, gib: int = 2, manager: CardManager = CardManager.GPUSHARE, gang: int = 0) -> Pod:
    request = CardRequest(DIALECTS[manager], (CardNeed(memory_bytes=gib * GIB),))
    shape = a_shape(gpu=0, cards=request)
    return a_pod(name, shape=shape, gang="g" if gang else None, min_available=gang or None)


async def calls_of(rig: BindRig, *pods: Pod) -> list[asyncio.Task[str]]:
    """Return the bind calls of pods that were let through, which have gone as far as they can."""
    calls = []
    for pod, node in zip(pods, rig.let_through(*pods), strict=True):
        calls.append(rig.call(pod, node))
        await rig.settle()
    return calls


def show_bound(rig: BindRig, *pods: Pod) -> None:
    """Show the pods on their nodes, as the watch would; the plugin has not taken them up."""
    for pod in pods:
        slot = rig.slot(pod)
        rig.create(structs.replace(pod, node_name=slot.node, cards=slot.cards, awaits_plugin=True))


def take_up(rig: BindRig, *pods: Pod) -> None:
    """Show the pods taken up by the plugin."""
    for pod in pods:
        rig.create(structs.replace(rig.cluster.pods[pod.uid], awaits_plugin=False))


async def test_a_queue_costs_no_look_at_pods_of_other_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"n{number}" for number in range(12)]
    rig = BindRig(*[structs.replace(a_gpu_node(name, CardManager.HAMI), labels={"name": name}) for name in names])
    for name in names:
        first, second = (a_sharer(f"{turn}-{name}", manager=CardManager.HAMI) for turn in ("first", "second"))
        shape = structs.replace(second.shape, node_selector=(("name", name),))
        rig.create(structs.replace(first, node_name=name, awaits_plugin=True))
        await calls_of(rig, structs.replace(second, shape=shape))
    assert rig.binder.posted == []
    looked_at: list[str] = []
    handshake_on = rig.turns.handshake_on

    def noted(pod: Pod, node: str) -> Handshake | None:
        looked_at.append(node)
        return handshake_on(pod, node)

    monkeypatch.setattr(rig.turns, "handshake_on", noted)
    rig.turns.reconsider(rig.now_s)
    assert {looked_at.count(name) for name in names} == {2}, "once for whose turn it is, once for since when"


async def test_the_next_pod_of_the_same_size_is_bound_when_the_one_before_it_is_taken_up() -> None:
    rig = BindRig(a_gpu_node("n1"))
    first, second, third = pods = [a_sharer(name) for name in ("a", "b", "c")]
    calls = await calls_of(rig, *pods)
    assert rig.binder.posted == ["a"]
    show_bound(rig, first)
    await rig.settle()
    assert rig.binder.posted == ["a"], "it is bound, but the plugin could not tell b from it"
    take_up(rig, first)
    await rig.settle()
    assert rig.binder.posted == ["a", "b"]
    show_bound(rig, second)
    take_up(rig, second)
    await rig.settle()
    assert rig.binder.posted == ["a", "b", "c"]
    show_bound(rig, third)
    assert [await call for call in calls] == ["", "", ""]


async def test_pods_of_other_sizes_and_on_other_nodes_do_not_wait() -> None:
    rig = BindRig(a_gpu_node("n1"), a_gpu_node("n2"))
    pods = [a_sharer("a"), a_sharer("large", gib=14), a_sharer("larger", gib=15), a_sharer("b", gib=16)]
    calls = await calls_of(rig, *pods)
    assert {rig.slot(pod).node for pod in pods} == {"n1", "n2"}
    assert [await call for call in calls] == [""] * 4


@pytest.mark.parametrize("manager", [CardManager.GPUSHARE, CardManager.VOLCANO_VGPU])
async def test_a_plugin_that_guesses_has_a_queue_for_each_size(manager: CardManager) -> None:
    rig = BindRig(a_gpu_node("n1", manager))
    pods = [a_sharer("a", 2, manager), a_sharer("b", 3, manager)]
    calls = await calls_of(rig, *pods)
    by_memory = manager is CardManager.GPUSHARE
    assert rig.binder.posted == (["a", "b"] if by_memory else ["a"]), "Volcano's looks at how many cards they are"
    show_bound(rig, pods[0])
    take_up(rig, pods[0])
    await rig.settle()
    assert [await call for call in calls] == ["", ""]


async def test_with_a_node_lock_all_pods_of_the_node_go_one_after_the_other() -> None:
    rig = BindRig(a_gpu_node("n1", CardManager.HAMI))
    pods = [a_sharer("a", 2, CardManager.HAMI), a_sharer("b", 3, CardManager.HAMI)]
    calls = await calls_of(rig, *pods)
    assert (rig.binder.posted, rig.locks.taken) == (["a"], {"n1": "a"})
    show_bound(rig, pods[0])
    take_up(rig, pods[0])
    await rig.settle()
    assert (rig.binder.posted, rig.locks.taken) == (["a", "b"], {"n1": "b"})
    assert [await call for call in calls] == ["", ""]
    assert rig.locks.released == [], "the plugin does that"


async def test_the_lock_is_released_when_the_binding_fails_and_the_next_one_goes() -> None:
    rig = BindRig(a_gpu_node("n1", CardManager.HAMI))
    pods = [a_sharer("a", 2, CardManager.HAMI), a_sharer("b", 3, CardManager.HAMI)]
    rig.binder.failing = {"a"}
    calls = await calls_of(rig, *pods)
    assert [await call for call in calls] == ["the API server said no", ""]
    assert rig.locks.released == ["a"]


async def test_the_members_of_a_gang_queue_on_their_node_in_order() -> None:
    rig = BindRig(a_gpu_node("n1"))
    pods = [a_sharer(f"w{i}", gang=4) for i in range(4)]
    calls = await calls_of(rig, *pods)
    for count, pod in enumerate(pods, 1):
        assert len(rig.binder.posted) == count
        show_bound(rig, pod)
        await rig.settle()
        assert len(rig.binder.posted) == count
        take_up(rig, pod)
        await rig.settle()
    assert [await call for call in calls] == [""] * 4
    assert rig.binder.posted == ["w0", "w1", "w2", "w3"]


@pytest.mark.parametrize("end", ["deleted", "finished"])
async def test_a_pod_that_is_gone_or_finished_is_waited_for_no_longer(end: str) -> None:
    rig = BindRig(a_gpu_node("n1"))
    first, second = a_sharer("a"), a_sharer("b")
    calls = await calls_of(rig, first, second)
    show_bound(rig, first)
    if end == "deleted":
        rig.delete(first)
    else:
        rig.create(structs.replace(rig.cluster.pods[first.uid], finished=True))
    await rig.settle()
    assert [await call for call in calls] == ["", ""]


async def test_after_a_restart_pods_that_are_not_taken_up_are_waited_for() -> None:
    rig = BindRig(a_gpu_node("n1"))
    rig.create(structs.replace(a_sharer("earlier"), node_name="n1", awaits_plugin=True))
    (call,) = await calls_of(rig, a_sharer("a"))
    assert rig.binder.posted == []
    take_up(rig, a_sharer("earlier"))
    await rig.settle()
    assert await call == ""


async def test_who_waits_for_a_plugin_that_is_away_is_planned_on_another_node() -> None:
    rig = BindRig(a_gpu_node("n1"))
    first, second = a_sharer("a"), a_sharer("b")
    calls = await calls_of(rig, first, second)
    show_bound(rig, first)
    rig.cluster.upsert_node(a_gpu_node("n2"))
    rig.later(PLUGIN_S - 1)
    await rig.settle()
    assert not calls[1].done()
    rig.later(1)
    await rig.settle()
    assert await calls[1] == (
        'the GPU device plugin of node "n1" has not taken up pod "default/a" yet, '
        "and could not tell another one from it"
    )
    assert rig.node_for(second) == "n2"


async def test_who_finds_two_plugins_away_time_and_again_is_planned_on_a_third_node_at_last() -> None:
    rig = BindRig(a_gpu_node("n1"), a_gpu_node("n2"), a_gpu_node("n3"))
    for number in range(4):  # so that the third node is filled last
        rig.create(structs.replace(a_sharer(f"fills-{number}"), node_name=f"n{number % 2 + 1}", awaits_plugin=True))
    pod = a_sharer("c", gang=1)
    (node,) = rig.let_through(pod)
    tried = [node]
    while node != "n3" and len(tried) < 9:
        call = rig.call(pod, node)
        await rig.settle()
        rig.later(PLUGIN_S)
        await rig.settle()
        assert "has not taken up" in await call
        rig.later(3)  # until kube-scheduler brings it again
        node = rig.node_for(pod) or ""
        tried.append(node)
    assert tried in (["n1", "n2", "n1", "n2", "n3"], ["n2", "n1", "n2", "n1", "n3"])


async def test_a_call_is_answered_before_kube_scheduler_gives_up_however_long_the_queue() -> None:
    """Each pod is taken up in good time, but together they take longer than a call may."""
    rig = BindRig(a_gpu_node("n1"))
    pods = [a_sharer(f"w{i}", gib=1) for i in range(8)]
    calls = await calls_of(rig, *pods)
    came_s = rig.now_s
    for pod in pods:
        show_bound(rig, pod)
        for _ in range(15):
            rig.later(1.0)
            await rig.settle()
            if calls[-1].done():
                break
        else:
            take_up(rig, pod)
            await rig.settle()
            continue
        break
    answers = [await call for call in calls]
    assert rig.now_s - came_s == BINDING_S + TURN_AFTER_S
    assert answers[:5] == [""] * 5
    assert all("has not taken up" in answer for answer in answers[5:])
    assert all(rig.slot(pod).node == "n1" for pod in pods[5:]), "they come again: the plugin is not away"


def test_the_longest_wait_and_a_post_are_shorter_than_the_bind_entrys_timeout() -> None:
    assert TURN_AFTER_S + POSTING_S + LAST_LOOK_S + RELEASE_S <= 20.0, "as gangs.bindingSeconds is told to leave"
    assert BINDING_S + 20.0 < HTTP_TIMEOUT_S


async def test_a_caller_that_is_gone_does_not_keep_its_place() -> None:
    rig = BindRig(a_gpu_node("n1"))
    first, second, third = a_sharer("a"), a_sharer("b"), a_sharer("c")
    nodes = rig.let_through(first, second, third)
    connected = [True]
    calls = []
    for pod, node, is_connected in zip(
        (first, second, third), nodes, (lambda: True, lambda: connected[0], lambda: True), strict=True
    ):
        calls.append(rig.call(pod, node, is_connected))
        await rig.settle()
    connected[0] = False
    show_bound(rig, first)
    take_up(rig, first)
    await rig.settle()
    assert "given up" in await calls[1]
    assert await calls[2] == ""


async def test_a_repeated_call_takes_the_place_of_the_older_one_and_the_room_stays() -> None:
    rig = BindRig(a_gpu_node("n1"))
    first, second = a_sharer("a"), a_sharer("b")
    calls = await calls_of(rig, first, second)
    again = rig.call(second, "n1")
    await rig.settle()
    assert "repeated" in await calls[1]
    show_bound(rig, first)
    take_up(rig, first)
    await rig.settle()
    assert await again == ""
    assert rig.binder.posted == ["a", "b"]


async def test_a_post_whose_outcome_nobody_knows_does_not_block_the_node_for_ever() -> None:
    rig = BindRig(a_gpu_node("n1"))
    first, second = a_sharer("a"), a_sharer("b")
    rig.binder.unknown = {"a"}
    calls = await calls_of(rig, first, second)
    await calls[0]
    assert not calls[1].done(), "a may be bound"
    rig.later(PLUGIN_S)
    await rig.settle()
    assert "has not taken up" in await calls[1]
    rig.later(1)
    node = rig.node_for(second)
    assert node is not None
    call = rig.call(second, node)
    await rig.settle()
    assert await call == ""


async def test_a_turn_whose_post_has_succeeded_is_kept_until_its_pod_is_seen_however_late_the_watch() -> None:
    rig = BindRig(a_gpu_node("n1"))
    first, second = a_sharer("a"), a_sharer("b")
    calls = await calls_of(rig, first, second)
    assert await calls[0] == ""
    rig.later(PLUGIN_S)
    await rig.settle()
    assert "has not taken up" in await calls[1]
    rig.later(1)
    again = rig.call(second, rig.node_for(second) or "")
    await rig.settle()
    assert not again.done()
    rig.bind(first, "n1")
    await rig.settle()
    assert await again == ""


async def test_when_we_stop_those_who_wait_are_refused() -> None:
    rig = BindRig(a_gpu_node("n1"))
    calls = await calls_of(rig, a_sharer("a"), a_sharer("b"))
    rig.turns.refuse_all()
    assert "given up" in await calls[1]


def test_whose_lock_of_a_node_still_counts() -> None:
    rig = BindRig(a_gpu_node("n1", CardManager.HAMI))
    hami = CardManager.HAMI
    on_its_way = structs.replace(a_sharer("on-its-way", manager=hami), node_name="n1", awaits_plugin=True)
    rig.create(
        on_its_way,
        structs.replace(on_its_way, uid="1", name="taken-up", awaits_plugin=False),
        structs.replace(on_its_way, uid="2", name="finished", finished=True),
        structs.replace(on_its_way, uid="3", name="elsewhere", node_name="n2"),
        a_sharer("ours", manager=hami),
        structs.replace(a_sharer("theirs", manager=hami), scheduler_name="hami-scheduler"),
    )
    uses = {
        "on-its-way": LockUse.WANTED,
        "taken-up": LockUse.ENDING,
        "finished": LockUse.OVER,
        "elsewhere": LockUse.OVER,
        "ours": LockUse.OVER,
        "theirs": LockUse.WANTED,
        "gone": LockUse.OVER,
    }
    assert {name: rig.turns.lock_use("n1", "default", name) for name in uses} == uses


def test_whose_lock_it_is_that_the_pod_before_leaves_costs_no_look_at_all_pods(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is asked on each node, some times a second."""
    rig = BindRig(a_gpu_node("n1", CardManager.HAMI))
    rig.create(structs.replace(a_sharer("before", manager=CardManager.HAMI), node_name="n1"))

    class Unread(dict[str, Pod]):
        def values(self) -> Any:
            raise AssertionError("a look at all pods")

    monkeypatch.setattr(rig.cluster, "pods", Unread(rig.cluster.pods))
    assert rig.turns.lock_use("n1", "default", "before") is LockUse.ENDING


async def test_a_pod_that_turns_out_to_be_bound_waits_for_nobody() -> None:
    rig = BindRig(a_gpu_node("n1"))
    first, second = a_sharer("a"), a_sharer("b")
    calls = await calls_of(rig, first, second)
    rig.bind(second, "n1")  # an earlier post, of which nobody knew
    await rig.settle()
    assert await calls[1] == ""
    assert rig.binder.annotations["b"] == {}, "the API server says that it is bound"
