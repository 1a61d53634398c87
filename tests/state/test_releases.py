"""Who loses our scheduling gate, and when; nobody keeps it for ever."""

from typing import Any

import pytest
from msgspec import structs
from structlog.testing import capture_logs

from extender.decide.trial import Trial
from extender.model.claim import BadGangClaim, GangClaim, GangKey, Terms
from extender.model.pod import AffinityTerm, Pod, Relations, Requirement
from extender.model.pod_group import KOORDINATOR, PodGroup
from extender.state import releases
from extender.state.cluster import Cluster
from tests.builders import a_node, a_pod, a_shape
from tests.rig import BINDING_S, GATHERING_S, Rig


def workers(gang: str, count: int, first: int = 0, **options: Any) -> list[Pod]:
    options = {"held": True, "min_available": count} | options
    return [a_pod(f"{gang}{i}", gang=gang, created_at=first + i, **options) for i in range(count)]


def test_a_gang_that_fits_goes_when_its_last_member_is_there() -> None:
    rig = Rig(a_node("n1", gpu=3))
    *early, late = workers("g", 3)
    rig.create(*early)
    rig.later()
    assert rig.reserved() == 3, "for the one to come as well"
    assert rig.take_gates_off() == []

    rig.create(late)
    rig.later()

    assert rig.take_gates_off() == ["g0", "g1", "g2"]
    assert [rig.node_for(pod) for pod in (*early, late)] == ["n1"] * 3
    rig.later()
    assert rig.take_gates_off() == []


def test_a_gang_that_does_not_fit_goes_when_it_does() -> None:
    rig = Rig(a_node("n1", gpu=2))
    pods = workers("g", 3)
    rig.create(*pods)
    rig.later()
    assert (rig.reserved(), rig.take_gates_off()) == (0, [])
    assert rig.gang("default/g").waiting == tuple(pods), "they are told why they wait"

    rig.cluster.upsert_node(a_node("n2", gpu=1))
    rig.later()

    assert rig.take_gates_off() == ["g0", "g1", "g2"]


def test_above_min_available_those_without_room_go_when_the_gang_runs() -> None:
    rig = Rig(a_node("n1", gpu=2))
    pods = workers("g", 3, min_available=2)
    rig.create(*pods)
    rig.later()
    assert rig.take_gates_off() == ["g0", "g1"]

    for pod in pods[:2]:
        rig.bind(structs.replace(pod, held=False), rig.node_for(pod))
    rig.later()

    assert rig.take_gates_off() == ["g2"], "the events of kube-scheduler say why it waits"


def test_members_that_come_to_a_gang_that_runs_go_at_once() -> None:
    rig = Rig(a_node("n1", gpu=2))
    rig.create(*workers("g", 1, node="n1", held=False))
    rig.create(a_pod("more", gang="g", min_available=1, held=True, created_at=5))
    rig.later()
    assert rig.take_gates_off() == ["more"]


def test_a_pod_without_a_gang_goes_at_once() -> None:
    rig = Rig()
    rig.create(a_pod("alone", held=True))
    rig.later()
    assert rig.take_gates_off() == ["alone"]


@pytest.mark.parametrize("gang", [None, "g"])
@pytest.mark.parametrize("problem", ["", "min-available is no number"])
def test_a_pod_of_another_scheduler_goes_at_once_and_the_log_says_so(gang: str | None, problem: str) -> None:
    rig = Rig()
    with capture_logs() as logs:
        rig.create(a_pod("odd", gang=gang, problem=problem, scheduler_name="other", held=True))
        rig.later()
    assert rig.take_gates_off() == ["odd"]
    assert "add it to schedulerNames" in logs[0]["text"]


def test_a_member_whose_gang_cannot_be_read_stays() -> None:
    rig = Rig(a_node("n1"))
    pod = a_pod("w", gang="g", problem="min-available is no number", held=True)
    for _ in range(2):
        rig.create(structs.replace(pod, nominated_node="n1"), pod)
        rig.later()
    assert rig.take_gates_off() == []
    (told,) = rig.announcements
    assert (told.pod.name, told.note) == ("w", 'Gang "default/g": min-available is no number')

    rig.create(structs.replace(pod, gang=GangClaim(GangKey("default/g"), 1)))
    rig.later()
    assert rig.take_gates_off() == ["w"]


def test_a_gang_that_nobody_declared_stays_until_somebody_does() -> None:
    rig = Rig(a_node("n1"))
    rig.create(*workers("g", 2, min_available=None))
    rig.later()
    assert rig.take_gates_off() == []

    rig.cluster.upsert_pod_group(PodGroup(KOORDINATOR, GangKey("default/g"), 2))
    rig.later()
    assert rig.take_gates_off() == ["g0", "g1"]


def test_a_pod_that_goes_before_its_gate_was_taken_off_is_forgotten() -> None:
    rig = Rig()
    pod = a_pod("alone", held=True)
    rig.create(pod)
    rig.later()
    rig.delete(pod)
    rig.later(100)
    assert rig.take_gates_off() == []
    assert rig.cycle.releases.next_s() is None


def test_a_member_with_another_gate_is_waited_for() -> None:
    rig = Rig(a_node("n1", gpu=2))
    first, second = workers("g", 2)
    rig.create(first, structs.replace(second, gated=True))
    rig.later()
    assert rig.take_gates_off() == []

    rig.create(second)
    rig.later()
    assert rig.take_gates_off() == ["g0", "g1"]


def test_gangs_that_are_bound_together_go_together() -> None:
    keys = (GangKey("default/a"), GangKey("default/b"))
    rig = Rig(a_node("n1", gpu=4))
    pods = [
        structs.replace(pod, gang=GangClaim(GangKey(f"default/{name}"), 2, Terms(groups=keys)))
        for name in "ab"
        for pod in workers(name, 2)
    ]
    *early, late = pods
    rig.create(*early)
    rig.later()
    assert (rig.reserved(), rig.take_gates_off()) == (4, [])

    rig.create(late)
    rig.later()
    assert sorted(rig.take_gates_off()) == ["a0", "a1", "b0", "b1"]


def test_a_gang_that_names_another_one_which_does_not_name_it_goes_when_that_one_is_there() -> None:
    keys = (GangKey("default/a"), GangKey("default/b"))
    rig = Rig(a_node("n1", gpu=2))
    (first,) = workers("a", 1)
    rig.create(structs.replace(first, gang=GangClaim(keys[0], 1, Terms(groups=keys))))
    rig.later()
    assert rig.take_gates_off() == []

    rig.create(*workers("b", 1, first=5))
    rig.later()
    assert sorted(rig.take_gates_off()) == ["a0", "b0"]


def test_when_a_member_goes_amid_the_releases_the_others_wait_with_the_gang() -> None:
    rig = Rig(a_node("n1", gpu=2))
    first, second = workers("g", 2)
    rig.create(first, second)
    rig.later()
    rig.create(structs.replace(first, held=False))
    rig.delete(first)
    rig.later()
    assert rig.take_gates_off() == []


def test_when_another_member_comes_instead_they_go_without_delay() -> None:
    rig = Rig(a_node("n1", gpu=2))
    first, second, third = workers("g", 3, min_available=2)
    rig.create(first, second)
    rig.later()
    rig.delete(first)
    rig.later()
    assert rig.take_gates_off() == []
    rig.create(third)
    rig.later(0.1)
    assert sorted(rig.take_gates_off()) == ["g1", "g2"]


def test_an_extender_that_begins_amid_the_releases_of_a_gang_goes_on() -> None:
    first, second = workers("g", 2)
    first = structs.replace(first, held=False)
    roomy, full = Rig(a_node("n1", gpu=2)), Rig(a_node("n1", gpu=1))
    for rig in (roomy, full):
        rig.create(first, second)
        rig.later()
    assert roomy.take_gates_off() == ["g1"]
    assert full.take_gates_off() == []
    assert "Insufficient" in full.text_for(first), "it waits whole"


def test_nobody_goes_before_the_state_can_be_trusted() -> None:
    rig = Rig(a_node("n1"))
    rig.create(a_pod("alone", held=True), *workers("g", 1, node="n1", held=False))
    rig.create(a_pod("more", gang="g", min_available=1, held=True))
    rig.cycle.step(rig.now_s, may_plan=False)
    assert rig.take_gates_off() == []
    rig.later()
    assert sorted(rig.take_gates_off()) == ["alone", "more"]


def test_a_release_that_comes_to_nothing_is_asked_for_again_ever_more_seldom() -> None:
    rig = Rig()
    rig.create(a_pod("alone", held=True))
    for _ in range(3600):
        rig.later(1)
    assert 60 < len(rig.releases) <= 3600 / 30 + 5


@pytest.mark.parametrize("change", [{"gang": BadGangClaim(GangKey("default/g"), "nonsense")}, {"terminating": True}])
def test_a_release_that_is_wanted_no_more_is_not_overdue_for_ever(change: dict[str, Any]) -> None:
    """It was asked for, and could not be written before the pod was edited, or deleted with a finalizer."""
    rig = Rig(a_node("n1", gpu=1))
    (pod,) = workers("g", 1)
    rig.create(pod)
    rig.later()
    assert [release.name for release in rig.releases] == ["g0"]
    rig.create(structs.replace(pod, **change))
    rig.later(60)
    next_s = rig.cycle.next_s()
    assert next_s is None or next_s > rig.now_s, "Cycle.run would turn round and round"


def test_a_gang_whose_member_may_not_go_where_its_room_is_any_more_keeps_its_gates() -> None:
    """Of a pod with a gate a nodeSelector may be set yet."""
    rig = Rig(a_node("n1", gpu=2), a_node("n2", gpu=0, labels={"pool": "b"}))
    first, second = workers("g", 2)
    rig.create(first)
    rig.later()
    assert rig.reserved() == 2
    confined = structs.replace(first, shape=a_shape(node_selector={"pool": "b"}))
    rig.create(confined, second)
    rig.later()
    assert rig.take_gates_off() == []
    assert rig.reserved() == 0
    rig.cluster.upsert_node(a_node("n2", gpu=1, labels={"pool": "b"}))
    rig.later()
    assert sorted(rig.take_gates_off()) == ["g0", "g1"]
    assert rig.slot(confined).node == "n2"


def test_the_time_of_a_members_room_begins_when_its_gate_is_off() -> None:
    rig = Rig(a_node("n1", gpu=2))
    early, late = workers("g", 2)
    rig.create(early)
    rig.later()
    rig.later(GATHERING_S - 1)
    rig.create(late)
    rig.later()
    rig.create(*workers("next", 2, first=5))
    rig.later(BINDING_S - 1)  # so long it took the API server
    rig.take_gates_off()
    rig.later()
    rig.later(BINDING_S - 1)
    assert rig.node_for(early) == rig.node_for(late) == "n1"
    assert rig.take_gates_off() == [], "the next gang has not had its turn"


def test_room_of_a_gang_whose_gates_do_not_come_off_goes_to_another() -> None:
    rig = Rig(a_node("n1", gpu=2))
    rig.create(*workers("stuck", 2))
    rig.later()
    rig.create(*workers("next", 2, first=5))
    rig.later()
    assert {release.name for release in rig.releases} == {"stuck0", "stuck1"}
    rig.later(BINDING_S)
    assert sorted(rig.take_gates_off()) == ["next0", "next1"]


def test_members_that_fit_or_for_whom_others_are_preempted_go_ahead_and_the_rest_when_they_fit() -> None:
    rig = Rig(a_node("n1", gpu=2), a_node("n2", gpu=1))
    victim = a_pod("low", node="n1", gpu=2)
    rig.create(victim)
    members = workers("g", 3, first=5, priority=10)
    rig.create(*members)
    rig.later()
    ahead = [rig.cluster.pods[release.uid] for release in rig.releases]
    assert len(rig.take_gates_off()) == len(ahead) == 2
    assert [killed for pod in ahead if (killed := rig.preempt(pod))] == [{"n1": {"low"}}]

    rig.terminate(victim)
    rig.later()
    assert rig.take_gates_off() == []
    rig.delete(victim)
    rig.later()

    assert {*(pod.name for pod in ahead), *rig.take_gates_off()} == {"g0", "g1", "g2"}


def test_members_that_need_a_sibling_beside_them_go_when_kube_scheduler_knows_of_it() -> None:
    beside = Relations(affinity=(AffinityTerm("zone", (Requirement("role", "In", ("ps",)),), ("default",)),))
    rig = Rig(*(a_node(zone, gpu=3, labels={"zone": zone}) for zone in "ab"))
    wants: dict[str, Any] = {"shape": a_shape(relations=beside), "labels": {"role": "worker"}}
    server = a_pod("ps", gang="g", min_available=3, role="ps", labels={"role": "ps"}, held=True, created_at=9)
    rig.create(*workers("g", 2, min_available=3, **wants), server)
    rig.later()
    assert rig.take_gates_off() == ["ps"]
    rig.later()
    assert rig.take_gates_off() == []

    node = rig.node_for(server)
    rig.later()

    assert rig.take_gates_off() == ["g0", "g1"]
    assert [rig.node_for(pod) for pod in rig.gang("default/g").waiting if pod.role == "worker"] == [node] * 2


def test_members_that_need_a_pod_of_another_gang_go_when_that_is_placed() -> None:
    beside = Relations(affinity=(AffinityTerm("zone", (Requirement("role", "In", ("db",)),), ("default",)),))
    rig = Rig(a_node("a", gpu=3, labels={"zone": "a"}))
    (other,) = workers("other", 1, labels={"role": "db"})
    rig.create(other)
    rig.later()
    rig.create(*workers("g", 1, first=5, shape=a_shape(relations=beside)))
    rig.later()
    assert rig.reserved() == 2
    assert rig.take_gates_off() == ["other0"]

    assert rig.node_for(other) == "a"
    rig.later()

    assert rig.take_gates_off() == ["g0"]


def test_whether_a_gate_is_still_to_come_off_is_answered_without_a_look_at_all_nodes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is asked for each of a thousand gates by itself."""
    apart = Relations(anti_affinity=(AffinityTerm("host", (Requirement("app", "In", ("x",)),), ("default",)),))
    rig = Rig(*(a_node(host, gpu=1, labels={"host": host}) for host in "ab"))
    pods = workers("g", 2, min_available=2, labels={"app": "x"}, shape=a_shape(relations=apart))
    rig.create(*pods)
    rig.later()
    assert rig.reserved() == 2

    def never(_: Cluster) -> Trial:
        raise AssertionError("a look at all nodes")

    monkeypatch.setattr(releases, "without_planned", never)
    assert all(rig.cycle.releases.is_wanted(pod.uid) for pod in pods)
    rig.cluster.remove_node("a")
    rig.planner.plan_gangs(rig.now_s)
    assert not any(rig.cycle.releases.is_wanted(pod.uid) for pod in pods)
