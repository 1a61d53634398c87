"""The bind barrier: all members go on together, or none is posted."""

import asyncio

import pytest
from msgspec import structs

from extender.effects.binding import Binding, BindOutcome
from extender.model.claim import GangClaim, GangKey, MatchPolicy, Terms
from extender.model.pod import Pod
from extender.state.reservations import Stage
from tests.bind_rig import BindRig
from tests.builders import a_node, a_pod
from tests.rig import BINDING_S, GATHERING_S

MATCH_POLICIES: tuple[MatchPolicy, ...] = ("only-waiting", "waiting-and-running", "once-satisfied")


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
    assert "2 of its members are bound (min-available 2) on 1 node(s): n1" in placed.note


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


class SlowBindings:
    """Stands in for the binder: posts hang until released."""

    def __init__(self) -> None:
        self.release = asyncio.Event()
        self.outcome = BindOutcome("bound")

    async def bind(self, binding: Binding, *, deadline_s: float) -> BindOutcome:
        assert binding.node
        assert deadline_s
        await self.release.wait()
        return self.outcome


async def test_room_planned_while_siblings_are_being_posted_has_a_deadline_of_its_own() -> None:
    rig = BindRig(a_node("n1", gpu=3))
    rig.post_with(SlowBindings())
    pods = gang_of(3, 2)
    nodes = rig.let_through(*pods)
    rig.later(BINDING_S - 1)
    calls = [rig.call(pod, node) for pod, node in zip(pods[:2], nodes, strict=False)]
    await rig.settle()
    assert rig.slot(pods[0]).stage is Stage.BINDING
    rig.later(1)
    for call in calls:
        call.cancel()
    deadline_s = rig.planner.next_deadline_s()
    assert deadline_s is None or deadline_s > rig.now_s, "Cycle.run would never yield to the event loop again"


async def test_an_annotation_edited_while_posting_does_not_free_the_room_of_a_pod_that_is_being_bound() -> None:
    rig = BindRig(a_node("n1", gpu=2))
    rig.post_with(SlowBindings())
    pods = gang_of(2, 2)
    nodes = rig.let_through(*pods)
    calls = [rig.call(pod, node) for pod, node in zip(pods, nodes, strict=True)]
    await rig.settle()
    assert rig.slot(pods[0]).stage is Stage.BINDING
    rig.create(structs.replace(pods[0], gang=None))
    rival = a_pod("rival", gang="r", min_available=1, created_at=9)
    rig.create(rival)
    room = rig.node_for(rival)
    for call in calls:
        call.cancel()
    assert room is None


async def test_a_member_that_only_changes_min_available_keeps_its_place_at_the_barrier() -> None:
    rig = BindRig(a_node("n1", gpu=3))
    pods = gang_of(3, 3)
    nodes = rig.let_through(*pods)
    calls = [rig.call(pod, node) for pod, node in zip(pods[:2], nodes, strict=False)]
    await rig.settle()
    for pod in pods:  # the owner lowers the job's min-available: the two who are there are enough
        rig.create(structs.replace(pod, gang=GangClaim(GangKey("default/g"), 2)))
    await rig.settle()
    done = [call.done() and call.result() for call in calls]
    for call in calls:
        call.cancel()
    assert done == ["", ""]


async def test_a_replacement_joins_a_gang_of_which_a_member_has_succeeded() -> None:
    rig = BindRig(a_node("n1", gpu=4))
    pods = gang_of(4, 4)
    rig.create(*pods)
    running = [rig.bind(pod, rig.node_for(pod)) for pod in pods]
    rig.create(structs.replace(running[0], finished=True, succeeded=True))
    rig.delete(running[1])
    rig.later()
    again = a_pod("w1b", gang="g", min_available=4, created_at=9)
    rig.create(again)
    node = rig.node_for(again)
    call = rig.call(again, node or "n1")
    for _ in range(4):
        await rig.settle()
        rig.now_s += GATHERING_S
    await rig.settle()
    assert (await call, rig.binder.posted) == ("", ["w1b"])


async def test_a_member_re_created_late_has_the_whole_gathering_time() -> None:
    rig = BindRig(a_node("n1", gpu=4))
    pods = gang_of(4, 4)
    nodes = rig.let_through(*pods)
    calls = [rig.call(pod, node) for pod, node in zip(pods[:3], nodes, strict=False)]
    await rig.settle()
    rig.later(GATHERING_S + 5)
    rig.delete(pods[3])
    await rig.settle()
    told = [a.note for a in rig.announcements if a.reason == "GangMembersMissing"]
    ended = [call.done() for call in calls]
    for call in calls:
        call.cancel()
    assert not told, f"untrue, it was 0 s ago: {told}"
    assert not any(ended)


async def test_a_call_is_not_held_for_longer_because_a_siblings_post_failed() -> None:
    """90 s is the bind entry's httpTimeout; posting may take 17 s after the barrier."""
    rig = BindRig(a_node("n1", gpu=4))
    pods = gang_of(4, 4)
    nodes = rig.let_through(*pods)
    slow = {"w2": SlowBindings(), "w3": SlowBindings()}
    for one in slow.values():
        one.outcome = BindOutcome("failed", "no answer")

    class Mixed:
        failing = True

        async def bind(self, binding: Binding, *, deadline_s: float) -> BindOutcome:
            if binding.name == "w1" and self.failing:
                return BindOutcome("failed", "no")
            if binding.name in slow:
                return await slow[binding.name].bind(binding, deadline_s=deadline_s)
            return BindOutcome("bound")

    rig.post_with(Mixed())
    calls = [rig.call(pod, node) for pod, node in zip(pods, nodes, strict=True)]
    await rig.settle()
    rig.bind(pods[0], nodes[0])
    slow["w2"].release.set()
    await rig.settle()
    rig.now_s += 1
    assert rig.node_for(pods[1]) == "n1"
    started_s = rig.now_s
    held = rig.call(pods[1], "n1")
    await rig.settle()
    assert not held.done()
    rig.now_s += 14
    slow["w3"].release.set()
    await rig.settle()
    while not held.done() and rig.now_s < started_s + 200:
        rig.now_s += 1
        await rig.settle()
    await asyncio.gather(*calls, return_exceptions=True)
    held.cancel()
    assert rig.now_s - started_s + 17 < 90


async def test_the_event_of_a_gang_made_whole_again_does_not_say_that_all_were_bound_together() -> None:
    rig = BindRig(a_node("n1", gpu=4))
    pods = gang_of(4, 4)
    rig.create(*[structs.replace(pod, node_name="n1") for pod in pods[:3]])
    (node,) = rig.let_through(pods[3])
    call = rig.call(pods[3], node)
    await rig.settle()
    await call
    rig.bind(pods[3], node)
    rig.later()
    (placed,) = rig.announcements
    assert "4 members bound together" not in placed.note


async def test_gangs_that_are_bound_together_are_let_through_together() -> None:
    rig = BindRig(a_node("n1", gpu=4))
    groups = (GangKey("default/a"), GangKey("default/b"))
    pods = [
        structs.replace(a_pod(f"{key[-1]}{i}"), gang=GangClaim(key, 2, terms=Terms(groups=groups)))
        for key in groups
        for i in range(2)
    ]
    nodes = rig.let_through(*pods)
    calls = [rig.call(pod, node) for pod, node in zip(pods[:3], nodes, strict=False)]
    await rig.settle()
    assert rig.binder.posted == [], "gang a is complete, but b is not"
    calls.append(rig.call(pods[3], nodes[3]))
    await rig.settle()
    assert [await call for call in calls] == [""] * 4


def two_gangs(groups_of_b: tuple[GangKey, ...]) -> tuple[Pod, Pod]:
    """Return the members of gangs a, which names b, and b, which names these."""
    keys = (GangKey("default/a"), GangKey("default/b"))
    claims = (GangClaim(key, 1, Terms(groups=names)) for key, names in zip(keys, (keys, groups_of_b), strict=True))
    first, second = (structs.replace(a_pod(claim.key[-1]), gang=claim) for claim in claims)
    return first, second


async def test_a_gang_that_names_another_one_which_does_not_name_it_is_let_through_when_that_one_is() -> None:
    rig = BindRig(a_node("n1", gpu=2))
    first, second = two_gangs(())
    nodes = rig.let_through(first, second)
    early = rig.call(first, nodes[0])
    await rig.settle()
    assert rig.binder.posted == []
    late = rig.call(second, nodes[1])
    await rig.settle()
    assert [call.done() and call.result() for call in (early, late)] == ["", ""]


@pytest.mark.parametrize("groups_of_b", [(), (GangKey("default/a"), GangKey("default/b"))])
async def test_a_held_call_goes_on_when_the_other_gang_is_bound_without_one(groups_of_b: tuple[GangKey, ...]) -> None:
    rig = BindRig(a_node("n1", gpu=2))
    first, second = two_gangs(groups_of_b)
    nodes = rig.let_through(first, second)
    early = rig.call(first, nodes[0])
    await rig.settle()
    rig.bind(second, nodes[1])
    await rig.settle()
    assert early.done()
    assert early.result() == ""


async def test_a_replacement_goes_alone_once_the_gang_ran_and_waits_where_the_policy_says_so() -> None:
    results = {}
    for policy in MATCH_POLICIES:
        rig = BindRig(a_node("n1", gpu=4))
        claim = GangClaim(GangKey("default/g"), 3, terms=Terms(match_policy=policy))
        pods = [structs.replace(pod, gang=claim) for pod in gang_of(3, 3)]
        running = [rig.bind(pod, "n1") for pod in pods]
        rig.later()
        rig.delete(*running[:2])
        replacement = structs.replace(a_pod("new", created_at=9), gang=claim)
        rig.create(replacement)
        call = rig.call(replacement, rig.node_for(replacement) or "n1")
        await rig.settle()
        results[policy] = call.done() and call.result() == ""
        call.cancel()
    assert results == {"only-waiting": False, "waiting-and-running": False, "once-satisfied": True}
