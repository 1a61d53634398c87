"""Which gangs get room, whatever happens to their members, their nodes and their time."""

from typing import Any

import pytest
from msgspec import structs

from extender.decide.gang import admit_gang
from extender.model.claim import GangClaim, GangKey, Terms
from extender.model.gang import Gang
from extender.model.pod import Pod
from extender.model.pod_group import PodGroup
from extender.model.verdict import Admission
from extender.state.reservations import Stage
from extender.state.standings import TEXT_HOLDS_S
from tests.builders import a_node, a_pod, a_shape
from tests.rig import BINDING_S, Rig


def workers(gang: str, count: int, first: int = 0, **options: Any) -> list[Pod]:
    return [a_pod(f"{gang}-worker-{i}", gang=gang, created_at=first + i, **options) for i in range(count)]


def test_a_gang_that_never_comes_for_its_room_does_not_keep_it_from_others_for_ever() -> None:
    """kube-scheduler finds no node at all for it (a claim that does not exist): filter is never called."""
    rig = Rig(a_node("n1", gpu=4))
    stuck = workers("stuck", 4)
    rig.create(*stuck)
    rig.later()
    for pod in stuck:
        rig.turn_away(pod)
    rig.later()
    other = workers("other", 4, first=10)
    rig.create(*other)
    for _ in range(20):
        for pod in other:
            if rig.node_for(pod):
                return
        rig.later(BINDING_S / 2)
    pytest.fail("ten minutes of room that nobody comes for")


@pytest.mark.parametrize("odd", [{"gated": True}, {"scheduler_name": "other"}])
def test_room_for_members_to_come_is_not_given_to_a_pod_that_does_not_count(odd: dict[str, Any]) -> None:
    rig = Rig(a_node("n1", gpu=4))
    pods = workers("g", 4)
    rig.create(pods[0])
    assert rig.node_for(pods[0]) == "n1"
    rig.create(a_pod("odd", gang="g", created_at=9, **odd))
    rig.create(*pods[1:])
    assert [rig.node_for(pod) for pod in pods] == ["n1"] * 4


def test_room_of_a_member_that_changes_its_gang_is_offered_to_those_who_wait() -> None:
    rig = Rig(a_node("n1", gpu=2))
    mine = workers("a", 2, min_available=2)
    rig.create(*mine)
    rig.later()
    waiting = workers("b", 2, first=5, min_available=2)
    rig.create(*waiting)
    for pod in waiting:
        rig.ask(pod)
        rig.turn_away(pod)
    rig.later()
    for pod in mine:  # their annotations are taken away: single pods now, not asked about again
        rig.create(structs.replace(pod, gang=None))
    rig.later(1)
    assert rig.nominations, "room for both, and nobody is told"


def test_a_gang_that_loses_a_member_to_another_gang_is_planned_again_at_once() -> None:
    rig = Rig(a_node("n1", gpu=4))
    mine = workers("a", 4)
    rig.create(*mine)
    rig.later()
    rig.create(structs.replace(mine[3], gang=GangClaim(GangKey("default/b"), 1), shape=a_shape(gpu=3)))
    rig.later()
    held = rig.cluster.reservations.get(GangKey("default/a"))
    assert held is None or len(held.slots) == 4, "half a gang's room is held until the deadline"


def test_room_left_behind_by_a_refused_plan_is_offered_to_those_who_wait() -> None:
    rig = Rig(a_node("n1", gpu=1, labels={"only": "this"}), a_node("n2", gpu=1))
    mine = a_pod("mine", gang="a", min_available=1, created_at=1)
    rig.create(mine)
    rig.later()
    assert rig.slot(mine).node == "n1"
    theirs = a_pod("theirs", gang="b", min_available=1, created_at=2, shape=a_shape(node_selector={"only": "this"}))
    rig.create(theirs)
    rig.ask(theirs)
    rig.turn_away(theirs)
    rig.later()
    assert rig.node_for(mine, ["n2"]) == "n2", "kube-scheduler does not take it on n1"
    rig.later(1)
    assert [n.name for n in rig.nominations] == ["theirs"]


def test_a_gang_that_needs_one_less_because_a_member_was_bound_by_others_is_planned() -> None:
    rig = Rig(a_node("n1", gpu=1), a_node("n2", gpu=0))
    mine = a_pod("mine", gang="g", min_available=2, created_at=1)
    foreign = a_pod("foreign", gang="g", min_available=2, created_at=2, gpu=0, scheduler_name="other")
    rig.create(mine, foreign)
    rig.ask(mine)
    rig.turn_away(mine)
    rig.later()
    assert rig.reserved() == 0
    rig.bind(foreign, "n2")
    rig.later(1)
    assert rig.reserved() == 1


def test_a_member_is_not_held_off_because_kube_scheduler_was_a_moment_behind() -> None:
    """The watch saw the room first; the call under way was made on the nodes of a moment ago."""
    rig = Rig(a_node("n1", gpu=2), a_node("n2", gpu=2))
    old = a_pod("old", gpu=2, node="n1")
    pods = workers("g", 4)
    rig.create(old, *pods)
    for pod in pods:
        assert rig.node_for(pod, ["n2"]) is None
        rig.turn_away(pod)
    rig.later(1)
    rig.delete(old)
    rig.ask(pods[0], ["n2"])  # before the cycle ran, and before kube-scheduler knew
    for _ in range(5):
        rig.later(1)
    assert rig.reserved() == 4


def test_a_gang_whose_last_pod_changed_its_claim_leaves_nothing_behind() -> None:
    rig = Rig(a_node("n1", gpu=0))
    pod = a_pod("w", gang="g", min_available=1)
    rig.create(pod)
    rig.ask(pod)
    rig.create(structs.replace(pod, gang=GangClaim(GangKey("default/h"), 1)))
    rig.later()
    assert rig.planner.standings.get(GangKey("default/g")) is None


def test_freed_room_costs_no_look_at_gangs_whose_pods_are_all_finished(monkeypatch: pytest.MonkeyPatch) -> None:
    rig = Rig(a_node("n1", gpu=1))
    rig.create(*[a_pod(f"p{i}", gang=f"g{i}", min_available=1, node="n1", finished=True) for i in range(20)])
    rig.later()
    looked_at: list[GangKey] = []
    get = rig.cluster.gangs.get

    def noted(key: GangKey) -> Gang | None:
        looked_at.append(key)
        return get(key)

    monkeypatch.setattr(rig.cluster.gangs, "get", noted)
    rig.cluster.changes.free_room()
    rig.planner.plan_gangs(rig.now_s)
    assert looked_at == []


def test_a_pod_that_joins_a_finished_gang_is_planned_and_so_is_a_gang_that_is_declared_late() -> None:
    rig = Rig(a_node("n1", gpu=2))
    undeclared = GangClaim(GangKey("default/late"), pod_group="scheduling.volcano.sh")
    rig.create(
        a_pod("done", gang="again", min_available=1, node="n1", finished=True),
        structs.replace(a_pod("early"), gang=undeclared),
    )
    rig.later()
    assert rig.reserved() == 0
    rig.create(a_pod("new", gang="again", min_available=1, created_at=5))
    rig.cluster.upsert_pod_group(PodGroup("scheduling.volcano.sh", GangKey("default/late"), min_available=1))
    rig.later()
    assert rig.reserved() == 2


def test_room_of_a_post_that_fails_once_its_gang_is_declared_no_more_goes_to_others() -> None:
    rig = Rig(a_node("n1", gpu=1))
    key, api = GangKey("default/g"), "scheduling.volcano.sh"
    rig.cluster.upsert_pod_group(PodGroup(api, key, min_available=1))
    pod = structs.replace(a_pod("w"), gang=GangClaim(key, pod_group=api))
    rig.create(pod)
    rig.later()
    rig.cluster.reservations.advance(key, rig.slot(pod), Stage.BINDING)
    rig.cluster.remove_pod_group(api, key)
    rig.later()
    assert rig.reserved() == 1, "it may be bound there"
    rig.cluster.reservations.fall_back(pod.uid, "n1", rig.now_s)
    rig.cluster.changes.free_room()
    rig.later()
    assert rig.reserved() == 0


def bound_together(gang: str, other: str, count: int, **options: Any) -> list[Pod]:
    groups = tuple(sorted((GangKey(f"default/{gang}"), GangKey(f"default/{other}"))))
    claim = GangClaim(GangKey(f"default/{gang}"), count, terms=Terms(groups=groups))
    return [structs.replace(pod, gang=claim) for pod in workers(gang, count, min_available=count, **options)]


def test_of_gangs_that_are_bound_together_neither_has_room_unless_both_have() -> None:
    rig = Rig(a_node("n1", gpu=3))
    mine, theirs = bound_together("a", "b", 2), bound_together("b", "a", 2)
    rig.create(*mine, *theirs)
    assert "waits for gang" in rig.text_for(mine[0])
    assert "Insufficient nvidia.com/gpu" in rig.text_for(theirs[1])
    assert rig.reserved() == 0
    rig.cluster.upsert_node(a_node("n2", gpu=1))
    rig.later()
    assert rig.reserved() == 4


def test_a_gang_whose_partner_is_not_there_waits_for_it() -> None:
    rig = Rig(a_node("n1", gpu=4))
    mine, theirs = bound_together("a", "b", 2), bound_together("b", "a", 2)
    rig.create(*mine)
    assert 'waits for gang "default/b"' in rig.text_for(mine[0])
    rig.create(*theirs)
    rig.later()
    assert rig.reserved() == 4


def test_a_gang_of_higher_priority_is_planned_first_though_it_is_younger() -> None:
    rig = Rig(a_node("n1", gpu=2))
    old = workers("old", 2, min_available=2)
    urgent = workers("urgent", 2, first=10, min_available=2, priority=1000)
    rig.create(*old, *urgent)
    rig.later()
    assert [held.key for held in rig.cluster.reservations] == ["default/urgent"]


def test_a_podgroups_minimum_of_a_role_holds_the_gang_until_that_role_is_there() -> None:
    rig = Rig(a_node("n1", gpu=4))
    rig.cluster.upsert_pod_group(
        PodGroup("scheduling.volcano.sh", GangKey("default/g"), min_available=2, role_minimums=(("ps", 1),))
    )
    claim = GangClaim(GangKey("default/g"), pod_group="scheduling.volcano.sh")
    mine = [structs.replace(pod, gang=claim) for pod in workers("g", 3)]
    rig.create(*mine)
    assert 'the minimum 1 of role "ps"' in rig.text_for(mine[0])
    ps = structs.replace(a_pod("ps", role="ps"), gang=claim)
    rig.create(ps)
    assert rig.node_for(ps) == "n1"


def counted_plans(monkeypatch: pytest.MonkeyPatch) -> list[GangKey]:
    """Return a list of the gangs for which room is looked for from now on."""
    looked_for: list[GangKey] = []

    def counted(gang: Gang, *args: Any, **options: Any) -> Admission:
        looked_for.append(gang.key)
        return admit_gang(gang, *args, **options)

    monkeypatch.setattr("extender.state.planning.admit_gang", counted)
    return looked_for


def test_a_gang_without_room_whose_members_are_asked_for_in_turn_is_planned_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """After each of them kube-scheduler notes on it that it waits, and the watch says so before the next one."""
    rig = Rig(a_node("n1", gpu=2))
    pods = workers("g", 20, min_available=20)
    rig.create(*pods)
    rig.text_for(pods[0])
    plans = counted_plans(monkeypatch)
    for pod in pods:
        assert rig.node_for(pod) is None
        rig.turn_away(pod)
    assert plans == []


def test_members_that_are_asked_for_in_turn_after_a_change_have_their_gang_planned_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Also where what they are told may not change so soon, though its numbers would; later it does."""
    rig = Rig(a_node("n1", gpu=2), a_node("n2", gpu=2))
    pods = workers("g", 20, min_available=20)
    rig.create(*pods)
    before = rig.text_for(pods[0])
    rig.later(1)
    rig.cluster.upsert_node(a_node("n3", gpu=2))
    plans = counted_plans(monkeypatch)
    assert {rig.text_for(pod) for pod in pods} == {before}
    assert len(plans) == 1
    rig.later(TEXT_HOLDS_S)
    assert {rig.text_for(pod) for pod in pods} != {before}
    assert len(plans) == 2


def test_a_gang_without_room_is_planned_anew_when_a_member_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    rig = Rig(a_node("n1", gpu=2))
    pods = workers("g", 3, min_available=3)
    rig.create(*pods)
    rig.text_for(pods[0])
    plans = counted_plans(monkeypatch)
    rig.create(structs.replace(pods[0], labels={"app": "x"}))
    rig.text_for(pods[1])
    assert plans == [GangKey("default/g")]


def test_new_numbers_are_told_after_a_while_and_a_new_cause_at_once() -> None:
    """Each new text costs two writes for each member that waits."""
    rig = Rig(a_node("n1", gpu=1), a_node("n2", gpu=1))
    pods = workers("g", 4, min_available=4)
    rig.create(*pods)
    before = rig.text_for(pods[0])
    rig.cluster.upsert_node(a_node("n3", gpu=1))
    rig.later(TEXT_HOLDS_S / 2)
    assert rig.text_for(pods[0]) == before
    rig.cluster.upsert_node(a_node("n4", gpu=9, unschedulable=True))
    rig.later()
    assert rig.text_for(pods[0]) != before
