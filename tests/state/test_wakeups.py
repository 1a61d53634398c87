"""Members that sleep although room is held for them are woken, also when a nomination gets lost."""

import pytest
from msgspec import structs

from extender.decide.trial import Trial
from extender.model.claim import GangKey, Terms
from extender.model.pod import AffinityTerm, Pod, Relations, Requirement
from extender.state import wakeups
from extender.state.cluster import Cluster
from extender.state.schedulers_view import without_planned
from extender.state.wakeups import UNSAID_S
from tests.builders import a_node, a_pod, a_shape
from tests.rig import Rig


def test_a_nomination_wiped_before_the_cycle_saw_it_is_written_again() -> None:
    """Both watch events came in one read: the cycle runs once, after both."""
    rig = Rig(a_node("n1", gpu=0))
    pod = a_pod("w", gang="g", min_available=1)
    rig.create(pod)
    rig.ask(pod)
    asleep = rig.turn_away(pod)
    rig.cluster.upsert_node(a_node("n1", gpu=1))
    rig.later()
    assert len(rig.nominations) == 1
    rig.create(structs.replace(asleep, nominated_node="n1"))
    rig.create(asleep)
    for _ in range(10):
        rig.later(1)
    assert len(rig.nominations) == 2


def test_a_nomination_that_could_not_be_written_is_submitted_again_soon() -> None:
    """It was given up after some tries ("whoever plans asks again"), and nobody plans for a minute."""
    rig = Rig(a_node("n1", gpu=0))
    pod = a_pod("w", gang="g", min_available=1)
    rig.create(pod)
    rig.ask(pod)
    rig.turn_away(pod)
    rig.cluster.upsert_node(a_node("n1", gpu=1))
    rig.later()
    for _ in range(30):
        rig.later(1)
    assert len(rig.nominations) > 1


def test_a_member_that_still_carries_an_old_nomination_to_its_node_is_woken() -> None:
    """After our preempt veto (or with preemptionPolicy Never) kube-scheduler leaves nominatedNodeName as it is."""
    rig = Rig(a_node("n1", gpu=0))
    pod = a_pod("w", gang="g", min_available=1)
    rig.create(pod)
    rig.ask(pod)
    asleep = rig.turn_away(pod)
    rig.create(structs.replace(asleep, nominated_node="n1"))
    rig.cluster.upsert_node(a_node("n1", gpu=1))
    rig.later()
    assert rig.reserved() == 1
    assert rig.nominations


def a_rig_with_room_found() -> tuple[Rig, Pod]:
    """Return one with room by now for a member that was turned away; that it sleeps was not written on it yet."""
    rig = Rig(a_node("n1", gpu=0))
    pod = a_pod("w", gang="g", min_available=1)
    rig.create(pod)
    rig.ask(pod)
    rig.cluster.upsert_node(a_node("n1", gpu=1))
    rig.later()
    return rig, pod


def test_a_member_that_was_turned_away_is_woken_though_nobody_could_write_that_it_sleeps() -> None:
    """The API server was on its way back when kube-scheduler wrote the pod's condition."""
    rig, _ = a_rig_with_room_found()
    assert rig.nominations == [], "kube-scheduler may be trying it yet"
    rig.later(UNSAID_S)
    assert [each.node for each in rig.nominations] == ["n1"]


def test_a_member_that_is_seen_to_sleep_is_woken_at_once() -> None:
    rig, pod = a_rig_with_room_found()
    rig.turn_away(pod)
    rig.later()
    assert [each.node for each in rig.nominations] == ["n1"]


def test_members_that_keep_apart_are_woken_with_one_look_at_the_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    """Making it takes 50 ms on 5,000 nodes; a look for each of 1,000 members would stop all verbs for a minute."""
    looks = 0

    def counted(cluster: Cluster) -> Trial:
        nonlocal looks
        looks += 1
        return without_planned(cluster)

    monkeypatch.setattr(wakeups, "without_planned", counted)
    hosts = [f"n{index}" for index in range(12)]
    rig = Rig(*(a_node(host, gpu=0, labels={"host": host}) for host in hosts))
    apart = Relations(anti_affinity=(AffinityTerm("host", (Requirement("app", "In", ("x",)),), ("default",)),))
    gang = [
        a_pod(f"w{index}", gang="g", min_available=12, labels={"app": "x"}, shape=a_shape(relations=apart))
        for index in range(12)
    ]
    rig.create(*gang)
    for pod in gang:
        rig.ask(pod)
        rig.turn_away(pod)
    for host in hosts:
        rig.cluster.upsert_node(a_node(host, gpu=1, labels={"host": host}))

    rig.later()

    assert sorted(nomination.node for nomination in rig.nominations) == sorted(hosts)
    assert looks == 1


def test_a_member_whose_neighbour_has_gone_is_looked_at_again_later_and_not_all_the_time() -> None:
    beside = Relations(affinity=(AffinityTerm("zone", (Requirement("role", "In", ("db",)),), ("default",)),))
    rig = Rig(a_node("n1", gpu=0, labels={"zone": "a"}))
    database = a_pod("db", node="n1", gpu=0, labels={"role": "db"})
    worker = a_pod("w", gang="g", min_available=1, shape=a_shape(relations=beside))
    rig.create(database, worker)
    rig.ask(worker)
    rig.turn_away(worker)
    rig.cluster.upsert_node(a_node("n1", gpu=1, labels={"zone": "a"}))
    rig.later()
    assert len(rig.nominations) == 1

    rig.delete(database)
    rig.later(10)

    assert len(rig.nominations) == 1
    due_s = rig.cycle.next_s()
    assert due_s is None or due_s > rig.now_s


def test_who_needs_a_member_of_a_gang_bound_together_with_its_own_is_woken_once_that_is_let_through() -> None:
    """That one's bind call is held for this one's gang: nothing changes that kube-scheduler could see."""
    beside = Relations(affinity=(AffinityTerm("zone", (Requirement("role", "In", ("ps",)),), ("default",)),))
    rig = Rig(a_node("n1", gpu=0, labels={"zone": "a"}))
    terms = Terms(groups=(GangKey("default/a"), GangKey("default/b")))
    server = a_pod("ps", gang="a", min_available=1, terms=terms, labels={"role": "ps"})
    worker = a_pod("w", gang="b", min_available=1, terms=terms, shape=a_shape(relations=beside), created_at=1)
    rig.create(server, worker)
    for pod in (server, worker):
        rig.ask(pod)
        rig.turn_away(pod)
    rig.cluster.upsert_node(a_node("n1", gpu=2, labels={"zone": "a"}))
    rig.later()
    assert [each.name for each in rig.nominations] == ["ps"], "kube-scheduler would not agree to the other one yet"
    assert rig.node_for(server) == "n1"
    rig.later()
    assert [each.name for each in rig.nominations] == ["ps", "w"]
