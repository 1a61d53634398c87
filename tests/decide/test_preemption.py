"""Preemption for a gang: nobody dies unless the whole gang can run afterwards."""

from extender.model.pod import HostPort
from extender.verbs.preempt import preempt
from extender.wire.extender_v1 import PreemptionArgs, Victims
from tests.builders import a_node, a_pod, a_shape
from tests.rig import Rig


def rig_with_victims() -> Rig:
    rig = Rig(a_node("n1", gpu=2), a_node("n2", gpu=2))
    rig.create(a_pod("low1", node="n1", gpu=2), a_pod("low2", node="n2", gpu=1))
    return rig


VICTIMS = {"n1": Victims(("uid-default-low1",)), "n2": Victims(("uid-default-low2",))}


def test_victims_on_one_node_that_make_the_gang_whole_may_die_and_only_they() -> None:
    rig = rig_with_victims()
    pods = [a_pod(f"w{i}", gang="g", min_available=3) for i in range(3)]
    rig.create(*pods)
    assert list(preempt(rig.cluster, PreemptionArgs(pods[0], VICTIMS))) == ["n1"]


def test_nobody_dies_for_a_gang_that_would_not_be_whole() -> None:
    rig = rig_with_victims()
    pods = [a_pod(f"w{i}", gang="g", min_available=4) for i in range(4)]
    rig.create(*pods)
    assert preempt(rig.cluster, PreemptionArgs(pods[0], VICTIMS)) == {}


def test_nobody_dies_for_a_gang_whose_members_do_not_all_exist() -> None:
    rig = rig_with_victims()
    pod = a_pod("w0", gang="g", min_available=3)
    rig.create(pod)
    assert preempt(rig.cluster, PreemptionArgs(pod, VICTIMS)) == {}


def test_nobody_dies_for_a_bad_claim() -> None:
    rig = rig_with_victims()
    pod = a_pod("w0", gang="g", problem="nonsense")
    assert preempt(rig.cluster, PreemptionArgs(pod, VICTIMS)) == {}


def test_a_pod_without_a_gang_may_preempt_as_it_may_without_us() -> None:
    rig = rig_with_victims()
    assert preempt(rig.cluster, PreemptionArgs(a_pod("single"), VICTIMS)) == VICTIMS


def test_a_further_member_of_a_running_gang_may_preempt() -> None:
    rig = rig_with_victims()
    rig.create(a_pod("w0", gang="g", min_available=1, node="n2"))
    extra = a_pod("w1", gang="g", min_available=1)
    rig.create(extra)
    assert preempt(rig.cluster, PreemptionArgs(extra, VICTIMS)) == VICTIMS


def test_nobody_dies_for_a_gang_that_has_room_without_it() -> None:
    rig = Rig(a_node("n1", gpu=2), a_node("n2", gpu=2))
    rig.create(a_pod("low", node="n2", gpu=2))
    pods = [a_pod(f"w{i}", gang="g", min_available=2) for i in range(2)]
    rig.create(*pods)
    rig.later()
    assert rig.reserved() == 2
    assert preempt(rig.cluster, PreemptionArgs(pods[0], {"n2": Victims(("uid-default-low",))})) == {}


def test_nobody_dies_for_a_pod_that_filter_rejects_whatever_room_there_is() -> None:
    rig = Rig(a_node("n1", gpu=1))
    rig.create(a_pod("low", node="n1"))
    pod = a_pod("w", gang="g", min_available=1, scheduler_name="not-served")
    assert "schedulerNames" in rig.text_for(pod)
    assert preempt(rig.cluster, PreemptionArgs(pod, {"n1": Victims(("uid-default-low",))})) == {}


def test_a_victim_that_has_finished_meanwhile_is_no_crash_and_no_room() -> None:
    shape = a_shape(gpu=1, host_ports=(HostPort(80),))
    rig = Rig(a_node("n1", gpu=1))
    rig.create(a_pod("low", node="n1", shape=shape, finished=True), a_pod("high", node="n1"))
    pod = a_pod("w", gang="g", min_available=1)
    rig.create(pod)
    assert preempt(rig.cluster, PreemptionArgs(pod, {"n1": Victims(("uid-default-low",))})) == {}


def test_a_victim_that_has_finished_meanwhile_frees_nothing_twice() -> None:
    rig = Rig(a_node("n1", gpu=1))
    rig.create(a_pod("low", node="n1", finished=True), a_pod("high", node="n1"))
    pod = a_pod("w", gang="g", min_available=1)
    rig.create(pod)
    assert preempt(rig.cluster, PreemptionArgs(pod, {"n1": Victims(("uid-default-low",))})) == {}


def test_a_member_of_a_gang_that_nobody_declared_may_kill_nobody() -> None:
    rig = Rig(a_node("n1", gpu=1))
    victim = a_pod("victim", node="n1")
    pod = a_pod("w0", gang="g", min_available=None)
    rig.create(victim, pod)
    assert preempt(rig.cluster, PreemptionArgs(pod, {"n1": Victims((victim.uid,))})) == {}
