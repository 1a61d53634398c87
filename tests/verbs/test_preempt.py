"""Preemption: for a gang nobody dies unless the whole gang can run then; a single pod is steered past running gangs."""

from msgspec import structs

from extender.model.claim import GangKey, Terms
from extender.model.disruption_budget import DisruptionBudget
from extender.model.pod import HostPort, Pod, Requirement
from extender.state.past import LONGEST_REFUSAL_S, REFUSAL_HOLDS_S, REFUSED_FOR_GOOD
from tests.builders import a_node, a_pod, a_shape
from tests.rig import Rig


def a_gang(count: int, *, gpu: int = 1, priority: int = 10, name: str = "g") -> list[Pod]:
    return [
        a_pod(f"{name}{i}", gang=name, min_available=count, gpu=gpu, priority=priority, created_at=100 + i)
        for i in range(count)
    ]


def granted(rig: Rig, members: list[Pod]) -> dict[str, set[str]]:
    """Return whom the members together may have killed, by node, each asked once."""
    killed: dict[str, set[str]] = {}
    for member in members:
        for node, names in rig.preempt(member).items():
            assert not killed.get(node, set()) & names, "two members are to have the same pod killed"
            killed.setdefault(node, set()).update(names)
    return killed


def test_each_member_gets_its_part_of_the_fewest_victims() -> None:
    rig = Rig(a_node("n1", gpu=2), a_node("n2", gpu=2), a_node("n3", gpu=2))
    rig.create(*[a_pod(f"small{i}", node="n1") for i in range(2)])
    rig.create(a_pod("big2", node="n2", gpu=2), a_pod("big3", node="n3", gpu=2))
    members = a_gang(2, gpu=2)
    rig.create(*members)
    parts = [rig.preempt(member) for member in members]
    assert sorted(node for part in parts for node in part) == ["n2", "n3"]
    assert granted(rig, members) == {"n2": {"big2"}, "n3": {"big3"}}


def test_the_lowest_priorities_die_even_if_they_are_more() -> None:
    rig = Rig(a_node("n1", gpu=2), a_node("n2", gpu=2))
    rig.create(a_pod("mid", node="n1", gpu=2, priority=5))
    rig.create(*[a_pod(f"low{i}", node="n2", priority=1) for i in range(2)])
    members = a_gang(2)
    rig.create(*members)
    assert granted(rig, members) == {"n2": {"low0", "low1"}}


def test_free_room_is_used_before_anybody_dies() -> None:
    rig = Rig(a_node("n1", gpu=4), a_node("n2", gpu=2))
    rig.create(a_pod("low1", node="n1", gpu=4), a_pod("low2", node="n2", gpu=1))
    members = a_gang(2)
    rig.create(*members)
    assert granted(rig, members) == {"n2": {"low2"}}


def test_nobody_dies_for_a_gang_that_would_not_be_whole() -> None:
    rig = Rig(a_node("n1"), a_node("n2"))
    rig.create(a_pod("low1", node="n1", gpu=2), a_pod("high", node="n2", gpu=1, priority=10))
    members = a_gang(4)
    rig.create(*members)
    assert granted(rig, members) == {}


def test_nobody_dies_for_a_gang_whose_members_do_not_all_exist() -> None:
    rig = Rig(a_node("n1"))
    rig.create(a_pod("low", node="n1", gpu=2))
    members = a_gang(2)
    rig.create(members[0])
    assert granted(rig, members[:1]) == {}
    rig.create(members[1])
    assert granted(rig, members) == {"n1": {"low"}}


def test_nobody_dies_for_a_gang_that_has_room() -> None:
    rig = Rig(a_node("n1"), a_node("n2"))
    low = a_pod("low", node="n2", gpu=2)
    members = a_gang(2)
    rig.create(low, *members)
    rig.later()
    assert rig.reserved() == 2
    assert rig.preempt(members[0], {"n2": [low]}) == {}


def test_nobody_dies_for_a_gang_that_has_room_once_those_are_gone_that_are_going() -> None:
    rig = Rig(a_node("n1"), a_node("n2"))
    going, staying = a_pod("going", node="n1", gpu=2), a_pod("staying", node="n2", gpu=2)
    members = a_gang(2)
    rig.create(going, staying)
    rig.terminate(going)
    rig.create(*members)
    assert granted(rig, members) == {}


def test_nobody_of_the_same_priority_dies_nor_for_members_that_preempt_never() -> None:
    rig = Rig(a_node("n1"))
    rig.create(a_pod("equal", node="n1", gpu=2, priority=10))
    members = a_gang(2)
    rig.create(*members)
    assert granted(rig, members) == {}
    polite = [structs.replace(member, preempts=False) for member in a_gang(2, priority=20, name="polite")]
    rig.create(*polite)
    assert granted(rig, polite) == {}


def test_once_killed_nobody_further_dies_and_the_gang_goes_where_it_was_planned() -> None:
    rig = Rig(a_node("n1"), a_node("n2"), a_node("n3"))
    lows = [a_pod(f"low{i}", node=f"n{i}", gpu=2) for i in (1, 2, 3)]
    members = a_gang(4)
    rig.create(*lows, *members)
    killed = granted(rig, members)
    assert len(killed) == 2
    rig.terminate(*[low for low in lows if low.node_name in killed])
    assert granted(rig, members) == {}
    assert "preempted for it" in rig.text_for(members[0])
    rig.delete(*[low for low in lows if low.node_name in killed])
    rig.later()
    assert {rig.slot(member).node for member in members} == set(killed)


def test_members_that_fit_already_go_ahead_and_wait_at_bind_so_that_the_others_find_no_room() -> None:
    rig = Rig(a_node("n1", gpu=2), a_node("n2", gpu=1))
    lows = [a_pod("low1", node="n1"), a_pod("low2", node="n2")]
    members = a_gang(3)
    rig.create(*lows, *members)
    rig.later()
    nodes = [rig.node_for(member, ["n1"]) for member in members]
    assert sorted(map(str, nodes)) == ["None", "None", "n1"]
    assert granted(rig, members) == {"n1": {"low1"}, "n2": {"low2"}}
    rig.terminate(*lows)
    rig.delete(*lows)
    rig.later()
    assert rig.reserved() == 3


def test_a_member_that_is_to_preempt_is_rejected_only_where_it_was_offered_a_node() -> None:
    rig = Rig(a_node("n1", gpu=2), a_node("n2", gpu=1))
    rig.create(a_pod("low1", node="n1"), a_pod("low2", node="n2"))
    members = a_gang(3)
    rig.create(*members)
    rig.later()
    killer = next(member for member in members if rig.preempt(member))
    assert list(rig.ask(killer, ["n1"]).rejected) == ["n1"]


def test_a_member_that_was_turned_away_before_its_plan_was_made_is_woken_to_preempt() -> None:
    rig = Rig(a_node("n1", gpu=2), a_node("n2", gpu=1))
    low1, low2 = a_pod("low1", node="n1"), a_pod("low2", node="n2")
    members = a_gang(3)
    rig.create(low1, low2, *members[:2])
    rig.later()
    for member in members[:2]:
        rig.text_for(member)
        rig.turn_away(member)
    rig.create(members[2])
    rig.later()
    sleepers = {member.uid for member in members[:2] if rig.cluster.victims_of(member)}
    assert sleepers <= {nomination.uid for nomination in rig.nominations}
    assert sleepers


def test_what_the_victims_leave_is_kept_for_the_gang() -> None:
    rig = Rig(a_node("n1"), a_node("n2"))
    lows = [a_pod(f"low{i}", node=f"n{i}", gpu=2) for i in (1, 2)]
    members = a_gang(2, gpu=2)
    rig.create(*lows, *members)
    granted(rig, members)
    rig.terminate(*lows)
    rig.delete(lows[0])
    passer_by = a_pod("single", created_at=500)
    rig.create(passer_by)
    assert "kept for a gang" in rig.text_for(passer_by)
    rig.delete(lows[1])
    rig.later()
    assert rig.reserved() == 2


def test_when_a_planned_node_is_cordoned_and_nothing_else_fits_nobody_further_dies() -> None:
    rig = Rig(a_node("n1"), a_node("n2"))
    lows = [a_pod(f"low{i}", node=f"n{i}", gpu=2) for i in (1, 2)]
    members = a_gang(2, gpu=2)
    rig.create(*lows, *members)
    ((node, names),) = rig.preempt(members[0]).items()
    rig.terminate(*[low for low in lows if low.name in names])
    other = "n2" if node == "n1" else "n1"
    rig.cluster.upsert_node(a_node(other, unschedulable=True))
    assert granted(rig, members) == {}


def test_a_budget_is_kept_where_others_can_die() -> None:
    rig = Rig(a_node("n1"), a_node("n2"))
    selector = (Requirement("app", "In", ("db",)),)
    rig.cluster.budgets.upsert(DisruptionBudget("default", "db", selector, disruptions_allowed=0))
    rig.create(a_pod("protected", node="n1", gpu=2, labels={"app": "db"}), a_pod("other", node="n2", gpu=2, priority=5))
    members = a_gang(2)
    rig.create(*members)
    assert granted(rig, members) == {"n2": {"other"}}


def test_another_running_gang_is_spared_where_others_can_die() -> None:
    rig = Rig(a_node("n1"), a_node("n2"))
    rig.create(*[a_pod(f"run{i}", gang="run", min_available=2, node="n1") for i in range(2)])
    rig.create(*[a_pod(f"single{i}", node="n2") for i in range(2)])
    members = a_gang(2)
    rig.create(*members)
    assert granted(rig, members) == {"n2": {"single0", "single1"}}


def test_gangs_that_are_bound_together_preempt_together_or_not_at_all() -> None:
    rig = Rig(a_node("n1"), a_node("n2"))
    low = a_pod("low", node="n1", gpu=2)
    high = a_pod("high", node="n2", gpu=2, priority=10)
    rig.create(low, high)
    terms = Terms(groups=(GangKey("default/a"), GangKey("default/b")))
    together = [
        a_pod(f"{name}{i}", gang=name, min_available=2, terms=terms, priority=10) for name in "ab" for i in range(2)
    ]
    rig.create(*together)
    assert granted(rig, together) == {}
    rig.delete(high)
    rig.later()
    assert granted(rig, together) == {"n1": {"low"}}


def test_a_pod_without_a_gang_may_preempt_as_it_may_without_us() -> None:
    rig = Rig(a_node("n1"), a_node("n2"))
    lows = [a_pod(f"low{i}", node=f"n{i}", gpu=2) for i in (1, 2)]
    rig.create(*lows)
    offered = {low.node_name: [low] for low in lows}
    assert rig.preempt(a_pod("single", priority=10), offered) == {"n1": {"low1"}, "n2": {"low2"}}


def test_a_single_pod_is_steered_to_where_no_running_gang_breaks() -> None:
    rig = Rig(a_node("n1"), a_node("n2"))
    member, low = a_pod("run", gang="run", min_available=1, node="n1", gpu=2), a_pod("low", node="n2", gpu=2)
    rig.create(member, low)
    single = a_pod("single", priority=10)
    assert rig.preempt(single, {"n1": [member], "n2": [low]}) == {"n2": {"low"}}
    assert rig.preempt(single, {"n1": [member]}) == {"n1": {"run"}}


def test_a_gang_that_can_lose_a_member_is_not_broken_by_it() -> None:
    rig = Rig(a_node("n1"), a_node("n2"))
    members = [a_pod(f"run{i}", gang="run", min_available=1, node=f"n{i}", gpu=2) for i in (1, 2)]
    rig.create(*members)
    offered = {member.node_name: [member] for member in members}
    assert set(rig.preempt(a_pod("single", priority=10), offered)) == {"n1", "n2"}


def test_a_further_member_of_a_running_gang_may_preempt() -> None:
    rig = Rig(a_node("n1"), a_node("n2"))
    low = a_pod("low", node="n1", gpu=2)
    rig.create(low, a_pod("w0", gang="g", min_available=1, node="n2", gpu=2))
    extra = a_pod("w1", gang="g", min_available=1, priority=10)
    rig.create(extra)
    assert rig.preempt(extra, {"n1": [low]}) == {"n1": {"low"}}


def test_nobody_dies_for_a_pod_that_filter_rejects_whatever_room_there_is() -> None:
    rig = Rig(a_node("n1", gpu=1))
    low = a_pod("low", node="n1")
    rig.create(low)
    offered = {"n1": [low]}
    assert rig.preempt(a_pod("w", gang="g", min_available=1, priority=9, scheduler_name="other"), offered) == {}
    assert rig.preempt(a_pod("w", gang="g", problem="nonsense", priority=9), offered) == {}
    assert rig.preempt(a_pod("w", gang="g", min_available=None, priority=9), offered) == {}


def test_a_victim_that_has_finished_frees_nothing_twice() -> None:
    shape = a_shape(gpu=1, host_ports=(HostPort(80),))
    rig = Rig(a_node("n1", gpu=1))
    low = a_pod("low", node="n1", shape=shape, finished=True)
    rig.create(low, a_pod("high", node="n1", priority=20))
    pod = a_pod("w", gang="g", min_available=1, priority=10)
    rig.create(pod)
    assert rig.preempt(pod, {"n1": [low]}) == {}


def test_nobody_dies_any_more_once_enough_others_are_going() -> None:
    rig = Rig(a_node("n1", gpu=2), a_node("n2", gpu=2))
    rig.create(a_pod("low1", node="n1", gpu=2, priority=1), a_pod("low2", node="n2", gpu=2, priority=2))
    members = a_gang(2)
    rig.create(*members)
    rig.later()
    assert granted(rig, members) == {"n1": {"low1"}}
    rig.terminate(a_pod("low2"))
    assert granted(rig, members) == {}


def test_nobody_dies_for_a_gang_whose_room_a_gang_of_higher_priority_has_claimed_since() -> None:
    rig = Rig(a_node("n1", gpu=2), a_node("n2", gpu=2))
    rig.create(a_pod("low", node="n1", gpu=2), a_pod("high", node="n2", gpu=2, priority=100))
    first, second = a_gang(2), a_gang(2, name="more", priority=20)
    rig.create(*first)
    rig.later()
    rig.create(*second)
    rig.later()
    assert granted(rig, first) == {}
    assert granted(rig, second) == {"n1": {"low"}}


def test_nobody_dies_for_a_gang_of_which_another_member_has_lost_its_node() -> None:
    rig = Rig(a_node("n1", gpu=2), a_node("n2", gpu=1))
    rig.create(a_pod("low", node="n1", gpu=2))
    members = a_gang(3)
    rig.create(*members)
    rig.later()
    assert rig.reserved() == 1
    rig.cluster.upsert_node(a_node("n2", gpu=1, unschedulable=True))
    assert granted(rig, members) == {}


def test_nobody_dies_for_surplus_members_of_a_gang_that_runs_and_is_bound_together_with_one_that_waits() -> None:
    rig = Rig(a_node("n1", gpu=2), a_node("n2", gpu=2))
    terms = Terms(groups=(GangKey("default/a"), GangKey("default/b")))
    runs, surplus = (a_pod(f"a{i}", gang="a", min_available=1, terms=terms, priority=10) for i in range(2))
    waits = a_pod("b", gang="b", min_available=1, terms=terms, priority=10)
    rig.create(a_pod("low1", node="n1"), structs.replace(runs, node_name="n1"), a_pod("low2", node="n2", gpu=2))
    rig.create(surplus, waits)
    rig.later()
    assert granted(rig, [waits]) == {"n1": {"low1"}}
    assert rig.cluster.earmarks.nodes() == {"n1"}


def test_nobody_dies_for_fewer_members_than_the_gang_needs_since_it_lost_one() -> None:
    rig = Rig(a_node("n1", gpu=1), a_node("n2", gpu=2))
    members = [a_pod(f"g{i}", gang="g", min_available=3, priority=10, created_at=i) for i in range(4)]
    bound = [structs.replace(member, node_name="n2") for member in members[:2]]
    rig.create(a_pod("low", node="n1"), *bound, *members[2:])
    rig.later()
    assert rig.cluster.earmarks.get(GangKey("default/g"))
    rig.create(a_pod("single", node="n2", priority=100))
    rig.delete(bound[0])
    rig.later()
    assert granted(rig, members[2:]) == {}


def test_a_member_that_is_to_preempt_though_it_has_room_is_not_seen_to_have_it_and_is_planned_elsewhere() -> None:
    rig = Rig(a_node("n1"), a_node("n2"))
    members = a_gang(2)
    rig.create(*members)
    rig.later()
    refused = rig.slot(members[0]).node
    assert rig.preempt(members[0]) == {}
    assert rig.slot(members[0]).node == refused, "kube-scheduler may not know yet of room that just became free"
    rig.later(REFUSAL_HOLDS_S)
    assert rig.preempt(members[0]) == {}
    rig.later()
    assert rig.slot(members[0]).node != refused
    assert rig.reserved() == 2


def test_nobody_dies_since_a_free_node_was_refused_once_but_only_when_it_is_refused_again_and_again() -> None:
    rig = Rig(a_node("free", gpu=1), a_node("full", gpu=1))
    low = a_pod("low", node="full")
    member = a_gang(1)[0]
    rig.create(low, member)
    rig.later()
    for refusals in range(REFUSED_FOR_GOOD):
        assert rig.preempt(member) == {}, f"after {refusals} refusals"
        rig.later(LONGEST_REFUSAL_S)
        assert not rig.ask(member, []).accepted
    rig.later()
    assert rig.preempt(member) == {"full": {"low"}}


def test_when_somebody_else_takes_the_room_of_a_member_that_went_ahead_nobody_dies_for_the_others() -> None:
    rig = Rig(a_node("n1", gpu=1), a_node("n2", gpu=1))
    rig.create(a_pod("low", node="n2"))
    members = a_gang(2)
    rig.create(*members)
    rig.later()
    assert rig.reserved() == 1
    rig.create(a_pod("foreign", node="n1", priority=20, scheduler_name="default-scheduler"))
    assert granted(rig, members) == {}
