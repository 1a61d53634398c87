"""The stand-in for DLRover's operator and job master: when does it make and delete the pods of a job?"""

import pytest

from e2e import scenarios
from e2e.cluster import Cluster, Namespace, wait_for
from e2e.nodes import read_nodes
from tests.e2e.steady import stays

pytestmark = pytest.mark.usefixtures("elasticjob_operator")

DEADLINE_S = 20.0
MASTER = "elasticjob-torch-mnist-gang-dlrover-master-0"
WORKERS = [f"torch-mnist-gang-edljob-worker-{index}" for index in range(4)]


@pytest.fixture
def jobs(cluster: Cluster, namespace: Namespace) -> Namespace:
    cluster.add_nodes(read_nodes(scenarios.FOLDER / "thirteen-nodes.yaml"))
    return namespace


def test_an_unquoted_min_available_reaches_the_pods_as_a_string(jobs: Namespace) -> None:
    jobs.apply((scenarios.FOLDER / "seed-job.yaml").read_text(encoding="utf-8").replace("dlrover\n", f"{jobs.name}\n"))
    wait_for(lambda: names(jobs) == [MASTER, *WORKERS], DEADLINE_S, "the workers follow the master")
    for pod in jobs.pods("elasticjob.dlrover/replica-type=worker"):
        assert pod["metadata"]["annotations"]["gang.scheduling.koordinator.sh/min-available"] == "4"


def test_a_suspended_job_has_only_its_master_until_it_is_resumed(jobs: Namespace) -> None:
    job = scenarios.seed_job(jobs.name, min_available=4)
    job["spec"]["suspend"] = True
    jobs.apply(job)
    wait_for(lambda: jobs.running() == [MASTER], DEADLINE_S, "the master runs")
    assert stays(lambda: names(jobs) == [MASTER])
    assert phase(jobs) == "Suspended"

    suspend(jobs, False)
    wait_for(lambda: names(jobs) == [MASTER, *WORKERS], DEADLINE_S, "the workers are made")
    wait_for(lambda: phase(jobs) == "Running", DEADLINE_S, "the job runs")

    suspend(jobs, True)
    wait_for(lambda: phase(jobs) == "Suspended", DEADLINE_S, "the job is suspended again")
    assert stays(lambda: names(jobs) == [MASTER, *WORKERS])


def test_the_pods_go_with_their_job_and_a_job_made_anew_gets_pods_of_its_own(jobs: Namespace) -> None:
    job = scenarios.seed_job(jobs.name, min_available=4)
    jobs.apply(job)
    wait_for(lambda: names(jobs) == [MASTER, *WORKERS], DEADLINE_S, "the pods are made")
    old = {pod["metadata"]["uid"] for pod in jobs.pods()}

    jobs.cluster.api.delete(path(jobs))
    jobs.apply(job)
    wait_for(
        lambda: names(jobs) == [MASTER, *WORKERS] and old.isdisjoint(pod["metadata"]["uid"] for pod in jobs.pods()),
        DEADLINE_S,
        "all five pods are new",
    )


def test_a_job_of_the_same_name_in_another_namespace_is_another_job(jobs: Namespace) -> None:
    suspended = scenarios.seed_job(jobs.name, min_available=4)
    suspended["spec"]["suspend"] = True
    jobs.apply(suspended)
    others = jobs.cluster.namespace(f"{jobs.name}-other")
    try:
        others.apply(scenarios.seed_job(others.name, min_available=4))
        wait_for(lambda: names(others) == [MASTER, *WORKERS], DEADLINE_S, "the job that is not suspended has its pods")
        assert names(jobs) == [MASTER]
    finally:
        others.delete()


def names(jobs: Namespace) -> list[str]:
    return sorted(pod["metadata"]["name"] for pod in jobs.pods())


def phase(jobs: Namespace) -> str:
    return str(jobs.cluster.api.get(path(jobs)).get("status", {}).get("phase"))


def suspend(jobs: Namespace, suspended: bool) -> None:
    jobs.cluster.api.patch(path(jobs), {"spec": {"suspend": suspended}})


def path(jobs: Namespace) -> str:
    return f"/apis/elastic.iml.github.io/v1alpha1/namespaces/{jobs.name}/elasticjobs/torch-mnist-gang"
