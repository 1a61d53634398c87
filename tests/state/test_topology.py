"""Gangs that require a domain of the network, through waiting, preemption, growth and changes of the nodes."""

import pytest
from msgspec import structs

from extender.decide.explain import OTHER_DOMAIN
from extender.model.claim import GangClaim, GangKey, JobKey, Terms
from extender.model.node import Node
from extender.model.pod import Pod
from extender.model.topology import LevelName
from tests.builders import NO_TERMS, a_pod
from tests.network import BLOCK, LEVELS, nodes_of
from tests.rig import PATIENCE_S, Rig

IN_A_BLOCK = Terms(required=(LevelName("block"),))


def a_gang(count: int, *, name: str = "g", needs: int = 0, terms: Terms = IN_A_BLOCK, priority: int = 0) -> list[Pod]:
    return [
        a_pod(
            f"{name}-{i}", gang=name, min_available=needs or count, terms=terms, priority=priority, created_at=100 + i
        )
        for i in range(count)
    ]


def rig_of(*nodes: Node) -> Rig:
    return Rig(*nodes, levels=LEVELS)


def block_of(name: str | None) -> str:
    return (name or "").partition("-")[0]


def planned(rig: Rig, members: list[Pod]) -> list[str]:
    """Return the block of each member that holds room."""
    slots = [rig.cluster.reservations.slot_of(pod.uid) for pod in members]
    return [block_of(slot.node) for slot in slots if slot]


def test_it_waits_for_room_in_one_block_and_is_told_so() -> None:
    rig = rig_of(*nodes_of({"a": [2, 2], "b": [2, 2]}))
    first, second = a_pod("other-0", node="a-0"), a_pod("other-1", node="b-0")
    rig.create(first, second)
    members = a_gang(4)
    rig.create(*members)
    rig.later()
    assert planned(rig, members) == []
    told = rig.text_for(members[0])
    assert told == rig.text_for(members[1])
    assert told.endswith('in the "block" domain that takes most of it; of 4 members that must be in one it takes 3')
    rig.delete(second)
    rig.later()
    assert planned(rig, members) == ["b"] * 4


def test_above_min_available_a_member_goes_where_the_others_run_or_nowhere() -> None:
    rig = rig_of(*nodes_of({"a": [2, 2], "b": [2, 2]}))
    members = a_gang(4, needs=2)[:3]
    rig.create(*members[:2])
    rig.later()
    homes = {block_of(rig.bind(pod, rig.node_for(pod)).node_name) for pod in members[:2]}
    assert homes == {"a"}
    rig.create(members[2])
    answer = rig.ask(members[2])
    assert set(answer.accepted) <= {"a-0", "a-1"}
    assert {answer.rejected["b-0"], answer.rejected["b-1"]} == {OTHER_DOMAIN}


def test_a_late_member_that_was_turned_away_is_planned_in_the_same_block() -> None:
    rig = rig_of(*nodes_of({"a": [2], "b": [2]}))
    members = a_gang(3, needs=2)
    rig.create(*members[:2])
    rig.later()
    bound = [rig.bind(pod, rig.node_for(pod)) for pod in members[:2]]
    rig.create(members[2])
    assert rig.ask(members[2], ["b-0"]).rejected == {"b-0": OTHER_DOMAIN}
    rig.later()
    assert planned(rig, members) == []
    rig.delete(bound[1])
    rig.later()
    assert planned(rig, [members[2]]) == ["a"]


def test_pods_are_preempted_in_one_block_and_no_more_than_needed() -> None:
    rig = rig_of(*nodes_of({"a": [2, 2], "b": [2, 2]}))
    low = [a_pod(f"low-{i}", node=f"{block}-{i % 2}") for i, block in enumerate(["a", "a", "a", "b", "b"])]
    rig.create(*low)
    members = a_gang(4, priority=10)
    rig.create(*members)
    rig.later()
    killed = {name for member in members for names in rig.preempt(member).values() for name in names}
    assert killed == {"low-3", "low-4"}


def test_room_is_kept_in_one_block_as_others_end() -> None:
    rig = rig_of(*nodes_of({"a": [2, 2], "b": [2, 2]}))
    others = [a_pod(f"s-{i}", node=f"{block}-{i % 2}") for i, block in enumerate("aaaabbbb")]
    rig.create(*others)
    members = a_gang(4)
    rig.create(*members)
    rig.later()
    rig.later(PATIENCE_S + 1)
    earmark = rig.cluster.earmarks.get(GangKey("default/g"))
    assert earmark is not None
    (block,) = {block_of(placement.node) for placement in earmark.placements}
    rig.delete(*[pod for pod in others if block_of(pod.node_name) == block])
    rig.later()
    assert planned(rig, members) == [block] * 4


@pytest.mark.parametrize("member", [0, 4])
def test_room_that_was_kept_elsewhere_is_given_up_once_a_member_runs(member: int) -> None:
    """Somebody else binds a member: the others go there, whatever room has become free where they were to go."""
    for frees_what_was_kept in (False, True):
        rig = rig_of(*nodes_of({"a": [2, 2], "b": [2, 2]}))
        others = [a_pod(f"s-{i}", node=f"{block}-{i % 2}") for i, block in enumerate("aaaabbbb")]
        rig.create(*others)
        members = a_gang(5, needs=4)
        rig.create(*members)
        rig.later(PATIENCE_S + 1)
        rig.later(PATIENCE_S + 1)
        earmark = rig.cluster.earmarks.get(GangKey("default/g"))
        assert earmark is not None
        kept = {block_of(placement.node) for placement in earmark.placements}
        elsewhere = next(pod for pod in others if block_of(pod.node_name) not in kept)
        rig.delete(elsewhere)
        rig.bind(members[member], elsewhere.node_name)
        if frees_what_was_kept:
            rig.delete(*[pod for pod in others if block_of(pod.node_name) in kept])
        rig.later()
        assert planned(rig, members) == []
        earmark = rig.cluster.earmarks.get(GangKey("default/g"))
        assert earmark is None or {block_of(each.node) for each in earmark.placements} == {
            block_of(elsewhere.node_name)
        }


def test_gangs_that_are_bound_together_are_in_one_block() -> None:
    together = Terms(required=(LevelName("block"),), groups=(GangKey("default/x"), GangKey("default/y")))
    rig = rig_of(*nodes_of({"a": [2], "b": [2, 2, 2], "c": [4]}))
    x, y = a_gang(2, name="x", terms=together), a_gang(3, name="y", terms=together)
    rig.create(*x, *y)
    rig.later()
    assert planned(rig, [*x, *y]) == ["b"] * 5


def test_gangs_that_are_bound_together_wait_when_no_block_takes_them_all() -> None:
    together = Terms(required=(LevelName("block"),), groups=(GangKey("default/x"), GangKey("default/y")))
    rig = rig_of(*nodes_of({"a": [2, 2], "b": [2, 2]}))
    x, y = a_gang(2, name="x", terms=together), a_gang(3, name="y", terms=together)
    rig.create(*x, *y)
    rig.later()
    assert planned(rig, [*x, *y]) == []


def test_gangs_that_are_bound_together_preempt_in_one_block() -> None:
    together = Terms(required=(LevelName("block"),), groups=(GangKey("default/x"), GangKey("default/y")))
    rig = rig_of(*nodes_of({"a": [2, 2], "b": [2, 2, 2]}))
    rig.create(*[a_pod(f"low-{i}", node=f"b-{i}") for i in range(2)])
    x, y = a_gang(2, name="x", terms=together, priority=9), a_gang(3, name="y", terms=together, priority=9)
    rig.create(*x, *y)
    rig.later()
    killed = {name for member in (*x, *y) for names in rig.preempt(member).values() for name in names}
    assert len(killed) == 1
    earmark = rig.cluster.earmarks.get(GangKey("default/x"))
    assert earmark is not None
    assert {block_of(placement.node) for placement in earmark.placements} == {"b"}


def test_the_roles_of_a_job_that_are_gangs_of_their_own_are_in_one_block() -> None:
    rig = rig_of(*nodes_of({"a": [2], "b": [1, 2]}))
    job = JobKey("default/torchjob/j")

    def role(name: str, count: int) -> list[Pod]:
        claim = GangClaim(GangKey(f"{job}/{name}"), count, IN_A_BLOCK, job=job, job_role=name, derived=True)
        return [structs.replace(a_pod(f"{name}-{i}", role=name, created_at=i), gang=claim) for i in range(count)]

    master, workers = role("master", 1), role("worker", 2)
    rig.create(*master)
    rig.later()
    (block,) = planned(rig, master)
    rig.bind(master[0], rig.slot(master[0]).node)
    rig.create(a_pod("other", node=f"{block}-0"), *workers)
    rig.later()
    assert set(planned(rig, workers)) <= {block}


def test_a_node_that_moves_to_another_block_loses_what_was_only_planned_there() -> None:
    a0, a1, *others = nodes_of({"a": [2, 2], "b": [2, 2, 1]})
    rig = rig_of(a0, a1, *others)
    members = a_gang(4)
    rig.create(*members)
    rig.later()
    assert planned(rig, members) == ["a"] * 4
    rig.cluster.upsert_node(structs.replace(a1, labels={BLOCK.labels[0]: "c"}))
    rig.later()
    assert planned(rig, members) == ["b"] * 4


def test_a_gang_that_no_block_takes_is_told_that_it_is_too_large() -> None:
    rig = rig_of(*nodes_of({"a": [2, 2], "b": [2, 2]}))
    rig.create(*a_gang(5))
    rig.later()
    (note,) = [each.note for each in rig.announcements if each.reason == "GangTooLarge"]
    assert note.startswith('Gang "default/g" is larger than any "block" domain: even with nothing else on the nodes')


def test_a_level_that_nobody_knows_is_passed_over_with_an_event() -> None:
    rig = rig_of(*nodes_of({"a": [2], "b": [2]}))
    members = a_gang(4, terms=Terms(required=(LevelName("RackLayer", "name"),)))
    rig.create(*members)
    rig.later()
    assert sorted(planned(rig, members)) == ["a", "a", "b", "b"]
    (note,) = [each.note for each in rig.announcements if each.reason == "GangMisdeclared"]
    assert "'RackLayer' and is ignored: it must be one of topology.levels (block, spine)" in note


def test_without_levels_everything_is_as_before() -> None:
    rig = Rig(*nodes_of({"a": [2], "b": [2]}))
    members = a_gang(4, terms=NO_TERMS)
    rig.create(*members)
    rig.later()
    assert len(planned(rig, members)) == 4
