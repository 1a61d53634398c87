"""Do the pods, the probes and the metrics give a mistake away?"""

from typing import Any

import pytest

from extender.decide.explain import STANDING_BY
from extender.doctor.facts import Fleet
from extender.doctor.finding import Unseen
from extender.model.pod import HOLD_GATE
from tests.doctor.installations import AS_SHARED, amiss, extender, facts, pod, scheduler, settings

GANG = {"gang.scheduling.koordinator.sh/name": "g", "gang.scheduling.koordinator.sh/min-available": "2"}
MARKS = {"gang-extender.io/member": "1", "gang-extender.io/member-bind": "1"}


def test_pods_of_ours_that_nobody_looks_at() -> None:
    (found,) = amiss(facts(fleet=Fleet((pod(status={}), pod("worker-1")))))
    assert (found.check, found.level) == ("pods are looked at", "error")
    assert "pod default/worker-0, of schedulerName gang-scheduler" in found.what
    assert "kubectl get lease" in found.mend


def test_a_pod_that_was_just_made_is_given_its_time() -> None:
    assert amiss(facts(fleet=Fleet((pod(status={}, creationTimestamp="2027-01-15T08:00:00Z"),)))) == []


def test_a_scheduler_name_that_nobody_has() -> None:
    (found,) = amiss(facts(fleet=Fleet((pod(scheduler_name="gang-schedular", status={}),))))
    assert (found.check, found.level) == ("pods are looked at", "warning")
    assert "gang-schedular, which no profile that was seen has" in found.what
    assert "schedulerName: gang-scheduler" in found.mend


def test_a_gang_that_names_the_default_scheduler() -> None:
    (found,) = amiss(facts(fleet=Fleet((pod(scheduler_name="default-scheduler", annotations=GANG),))))
    assert (found.check, found.level) == ("gangs name our scheduler", "warning")
    assert found.mend == "schedulerName: gang-scheduler"


def test_our_gate_on_a_pod_of_another_scheduler() -> None:
    held = pod(scheduler_name="volcano", spec={"schedulingGates": [{"name": HOLD_GATE}]})
    (found,) = amiss(facts(fleet=Fleet((held,))))
    assert (found.check, found.level) == ("held pods are ours", "error")


def test_a_member_without_marks_in_a_shared_kube_scheduler() -> None:
    def shared(*pods: Any) -> Any:
        return facts(schedulers=(scheduler(file="shared.yaml"),), settings=settings(**AS_SHARED), fleet=Fleet(pods))

    marked = pod(spec={"containers": [{"name": "main", "resources": {"requests": MARKS}}]})
    assert amiss(shared(marked)) == []
    (found,) = amiss(shared(marked, pod("bare")))
    assert found.level == "error"
    assert "pod default/bare do not ask for gang-extender.io/member and gang-extender.io/member-bind" in found.what
    assert 'gang-extender.io/member-bind: "1"' in found.mend


def test_marks_that_are_left_over_in_a_kube_scheduler_of_our_own() -> None:
    """kube-scheduler says "Insufficient gang-extender.io/member", and that is all that its user sees."""
    marked = pod(spec={"containers": [{"name": "main", "resources": {"requests": MARKS}}]})
    (found,) = amiss(facts(fleet=Fleet((marked,))))
    assert found.level == "error"
    assert "no node has and kube-scheduler does not ignore" in found.what


@pytest.mark.parametrize(
    ("state", "check", "said"),
    [
        ({"ready": "watch podgroups.scheduling.volcano.sh not synced"}, "extender is ready", "not synced"),
        ({"reachable": {"http://127.0.0.1:1/v1": "refused"}}, "extender answers at the entries' URL", "refused"),
    ],
)
def test_an_extender_that_is_not_ready_or_elsewhere(state: dict[str, Any], check: str, said: str) -> None:
    (found,) = amiss(facts(extenders=(extender(**state),)))
    assert (found.check, found.level) == (check, "error")
    assert said in found.what


SERVICE = {"mode": "service", "resourceName": "gang-extender"}
STANDS_BY = f"leader {STANDING_BY}"


def test_in_service_mode_one_is_never_ready_and_that_is_right() -> None:
    def two(first: str, second: str, **election: str) -> list[str]:
        both = (extender(ready=first), extender(ready=second))
        return [each.what for each in amiss(facts(extenders=both, settings=settings(leaderElection=election)))]

    assert two("", STANDS_BY, **SERVICE) == []
    assert two("", "watch pods not synced", **SERVICE) == ["it is not ready: watch pods not synced"]
    assert len(two(STANDS_BY, STANDS_BY, **SERVICE)) == 2, "nobody leads"
    assert two("", STANDS_BY) == [f"it is not ready: {STANDS_BY}"]


STARTED_S = 1000.0


def bound(at_s: float) -> Fleet:
    each = pod(spec={"nodeName": "n"})
    return Fleet((each,), bound_s={each.metadata.uid: at_s})


@pytest.mark.parametrize(("calls", "verb"), [({}, "filter"), ({"filter": 3}, "bind")])
def test_a_verb_that_is_never_called_while_pods_are_bound(calls: dict[str, int], verb: str) -> None:
    idle = extender(calls=calls, started_s=STARTED_S)
    (found,) = amiss(facts(extenders=(idle,), fleet=bound(STARTED_S + 1)))
    assert (found.check, found.level) == ("extender is called", "warning")
    assert f"{verb} was never called" in found.what
    assert amiss(facts(extenders=(idle,), fleet=bound(STARTED_S - 1))) == []
    assert amiss(facts(extenders=(idle, extender(started_s=STARTED_S)), fleet=bound(STARTED_S + 1))) == []


def test_an_extender_that_is_never_called_while_pods_fail() -> None:
    """A pod that no node takes is none: where kube-scheduler's own filters leave no node, it asks nobody."""

    def refused(reason: str) -> Fleet:
        return Fleet((pod(status={"conditions": [{"type": "PodScheduled", "status": "False", "reason": reason}]}),))

    idle = (extender(calls={}),)
    assert amiss(facts(extenders=idle, fleet=refused("Unschedulable"))) == []
    (found,) = amiss(facts(extenders=idle, fleet=refused("SchedulerError")))
    assert "pod default/worker-0 failed in kube-scheduler" in found.what


def test_what_cannot_be_tried_from_here_is_said_to_be_unknown() -> None:
    unseen = Unseen("cannot be tried from here", "kubectl exec")
    found = amiss(facts(extenders=(extender(ready=unseen, calls=unseen, reachable=unseen),)))
    assert [each.level for each in found] == ["unknown"] * 3
    assert {each.mend for each in found} == {"kubectl exec"}
