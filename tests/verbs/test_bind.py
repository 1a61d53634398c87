"""The bind barrier: all members go on together, or none is posted."""

import asyncio
from collections.abc import Callable

from extender.effects.binding import Binding, BindOutcome
from extender.model.node import Node
from extender.model.pod import Pod
from extender.verbs.bind import Bind
from extender.wire.extender_v1 import BindingArgs
from tests.builders import a_node, a_pod
from tests.rig import BINDING_S, Rig


class KeptBindings:
    """Stands in for the binder: remembers what was posted, and fails where told to."""

    def __init__(self) -> None:
        self.posted: list[str] = []
        self.failing: set[str] = set()

    async def bind(self, binding: Binding, *, deadline_s: float) -> BindOutcome:
        assert deadline_s > 0
        if binding.name in self.failing:
            return BindOutcome("failed", "the API server said no")
        self.posted.append(binding.name)
        return BindOutcome("bound")


class BindRig(Rig):
    """A rig with the bind verb."""

    def __init__(self, *nodes: Node) -> None:
        super().__init__(*nodes)
        self.binder = KeptBindings()
        self.verb = Bind(self.cluster, self.barrier, self.binder)

    def call(self, pod: Pod, node: str, is_connected: Callable[[], bool] = lambda: True) -> asyncio.Task[str]:
        args = BindingArgs(pod.namespace, pod.name, pod.uid, node)
        return asyncio.create_task(self.verb.bind(args, is_connected, lambda: self.now_s))

    async def settle(self) -> None:
        """Let calls and cycle go on until nothing moves."""
        for _ in range(10):
            await asyncio.sleep(0)
            self.later()

    def let_through(self, *pods: Pod) -> list[str]:
        self.create(*pods)
        nodes = [self.node_for(pod) for pod in pods]
        assert all(nodes)
        return [node for node in nodes if node]


def gang_of(count: int, min_available: int) -> list[Pod]:
    return [a_pod(f"w{i}", gang="g", min_available=min_available, created_at=i) for i in range(count)]


async def test_bind_calls_are_held_until_min_available_members_are_there() -> None:
    rig = BindRig(a_node("n1", gpu=4))
    pods = gang_of(4, 4)
    nodes = rig.let_through(*pods)
    calls = [rig.call(pod, node) for pod, node in zip(pods[:3], nodes, strict=False)]
    await rig.settle()
    assert rig.binder.posted == []
    calls.append(rig.call(pods[3], nodes[3]))
    await rig.settle()
    assert [await call for call in calls] == [""] * 4
    assert sorted(rig.binder.posted) == ["w0", "w1", "w2", "w3"]


async def test_a_pod_without_a_gang_is_bound_at_once() -> None:
    rig = BindRig(a_node("n1"))
    single = a_pod("single")
    rig.create(single)
    assert await rig.call(single, "n1") == ""
    assert rig.binder.posted == ["single"]


async def test_when_the_time_is_over_every_held_call_is_refused_and_nothing_was_posted() -> None:
    rig = BindRig(a_node("n1", gpu=4))
    pods = gang_of(4, 4)
    nodes = rig.let_through(*pods)
    calls = [rig.call(pod, node) for pod, node in zip(pods[:3], nodes, strict=False)]
    await rig.settle()
    rig.now_s += BINDING_S
    await rig.settle()
    refusals = [await call for call in calls]
    assert all("did not come together" in refusal for refusal in refusals)
    assert rig.binder.posted == []


async def test_a_member_deleted_while_held_does_not_count() -> None:
    rig = BindRig(a_node("n1", gpu=4))
    pods = gang_of(4, 4)
    nodes = rig.let_through(*pods)
    calls = [rig.call(pod, node) for pod, node in zip(pods[:3], nodes, strict=False)]
    await rig.settle()
    rig.delete(pods[0])
    await rig.settle()
    assert await calls[0] != ""
    last = rig.call(pods[3], nodes[3])
    await rig.settle()
    assert rig.binder.posted == []
    replacement = a_pod("w9", gang="g", min_available=4, created_at=9)
    (node,) = rig.let_through(replacement)
    calls = [*calls[1:], last, rig.call(replacement, node)]
    await rig.settle()
    assert [await call for call in calls] == [""] * 4


async def test_a_repeated_call_takes_the_place_of_the_older_one() -> None:
    rig = BindRig(a_node("n1", gpu=2))
    first, second = gang_of(2, 2)
    nodes = rig.let_through(first, second)
    old = rig.call(first, nodes[0])
    await rig.settle()
    new = rig.call(first, nodes[0])
    await rig.settle()
    assert "repeated" in await old
    calls = [new, rig.call(second, nodes[1])]
    await rig.settle()
    assert [await call for call in calls] == ["", ""]


async def test_a_call_whose_caller_is_gone_does_not_count() -> None:
    rig = BindRig(a_node("n1", gpu=2))
    first, second = gang_of(2, 2)
    nodes = rig.let_through(first, second)
    connected = [True]
    lost = rig.call(first, nodes[0], lambda: connected[0])
    await rig.settle()
    connected[0] = False
    waiting = rig.call(second, nodes[1])
    await rig.settle()
    assert await lost != ""
    assert rig.binder.posted == []
    again = rig.call(first, nodes[0])
    await rig.settle()
    assert [await again, await waiting] == ["", ""]


async def test_a_member_whose_binding_fails_keeps_its_room_and_binds_when_it_comes_again() -> None:
    rig = BindRig(a_node("n1", gpu=2))
    pods = gang_of(2, 2)
    nodes = rig.let_through(*pods)
    rig.binder.failing = {"w1"}
    calls = [rig.call(pod, node) for pod, node in zip(pods, nodes, strict=True)]
    await rig.settle()
    assert [await call for call in calls] == ["", "the API server said no"]
    rig.bind(pods[0], nodes[0])
    assert rig.gang("default/g").stranded
    rig.binder.failing = set()
    assert rig.node_for(pods[1]) == nodes[1]
    again = rig.call(pods[1], nodes[1])
    await rig.settle()
    assert await again == ""


async def test_a_node_that_was_not_planned_is_refused() -> None:
    rig = BindRig(a_node("n1", gpu=1), a_node("n2", gpu=1))
    (pod,) = gang_of(1, 1)
    (node,) = rig.let_through(pod)
    other = "n2" if node == "n1" else "n1"
    assert await rig.call(pod, other) != ""
    assert rig.binder.posted == []


async def test_members_above_min_available_go_one_by_one_once_the_gang_runs() -> None:
    rig = BindRig(a_node("n1", gpu=3))
    pods = gang_of(3, 2)
    nodes = rig.let_through(*pods)
    for pod, node in zip(pods[:2], nodes, strict=False):
        rig.bind(pod, node)
    last = rig.call(pods[2], nodes[2])
    await rig.settle()
    assert await last == ""


async def test_an_event_says_once_that_the_gang_is_placed() -> None:
    rig = BindRig(a_node("n1", gpu=2))
    pods = gang_of(2, 2)
    nodes = rig.let_through(*pods)
    calls = [rig.call(pod, node) for pod, node in zip(pods, nodes, strict=True)]
    await rig.settle()
    await asyncio.gather(*calls)
    for pod, node in zip(pods, nodes, strict=True):
        rig.bind(pod, node)
        rig.later()
    (placed,) = rig.announcements
    assert (placed.reason, placed.kind) == ("GangPlaced", "Normal")
    assert "2 members bound together (min-available 2) on 1 node(s): n1" in placed.note


async def test_an_unknown_pod_is_refused() -> None:
    rig = BindRig(a_node("n1"))
    assert "not known" in await rig.call(a_pod("ghost"), "n1")


async def test_a_thousand_held_calls_are_let_through_together() -> None:
    rig = BindRig(*[a_node(f"n{i}", gpu=100, pods=1000) for i in range(10)])
    pods = gang_of(1000, 1000)
    nodes = rig.let_through(*pods)
    calls = [rig.call(pod, node) for pod, node in zip(pods, nodes, strict=True)]
    await rig.settle()
    assert [await call for call in calls] == [""] * 1000
