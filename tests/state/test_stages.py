"""Members that come later: those the job's templates foretell, and those that are only made once others run."""

from typing import Any

import pytest
from msgspec import structs

from extender.model.claim import GangClaim, GangKey, Terms, job_key
from extender.model.job import JobRole, TrainingJob
from extender.model.node import Node
from extender.model.pod import Occupant, Pod, Tags
from extender.state.expiry import FOLLOWERS_S, LOOK_S
from tests.builders import a_node, a_pod, a_shape
from tests.rig import BINDING_S, GATHERING_S, PATIENCE_S, Rig


def a_role(name: str, replicas: int, *, gpu: int = 1, minimum: int | None = None) -> JobRole:
    return JobRole(name, replicas, minimum, "gang-scheduler", Occupant(a_shape(gpu=gpu), Tags("default", {})))


def of_job(pod: Pod, kind: str, *, role: str) -> Pod:
    """Return the pod as a member of a gang that is derived from the job "j", of one role of it in a TorchJob."""
    job = job_key("default", kind, "j")
    job_role = role if kind == "TorchJob" else ""
    key = GangKey(f"{job}/{job_role}" if job_role else job)
    return structs.replace(pod, role=role, gang=GangClaim(key, job=job, job_role=job_role, derived=True))


TORCH_JOB = TrainingJob(
    job_key("default", "TorchJob", "j"), (a_role("master", 1), a_role("worker", 3, minimum=2)), in_stages=True
)


def torch_pod(name: str, role: str, created_at: float = 0.0) -> Pod:
    return of_job(a_pod(name, created_at=created_at), "TorchJob", role=role)


def test_a_parameter_server_that_comes_first_is_planned_with_the_workers_of_its_jobs_template() -> None:
    rig = Rig(a_node("big", gpu=2), a_node("small", gpu=0))
    roles = (a_role("ps", 1, gpu=0), a_role("worker", 2))
    rig.cluster.upsert_job(TrainingJob(job_key("default", "TFJob", "j"), roles))
    server = of_job(a_pod("ps", gpu=0), "TFJob", role="ps")
    rig.create(server)
    rig.later()
    assert rig.reserved() == 3
    assert rig.node_for(server) == "big"
    rig.create(*[of_job(a_pod(f"w{i}"), "TFJob", role="worker") for i in range(2)])
    rig.later()
    assert rig.reserved() == 3
    assert all(slot.holder for held in rig.cluster.reservations for slot in held.slots)


def test_a_parameter_server_is_turned_away_at_once_when_its_workers_would_not_fit() -> None:
    rig = Rig(a_node("n1", gpu=1))
    roles = (a_role("ps", 1, gpu=0), a_role("worker", 2))
    rig.cluster.upsert_job(TrainingJob(job_key("default", "TFJob", "j"), roles))
    server = of_job(a_pod("ps", gpu=0), "TFJob", role="ps")
    rig.create(server)
    assert "a member Pod that does not exist yet" in rig.text_for(server)


def test_a_master_is_let_in_only_with_room_for_the_workers_that_its_operator_makes_later() -> None:
    rig = Rig(a_node("n1", gpu=2))
    rig.cluster.upsert_job(TORCH_JOB)
    master = torch_pod("master", "master")
    rig.create(master)
    assert "a member Pod that does not exist yet" in rig.text_for(master)
    rig.cluster.upsert_node(a_node("n2", gpu=1))
    rig.later()
    assert rig.node_for(master) in {"n1", "n2"}
    assert rig.reserved() == 3


def test_the_workers_room_is_kept_while_the_master_starts_and_is_theirs_when_they_come() -> None:
    rig = Rig(a_node("n1", gpu=4))
    rig.cluster.upsert_job(TORCH_JOB)
    master = torch_pod("master", "master")
    rig.create(master)
    rig.bind(master, rig.node_for(master))
    rig.later()
    rig.later(10 * GATHERING_S)
    late = a_pod("late", gpu=2, created_at=50)
    assert not rig.ask(late).accepted
    assert rig.ask(a_pod("small", gpu=1, created_at=50)).accepted
    workers = [torch_pod(f"w{i}", "worker", created_at=100) for i in range(3)]
    rig.create(*workers)
    rig.later()
    assert [rig.node_for(worker) for worker in workers] == ["n1"] * 3


def test_the_workers_room_is_given_back_when_they_do_not_come_or_the_job_is_gone() -> None:
    rig = Rig(a_node("n1", gpu=3))
    rig.cluster.upsert_job(TORCH_JOB)
    master = torch_pod("master", "master")
    rig.create(master)
    bound = rig.bind(master, rig.node_for(master))
    rig.later()
    assert rig.reserved() == 2
    rig.later(FOLLOWERS_S)
    assert rig.reserved() == 0

    other = Rig(a_node("n1", gpu=3))
    other.cluster.upsert_job(TORCH_JOB)
    other.create(master)
    other.bind(master, other.node_for(master))
    other.later()
    other.delete(bound)
    other.cluster.remove_job(TORCH_JOB.key)
    other.later()
    assert other.reserved() == 0


def test_a_master_beside_workers_that_are_there_already_is_no_special_case() -> None:
    rig = Rig(a_node("n1", gpu=4))
    rig.cluster.upsert_job(TORCH_JOB)
    rig.create(*[torch_pod(f"w{i}", "worker") for i in range(3)], torch_pod("master", "master"))
    rig.later()
    assert rig.reserved() == 4


def test_a_gang_that_lost_a_member_keeps_its_room_for_the_replacement_as_long_as_its_waiting_time_says() -> None:
    rig = Rig(a_node("n1", gpu=2))
    members = [a_pod(f"w{i}", gang="g", min_available=2) for i in range(2)]
    rig.create(*members)
    policy = {"match_policy": "waiting-and-running"}
    for member in members:
        assert isinstance(member.gang, GangClaim)
        claim = structs.replace(member.gang, terms=structs.replace(member.gang.terms, **policy, waiting_s=100.0))
        rig.bind(structs.replace(member, gang=claim), "n1")
    rig.later()
    rig.delete(members[1])
    rig.later()
    assert rig.reserved() == 1
    late = a_pod("late", created_at=50)
    rig.later(99)
    assert not rig.ask(late).accepted
    rig.later(1)
    assert rig.ask(late).accepted


@pytest.mark.parametrize("held", [False, True])
def test_a_replacement_that_comes_late_has_as_long_to_be_bound_as_any_member(*, held: bool) -> None:
    """Its room was held for longer than that before it came."""
    rig = Rig(a_node("n1", gpu=2))
    terms = Terms(match_policy="waiting-and-running", waiting_s=600.0)
    members = [a_pod(f"w{i}", gang="g", min_available=2, terms=terms, node="n1") for i in range(2)]
    rig.create(*members)
    rig.later()
    rig.delete(members[1])
    rig.later()
    rig.later(5 * BINDING_S)
    late = a_pod("late", gang="g", min_available=2, terms=terms, created_at=9, held=held)
    rig.create(late)
    slot = rig.slot(late)
    if not held:
        assert rig.node_for(late) == "n1"
    rig.later(LOOK_S)
    rig.later(BINDING_S - 1)
    assert rig.slot(late) is slot, "kube-scheduler counts it there"
    rig.later(1)
    assert rig.cluster.reservations.slot_of(late.uid) is not slot


def test_room_is_held_no_longer_than_the_gangs_own_waiting_time_says() -> None:
    rig = Rig(a_node("n1", gpu=2))
    member = a_pod("w0", gang="g", min_available=2)
    assert isinstance(member.gang, GangClaim)
    claim = structs.replace(member.gang, terms=structs.replace(member.gang.terms, waiting_s=5.0))
    rig.create(structs.replace(member, gang=claim))
    rig.later()
    assert rig.reserved() == 2
    rig.later(5)
    assert rig.reserved() == 0


def test_a_node_that_was_refused_by_mistake_is_tried_again_at_once_and_then_ever_more_seldom() -> None:
    rig = Rig(a_node("n1", gpu=1))
    member = a_pod("w0", gang="g", min_available=1)
    rig.create(member)
    rig.later()
    for pause_s in (0.5, 1.0, 2.0, 4.0, 8.0, 10.0, 10.0):
        assert not rig.ask(member, []).accepted
        rig.later(pause_s - 0.1)
        assert rig.reserved() == 0
        rig.later(0.1)
        assert rig.reserved() == 1


def test_a_master_that_is_made_anew_is_let_in_only_with_room_for_new_workers_once_the_former_are_gone() -> None:
    rig = Rig(a_node("n1", gpu=0))
    rig.cluster.upsert_job(TORCH_JOB)
    former = [structs.replace(torch_pod(f"w{i}", "worker"), node_name="n1", terminating=True) for i in range(3)]
    master = torch_pod("master", "master", created_at=9)
    rig.create(*former, master)
    rig.later()
    rig.delete(*former)
    rig.later()
    rig.cluster.upsert_node(a_node("n2", gpu=1))
    rig.later()
    assert rig.node_for(master) is None
    rig.cluster.upsert_node(a_node("n2", gpu=3))
    rig.later()
    assert rig.node_for(master) == "n2"


MASTERS, WORKERS = {"for": "masters"}, {"for": "workers"}


def for_workers(name: str, **options: Any) -> Pod:
    """Return a pod that is let on the workers' nodes only."""
    return a_pod(name, shape=a_shape(node_selector=WORKERS), **options)


def apart_rig(*nodes: Node, priority: int = 0) -> tuple[Rig, Pod]:
    """Return a cluster where a job's master and its workers may not be on the same nodes, and the master."""
    rig = Rig(*nodes)
    master, workers = TORCH_JOB.roles
    confined = structs.replace(workers, sample=Occupant(a_shape(node_selector=WORKERS), Tags("default", {})))
    rig.cluster.upsert_job(structs.replace(TORCH_JOB, roles=(master, confined)))
    pod = a_pod("master", shape=a_shape(node_selector=MASTERS), priority=priority, created_at=10)
    return rig, of_job(pod, "TorchJob", role="master")


def preempting_rig(workers_gpu: int) -> tuple[Rig, Pod]:
    """Return a master that may have a pod killed on its full node, beside a node for its two workers."""
    rig, master = apart_rig(
        a_node("n1", gpu=1, labels=MASTERS), a_node("n2", gpu=workers_gpu, labels=WORKERS), priority=10
    )
    rig.create(a_pod("low", node="n1"), master)
    return rig, master


def test_pods_are_killed_for_a_master_whose_workers_fit_where_it_may_not_be_itself() -> None:
    rig, master = preempting_rig(workers_gpu=2)
    rig.later()
    assert [pod.name for pod in rig.cluster.victims_of(master)] == ["low"]
    assert rig.reserved() == 2, "the workers' room is held meanwhile"
    rig.delete(a_pod("low"))
    rig.later()
    assert rig.node_for(master) == "n1"
    assert rig.reserved() == 3


def test_room_that_only_the_workers_can_use_is_kept_for_a_master_that_has_waited_long_enough() -> None:
    rig, master = apart_rig(a_node("n1", labels=MASTERS), a_node("n2", labels=WORKERS))
    rig.create(*[a_pod(f"s{i}", node="n2") for i in range(2)], master)
    rig.later()
    rig.later(PATIENCE_S)
    rig.delete(a_pod("s0"))
    rig.later()
    assert not rig.ask(for_workers("late", created_at=50), ["n2"]).accepted
    rig.delete(a_pod("s1"))
    rig.later()
    assert rig.node_for(master) == "n1"


def test_what_is_held_for_workers_while_pods_are_killed_for_their_master_is_charged_once() -> None:
    rig, _ = preempting_rig(workers_gpu=3)
    rig.later()
    assert rig.reserved() == 2
    assert rig.ask(for_workers("late", created_at=50), ["n2"]).accepted


def test_room_freed_while_pods_are_killed_for_a_master_is_looked_at_once() -> None:
    rig, _ = preempting_rig(workers_gpu=2)
    rig.later()
    rig.cluster.changes.free_room()
    rig.later()
    assert rig.reserved() == 2
    assert not rig.cluster.changes.room_freed, "the cycle comes to rest"


def test_what_one_worker_still_waits_for_is_kept_beside_what_another_one_holds() -> None:
    rig, master = preempting_rig(workers_gpu=2)
    going = a_pod("going", node="n2", priority=20)
    rig.create(going)
    rig.terminate(going)
    rig.later()
    assert rig.cluster.victims_of(master)
    assert rig.reserved() == 1
    rig.delete(going)
    late = for_workers("late", created_at=50)
    assert not rig.ask(late, ["n2"]).accepted
    rig.later()
    assert rig.reserved() == 2
    assert not rig.ask(late, ["n2"]).accepted


def test_a_master_that_waits_for_another_gang_holds_no_room_for_its_workers() -> None:
    rig = Rig(a_node("n1", gpu=3))
    rig.cluster.upsert_job(TORCH_JOB)
    master = torch_pod("master", "master")
    assert isinstance(master.gang, GangClaim)
    terms = Terms(groups=(master.gang.key, GangKey("default/absent")))
    rig.create(structs.replace(master, gang=structs.replace(master.gang, terms=terms)))
    rig.later()
    assert rig.reserved() == 0
    assert rig.ask(a_pod("late", gpu=3, created_at=50)).accepted
