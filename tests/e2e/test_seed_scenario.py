"""Four workers that each need a GPU, on thirteen nodes of which two have one: DLRover's gang example, by our scheduler.

The job is an ElasticJob; a stand-in for DLRover's operator makes its pods.
"""

from collections import Counter

import pytest

from e2e import scenarios
from e2e.cluster import Cluster, Namespace, wait_for
from e2e.nodes import read_nodes
from tests.e2e.gang_watch import SETTLING_S, watch_gangs
from tests.e2e.steady import stays

pytestmark = pytest.mark.usefixtures("elasticjob_operator")

WORKERS = "elasticjob.dlrover/replica-type=worker"
WORKER_NAMES = [f"torch-mnist-gang-edljob-worker-{index}" for index in range(4)]
DEADLINE_S = 20.0


@pytest.fixture
def thirteen_nodes(cluster: Cluster, namespace: Namespace) -> Namespace:
    cluster.add_nodes(read_nodes(scenarios.FOLDER / "thirteen-nodes.yaml"))
    return namespace


def test_nothing_runs_and_describe_pod_says_why(thirteen_nodes: Namespace) -> None:
    jobs = thirteen_nodes
    jobs.apply(scenarios.seed_job(jobs.name, min_available=4))
    reason = (
        f'Gang "{jobs.name}/torch-mnist-gang" gets rejected due to member Pod "torch-mnist-gang-edljob-worker-2" is '
        'unschedulable with reason "0/13 nodes are available: 2 Insufficient nvidia.com/gpu, 3 node(s) had untolerated '
        "taint {node-role.kubernetes.io/control-plane: }, 8 node(s) didn't match Pod's node affinity/selector.\""
    )
    wait_for(lambda: phases(jobs) == {"Pending": 4}, DEADLINE_S, "four workers wait")
    wait_for(lambda: all(reason in jobs.describe_pod(worker) for worker in WORKER_NAMES), DEADLINE_S, reason)
    assert stays(lambda: phases(jobs) == {"Pending": 4})


def test_with_min_available_two_exactly_two_run_and_the_others_follow_when_there_is_room(
    cluster: Cluster, thirteen_nodes: Namespace
) -> None:
    jobs = thirteen_nodes
    jobs.apply(scenarios.seed_job(jobs.name, min_available=2))
    wait_for(lambda: phases(jobs) == {"Running": 2, "Pending": 2}, DEADLINE_S, "two run, two wait")
    assert stays(lambda: phases(jobs) == {"Running": 2, "Pending": 2})
    cluster.add_nodes(read_nodes(scenarios.FOLDER / "two-more-gpu-nodes.yaml"))
    wait_for(lambda: phases(jobs) == {"Running": 4}, DEADLINE_S, "all four run")


def test_a_gang_of_four_starts_as_one_when_two_more_gpu_nodes_join(cluster: Cluster, thirteen_nodes: Namespace) -> None:
    jobs = thirteen_nodes
    jobs.apply(scenarios.seed_job(jobs.name, min_available=4))
    wait_for(lambda: phases(jobs) == {"Pending": 4}, DEADLINE_S, "four workers wait")
    with watch_gangs(jobs) as watch:
        cluster.add_nodes(read_nodes(scenarios.FOLDER / "two-more-gpu-nodes.yaml"))
        wait_for(lambda: phases(jobs) == {"Running": 4}, DEADLINE_S, "all four run")
    assert watch.longest_in_part_s() < SETTLING_S


def phases(jobs: Namespace) -> Counter[str]:
    return Counter(pod["status"]["phase"] for pod in jobs.pods(WORKERS))
