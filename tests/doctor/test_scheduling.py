"""Is a kube-scheduler found out that is too old, plays gangs itself, or has nobody lead?"""

from typing import Any

import pytest

from extender.doctor.scheduling import NATIVE_GATES
from tests.doctor.installations import amiss, facts, process, scheduler, settings


@pytest.mark.parametrize(
    ("version", "level"),
    [((1, 30, 4), "error"), ((1, 31, 4), "warning"), ((1, 32, 0), None), ((1, 36, 3), None), (None, None)],
)
def test_kube_schedulers_of_other_versions(version: Any, level: str | None) -> None:
    found = amiss(facts(processes=(process(version=version),)))
    assert [(each.check, each.level) for each in found] == ([("version of kube-scheduler", level)] if level else [])


@pytest.mark.parametrize("gate", NATIVE_GATES)
def test_kube_schedulers_own_gang_scheduling_together_with_ours(gate: str) -> None:
    (found,) = amiss(facts(processes=(process(gates={"GenericWorkload": True, gate: True}),)))
    assert found.level == "error"
    assert f"--feature-gates={gate}=false" in found.mend


def test_served_pod_groups_alone_are_no_rival() -> None:
    assert amiss(facts(processes=(process(gates={"GenericWorkload": True}),))) == []


def test_a_back_off_that_is_waited_out() -> None:
    (found,) = amiss(facts(processes=(process(gates={"SchedulerPopFromBackoffQ": False}),)))
    assert (found.level, "waits out its back-off" in found.what) == ("warning", True)


def test_a_kube_scheduler_of_which_nothing_is_seen_but_its_file() -> None:
    (found,) = amiss(facts(processes=()))
    assert (found.check, found.level) == ("version and feature gates of kube-scheduler", "unknown")


def test_two_replicas_of_which_none_is_elected() -> None:
    alone = scheduler(lambda content: content["leaderElection"].update(leaderElect=False))
    (found,) = amiss(
        facts(
            schedulers=(alone,),
            processes=(process(), process(name="pod gang-extender/gang-scheduler-2")),
            settings=settings(leaderElection={"mode": "none"}),
        )
    )
    assert (found.check, found.level) == ("leader election", "error")
    assert amiss(facts(schedulers=(alone,), settings=settings(leaderElection={"mode": "none"}))) == []


def test_a_service_is_not_found_from_the_hosts_network() -> None:
    by_name = scheduler(
        lambda content: [e.update(urlPrefix="http://gang-extender.svc:8888/v1") for e in content["extenders"]]
    )
    alone = facts(schedulers=(by_name,), processes=(process(),))
    on_host = facts(schedulers=(by_name,), processes=(process(resolves_services=False),))
    (found,) = [each for each in amiss(on_host) if each not in amiss(alone)][:1]
    assert (found.check, found.level) == ("names in urlPrefix", "error")
    assert "ClusterFirstWithHostNet" in found.mend
    assert amiss(facts(processes=(process(resolves_services=False),))) == []


def test_a_lease_that_the_role_is_not_for() -> None:
    other = scheduler(lambda content: content["leaderElection"].update(resourceName="another"))
    (found,) = amiss(facts(schedulers=(other,), settings=settings(leaderElection={"resourceName": "another"})))
    assert (found.check, found.level) == ("right to the lease", "warning")


def test_an_extender_that_follows_the_lease_of_another_answers_nobody() -> None:
    shared = facts(schedulers=(scheduler(file="shared.yaml"),), settings=settings(percentageOfNodesToScore=100))
    (found,) = amiss(shared)
    assert (found.check, found.level) == ("lease of the extender", "error")
    assert found.mend.startswith("leaderElection: {resourceName: kube-scheduler, resourceNamespace: kube-system}")
    service = {"mode": "service", "resourceName": "gang-extender"}
    assert amiss(facts(settings=settings(leaderElection=service))) == []


def test_an_extender_that_waits_for_an_election_that_is_not_held() -> None:
    (found,) = amiss(
        facts(schedulers=(scheduler(lambda content: content["leaderElection"].update(leaderElect=False)),))
    )
    assert (found.check, found.level) == ("lease of the extender", "error")
    assert "mode: none" in found.mend


def test_a_kube_scheduler_that_is_newer_than_its_api_server() -> None:
    found = next(each for each in amiss(facts(version=(1, 33, 2))) if each.check == "version of the API server")
    assert found.level == "error"
    assert found.mend.endswith("1.33")
    assert amiss(facts(version=(1, 36, 0), processes=(process(version=(1, 36, 9)),))) == []
