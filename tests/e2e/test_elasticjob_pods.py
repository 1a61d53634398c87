"""The pods of an ElasticJob carry the names, labels, owner and environment that DLRover gives them."""

from typing import Any

from e2e import scenarios
from e2e.client import Object
from e2e.elasticjob.pods import master_pod, worker_pods


def job(**worker: Any) -> Object:
    made = scenarios.seed_job("dlrover", min_available=4)
    made["metadata"]["uid"] = "u1"
    made["spec"]["replicaSpecs"]["worker"] |= worker
    return made


def test_a_worker_is_named_and_labelled_as_dlrovers_master_does() -> None:
    *_, worker = worker_pods(job())
    assert worker["metadata"]["name"] == "torch-mnist-gang-edljob-worker-3"
    assert worker["metadata"]["labels"] == {
        "app": "dlrover",
        "elasticjob.dlrover/name": "torch-mnist-gang",
        "elasticjob.dlrover/replica-type": "worker",
        "elasticjob.dlrover/replica-index": "3",
        "elasticjob.dlrover/rank-index": "3",
        "elasticjob.dlrover/relaunch-count": "0",
    }


def test_the_job_owns_its_pods_and_only_the_operators_own_pod_calls_it_the_controller() -> None:
    owner = {
        "apiVersion": "elastic.iml.github.io/v1alpha1",
        "kind": "ElasticJob",
        "name": "torch-mnist-gang",
        "uid": "u1",
        "blockOwnerDeletion": True,
    }
    assert master_pod(job())["metadata"]["ownerReferences"] == [owner | {"controller": True}]
    assert all(worker["metadata"]["ownerReferences"] == [owner] for worker in worker_pods(job()))


def test_annotations_become_strings_and_the_template_is_left_as_it_was() -> None:
    one = job()
    workers = list(worker_pods(one))
    annotations = {
        "gang.scheduling.koordinator.sh/name": "torch-mnist-gang",
        "gang.scheduling.koordinator.sh/min-available": "4",
    }
    assert all(worker["metadata"]["annotations"] == annotations for worker in workers)
    assert one == job()


def test_the_restart_policy_is_never_and_the_scheduler_is_the_templates() -> None:
    assert {(pod["spec"]["restartPolicy"], pod["spec"]["schedulerName"]) for pod in worker_pods(job())} == {
        ("Never", "gang-scheduler")
    }


def test_a_worker_learns_its_rank_and_the_number_of_workers() -> None:
    _, second, *_ = worker_pods(job())
    environment = {each["name"]: each["value"] for each in second["spec"]["containers"][0]["env"]}
    assert environment["NODE_NUM"] == environment["WORLD_SIZE"] == "4"
    assert environment["NODE_RANK"] == environment["RANK"] == "1"
    assert environment["DLROVER_MASTER_ADDR"] == "elasticjob-torch-mnist-gang-dlrover-master:50001"


def test_parameter_servers_come_in_the_order_of_the_spec_and_under_their_own_role() -> None:
    one = job(replicas=1)
    one["spec"]["replicaSpecs"] = {"ps": one["spec"]["replicaSpecs"]["worker"] | {"replicas": 2}} | one["spec"][
        "replicaSpecs"
    ]
    names = [pod["metadata"]["name"] for pod in worker_pods(one)]
    job_name = "torch-mnist-gang"
    assert names == [f"{job_name}-edljob-ps-0", f"{job_name}-edljob-ps-1", f"{job_name}-edljob-worker-0"]


def test_a_priority_that_is_a_fraction_makes_one_more_worker_important_than_it_says() -> None:
    classes = [pod["spec"]["priorityClassName"] for pod in worker_pods(job(priority="0.5"))]
    assert classes == ["high", "high", "high", "low"]


def test_the_master_is_no_member_of_the_workers_gang() -> None:
    master = master_pod(job())
    assert master["metadata"]["name"] == "elasticjob-torch-mnist-gang-dlrover-master-0"
    assert master["metadata"]["labels"]["elasticjob.dlrover/replica-type"] == "dlrover-master"
    assert master["metadata"]["annotations"] == {}
    assert "schedulerName" not in master["spec"]


def test_what_the_jobs_own_metadata_says_goes_onto_the_master_alone() -> None:
    one = job()
    one["metadata"]["annotations"] = {"pending_timeout": "600"}
    assert master_pod(one)["metadata"]["annotations"] == {"pending_timeout": "600"}
    assert all("pending_timeout" not in worker["metadata"]["annotations"] for worker in worker_pods(one))
