"""Gangs as the state sees them: who counts, and what changes when a PodGroup or a job comes, changes and goes."""

from typing import Any

import pytest
from msgspec import structs

from extender.model.claim import BadGangClaim, GangClaim, GangKey, Terms, job_key
from extender.model.job import JobRole, TrainingJob
from extender.model.pod import Pod
from extender.model.pod_group import KOORDINATOR, VOLCANO, GroupStatus, PodGroup
from extender.state.cluster import Cluster
from extender.state.complaints import MISSED_AFTER_S
from tests.builders import a_node, a_pod
from tests.rig import Rig

KEY = GangKey("default/g")
JOB = job_key("default", "PyTorchJob", "mnist")


def a_group(min_available: int) -> PodGroup:
    return PodGroup(KOORDINATOR, KEY, min_available)


def of_job(pod: Pod) -> Pod:
    return structs.replace(pod, gang=GangClaim(GangKey(JOB), job=JOB, derived=True))


def a_job(workers: int) -> TrainingJob:
    return TrainingJob(JOB, (JobRole("worker", workers, scheduler_name="gang-scheduler"),))


def test_a_gang_is_let_through_as_soon_as_its_pod_group_says_how_many_it_needs() -> None:
    rig = Rig(a_node("n1", gpu=2))
    pods = [a_pod(f"w{i}", gang="g", min_available=None, created_at=i) for i in range(2)]
    rig.create(*pods)
    assert "nobody says how many members it needs" in rig.text_for(pods[0])
    rig.turn_away(pods[0])
    rig.cluster.upsert_pod_group(a_group(2))
    rig.later()
    assert [nomination.name for nomination in rig.nominations] == ["w0"]
    assert rig.node_for(pods[1]) == "n1"


def test_a_gang_whose_pod_group_goes_gives_its_room_back() -> None:
    rig = Rig(a_node("n1", gpu=2))
    pods = [a_pod(f"w{i}", gang="g", min_available=None) for i in range(2)]
    rig.cluster.upsert_pod_group(a_group(2))
    rig.create(*pods)
    rig.node_for(pods[0])
    assert rig.reserved() == 2
    rig.cluster.replace_pod_groups(KOORDINATOR, [])
    rig.later()
    assert rig.reserved() == 0
    assert "nobody says" in rig.text_for(pods[0])


def test_a_gang_whose_minimum_falls_runs_with_what_there_is() -> None:
    rig = Rig(a_node("n1", gpu=2))
    pods = [a_pod(f"w{i}", gang="g", min_available=None) for i in range(3)]
    rig.cluster.upsert_pod_group(a_group(3))
    rig.create(*pods)
    assert rig.node_for(pods[0]) is None
    rig.cluster.upsert_pod_group(a_group(2))
    rig.later()
    assert rig.reserved() == 2


def test_a_pod_group_that_is_listed_again_as_it_was_changes_nothing() -> None:
    rig = Rig(a_node("n1"))
    rig.create(a_pod("w0", gang="g", min_available=None))
    rig.cluster.upsert_pod_group(a_group(2))
    rig.cluster.changes.take_to_plan()
    rig.cluster.replace_pod_groups(KOORDINATOR, [a_group(2)])
    assert rig.cluster.changes.take_to_plan() == set()


def test_a_derived_gang_follows_its_job() -> None:
    rig = Rig(a_node("n1", gpu=4))
    pods = [of_job(a_pod(f"w{i}")) for i in range(3)]
    rig.create(*pods)
    assert "derived from a job that is not known" in rig.text_for(pods[0])
    rig.cluster.upsert_job(a_job(3))
    assert rig.gang(JOB).min_available == 3
    rig.cluster.upsert_job(a_job(2))
    assert rig.gang(JOB).min_available == 2
    rig.cluster.replace_jobs("PyTorchJob", [])
    assert rig.cluster.gangs.get(GangKey(JOB)) is None


def test_pods_that_need_nobody_beside_them_go_where_kube_scheduler_likes() -> None:
    rig = Rig(a_node("n1"), a_node("n2"))
    pod = of_job(a_pod("w0"))
    rig.cluster.upsert_job(TrainingJob(JOB, (JobRole("", 1),), min_available=0))
    rig.create(pod)
    assert list(rig.ask(pod).accepted) == ["n1", "n2"]


def test_only_the_roles_whose_pods_come_to_us_count() -> None:
    cluster = Cluster(["gang-scheduler"])
    cluster.upsert_pod(of_job(a_pod("w0")))
    ps, worker = JobRole("ps", 1, scheduler_name=""), JobRole("worker", 2, scheduler_name="gang-scheduler")
    cluster.upsert_job(TrainingJob(JOB, (ps, worker)))
    gang = cluster.gangs.get(GangKey(JOB))
    assert gang is not None
    assert gang.min_available == 2


def test_no_gang_is_derived_for_another_schedulers_pods_or_where_that_is_switched_off() -> None:
    foreign = of_job(a_pod("w0", scheduler_name="default-scheduler"))
    ours = of_job(a_pod("w1"))
    usual, switched_off = Cluster(["gang-scheduler"]), Cluster(["gang-scheduler"], derive_gangs=False)
    for cluster in (usual, switched_off):
        cluster.upsert_pod(foreign)
        cluster.upsert_pod(ours)
    assert list(usual.gangs) == [GangKey(JOB)]
    assert list(switched_off.gangs) == []


def test_where_no_gang_is_derived_nobody_waits_for_what_is_wrong_with_it() -> None:
    ours = structs.replace(a_pod("w0"), gang=BadGangClaim(GangKey(JOB), "it is too large", derived=True))
    usual, switched_off = Cluster(["gang-scheduler"]), Cluster(["gang-scheduler"], derive_gangs=False)
    assert usual.learn_pod(ours).gang == ours.gang
    assert switched_off.learn_pod(ours).gang is None


@pytest.mark.parametrize("left_behind", [{"finished": True}, {"terminating": True}])
def test_what_an_earlier_job_of_the_same_name_has_left_behind_declares_nothing_for_a_new_one(
    left_behind: dict[str, Any],
) -> None:
    rig = Rig(a_node("n1", gpu=4))
    rig.create(a_pod("old", gang="g", min_available=1, node="n1", created_at=1, **left_behind))
    rig.create(*[a_pod(f"w{i}", gang="g", min_available=3, created_at=9) for i in range(2)])
    assert rig.gang("default/g").min_available == 3


def test_what_only_a_member_says_that_has_finished_holds_for_the_others() -> None:
    rig = Rig(a_node("n1", gpu=4))
    done = a_pod("done", gang="g", min_available=3, node="n1", created_at=1, finished=True)
    rig.create(done, a_pod("w0", gang="g", min_available=None, created_at=9))
    assert rig.gang("default/g").min_available == 3


def test_a_worker_and_its_replacement_count_once() -> None:
    rig = Rig(a_node("n1", gpu=4))
    old = a_pod("w0", gang="g", min_available=2, rank="0", created_at=1, node="n1")
    other = a_pod("w1", gang="g", min_available=2, rank="1", created_at=1)
    new = a_pod("w2", gang="g", min_available=2, rank="0", created_at=9)
    rig.create(old, new)
    assert rig.gang("default/g").present == 1
    rig.create(other)
    assert rig.gang("default/g").present == 2


def test_two_roles_of_the_same_rank_are_two_members() -> None:
    rig = Rig()
    rig.create(a_pod("ps", gang="g", role="ps", rank="0"), a_pod("w", gang="g", role="worker", rank="0"))
    assert rig.gang("default/g").present == 2


def test_a_waiting_member_that_is_replaced_gives_its_place_to_its_successor() -> None:
    rig = Rig(a_node("n1", gpu=2))
    old = a_pod("w0", gang="g", min_available=1, rank="0", created_at=1)
    new = a_pod("w1", gang="g", min_available=1, rank="0", created_at=9)
    rig.create(old)
    rig.later()
    assert rig.reserved() == 1
    rig.create(new)
    rig.later()
    assert rig.reserved() == 1
    assert rig.node_for(new) == "n1"
    assert "takes the place of this one" in rig.text_for(old)


def test_what_is_wrong_with_a_declaration_is_said_once() -> None:
    rig = Rig(a_node("n1"))
    rig.cluster.upsert_pod_group(a_group(3))
    rig.create(a_pod("w0", gang="g", min_available=4))
    rig.later()
    rig.create(a_pod("w1", gang="g", min_available=4, created_at=5))
    rig.later(1)
    (event,) = [event for event in rig.announcements if event.reason == "GangMisdeclared"]
    assert (event.pod.name, event.kind) == ("w0", "Warning")
    assert event.note.startswith('Gang "default/g": min-available is 3 by its PodGroup, which holds, and 4 by')


def test_a_gang_of_the_group_that_does_not_come_is_missed_after_a_while_and_once() -> None:
    rig = Rig(a_node("n1"))
    terms = Terms(groups=(KEY, GangKey("default/ghost")))
    rig.create(a_pod("w0", gang="g", min_available=2, terms=terms))
    rig.later()
    rig.later(MISSED_AFTER_S - 1)
    assert not [event for event in rig.announcements if event.reason == "GangMisdeclared"]
    rig.later(1)
    rig.later(60)
    (event,) = [event for event in rig.announcements if event.reason == "GangMisdeclared"]
    assert event.note == 'Gang "default/g": its groups name gang "default/ghost", of which there is no member'


def test_a_gang_of_the_group_that_comes_in_time_is_not_missed() -> None:
    rig = Rig(a_node("n1"))
    terms = Terms(groups=(KEY, GangKey("default/late")))
    rig.create(a_pod("w0", gang="g", min_available=2, terms=terms))
    rig.later()
    rig.create(a_pod("l0", gang="late", min_available=1))
    rig.later(MISSED_AFTER_S + 1)
    assert not [event for event in rig.announcements if event.reason == "GangMisdeclared"]


def test_who_is_named_by_other_gangs_is_forgotten_with_them() -> None:
    rig = Rig(a_node("n1", gpu=4))
    other, elsewhere = GangKey("default/other"), GangKey("elsewhere/g")
    first = a_pod("w0", gang="g", min_available=1, terms=Terms(groups=(KEY, other, elsewhere)))
    second = a_pod("o0", gang="other", min_available=1)
    rig.create(first, second, a_pod("e0", namespace="elsewhere", gang="g", min_available=1))
    rig.later()
    assert rig.cluster.gangs.concerned([other]) == {KEY, other}
    assert rig.cluster.gangs.concerned([elsewhere]) == {elsewhere}, "it does not name what names it"

    rig.create(a_pod("w0", gang="g", min_available=1))
    rig.later()
    assert rig.cluster.gangs.concerned([other]) == {other}

    rig.create(first)
    rig.later()
    rig.delete(first)
    assert rig.cluster.gangs.concerned([other]) == {other}


def test_a_pod_groups_status_is_asked_for_once_per_change_and_never_fought_over() -> None:
    rig = Rig(a_node("n1", gpu=2))
    group = structs.replace(a_group(2), uid="u")
    rig.cluster.upsert_pod_group(group)
    pods = [a_pod(f"w{i}", gang="g", min_available=None) for i in range(2)]
    rig.create(*pods)
    rig.later()
    assert [report.status for report in rig.reports] == [GroupStatus("Scheduling")]
    rig.cluster.upsert_pod_group(structs.replace(group, status=GroupStatus("Scheduling")))
    rig.cluster.upsert_pod_group(structs.replace(group, status=GroupStatus("PreScheduling")))
    rig.later()
    assert len(rig.reports) == 1
    for pod in pods:
        rig.bind(pod, rig.node_for(pod))
    rig.later()
    assert [report.status for report in rig.reports[1:]] == [GroupStatus("Scheduled", scheduled=2)]


def test_a_pod_group_of_another_schedulers_pods_is_left_alone() -> None:
    rig = Rig(a_node("n1"))
    rig.cluster.upsert_pod_group(structs.replace(a_group(2), uid="u"))
    rig.create(a_pod("w0", gang="g", min_available=None, scheduler_name="koord-scheduler"))
    rig.later()
    assert rig.reports == []


def test_a_volcano_pod_group_whose_job_names_us_is_inqueue_before_there_are_pods() -> None:
    rig = Rig()
    rig.cluster.upsert_pod_group(PodGroup(VOLCANO, GangKey("default/mnist"), 2, uid="u", job=JOB))
    rig.later()
    assert rig.reports == []
    rig.cluster.upsert_job(a_job(2))
    rig.later()
    assert [report.status.phase for report in rig.reports] == ["Inqueue"]


def test_a_gang_whose_members_name_two_jobs_is_forgotten_with_both() -> None:
    rig = Rig(a_node("n1", gpu=2))
    other = job_key("default", "PyTorchJob", "cifar")
    claims = [GangClaim(KEY, job=job, min_available=2) for job in (JOB, other)]
    pods = [structs.replace(a_pod(f"w{i}"), gang=claim) for i, claim in enumerate(claims)]
    rig.create(*pods)
    assert [rig.cluster.gangs.of_job(job) for job in (JOB, other)] == [[KEY], [KEY]]
    rig.delete(*pods)
    assert [rig.cluster.gangs.of_job(job) for job in (JOB, other)] == [[], []]


def test_a_member_that_another_job_takes_over_leaves_the_former_one() -> None:
    rig = Rig(a_node("n1", gpu=2))
    other = job_key("default", "PyTorchJob", "cifar")
    for job in (JOB, other):
        rig.create(structs.replace(a_pod("w"), gang=GangClaim(KEY, job=job, min_available=1)))
    assert [rig.cluster.gangs.of_job(job) for job in (JOB, other)] == [[], [KEY]]


def test_what_becomes_of_a_job_costs_no_look_at_the_pod_groups_of_all_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten thousand jobs have as many: each operator's note of a pod that runs is a change of its job."""
    rig = Rig()
    other = job_key("default", "PyTorchJob", "other")
    groups = [PodGroup(VOLCANO, GangKey(f"default/{job[-5:]}"), 2, uid=job, job=job) for job in (JOB, other)]
    rig.cluster.replace_pod_groups(VOLCANO, groups)
    monkeypatch.setattr(rig.cluster.gangs, "_pod_groups", _Unread(rig.cluster.gangs._pod_groups))
    rig.cluster.upsert_job(a_job(2))
    rig.later()
    assert [report.group.uid for report in rig.reports] == [JOB]
    rig.cluster.upsert_pod_group(structs.replace(groups[1], job=JOB))
    assert len(rig.cluster.gangs.pod_groups_of_job(JOB)) == 2
    assert rig.cluster.gangs.pod_groups_of_job(other) == []
    rig.cluster.remove_pod_group(VOLCANO, groups[0].key)
    assert rig.cluster.gangs.pod_groups_of_job(JOB) == [groups[1].key]


class _Unread(dict[Any, Any]):
    """A dictionary that nobody goes through."""

    def values(self) -> Any:
        raise AssertionError("a look at all of them")
