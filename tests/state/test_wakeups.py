"""Members that sleep although room is held for them are woken, also when a nomination gets lost."""

from msgspec import structs

from extender.model.pod import Pod
from extender.state.wakeups import UNSAID_S
from tests.builders import a_node, a_pod
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
