"""A TFJob of Kubeflow's own training operator: its parameter server and its four workers run together or not at all."""

import pytest

from e2e import scenarios
from e2e.cluster import Cluster, Namespace, wait_for
from tests.e2e.gang_watch import SETTLING_S, watch_gangs
from tests.e2e.steady import stays

pytestmark = pytest.mark.usefixtures("training_operator")

JOB_PODS = "training.kubeflow.org/job-name=job1"
ALL_FIVE = ["job1-ps-0", "job1-worker-0", "job1-worker-1", "job1-worker-2", "job1-worker-3"]
DEADLINE_S = 20.0


def test_all_five_pods_run_where_they_fit(cluster: Cluster, namespace: Namespace) -> None:
    add_gpu_nodes(cluster, 4)
    with watch_gangs(namespace) as watch:
        namespace.apply(scenarios.tf_job(namespace.name))
        wait_for(lambda: sorted(namespace.running(JOB_PODS)) == ALL_FIVE, DEADLINE_S, "all five run")
    assert watch.longest_in_part_s() < SETTLING_S


def test_no_pod_is_bound_while_one_does_not_fit_and_all_five_are_as_soon_as_it_does(
    cluster: Cluster, namespace: Namespace
) -> None:
    add_gpu_nodes(cluster, 3)
    with watch_gangs(namespace) as watch:
        namespace.apply(scenarios.tf_job(namespace.name))
        wait_for(lambda: names(namespace) == ALL_FIVE, DEADLINE_S, "the training operator makes the five pods")
        assert stays(lambda: not watch.bound["job1"])
        cluster.add_node("gpu-3", gpus=1)
        wait_for(lambda: sorted(namespace.running(JOB_PODS)) == ALL_FIVE, DEADLINE_S, "all five run")
    assert watch.longest_in_part_s() < SETTLING_S


def test_the_room_of_the_parameter_server_counts_too(cluster: Cluster, namespace: Namespace) -> None:
    for index in range(4):
        cluster.add_node(f"gpu-{index}", gpus=1, cpu="4")  # a worker's CPUs and none to spare
    with watch_gangs(namespace) as watch:
        namespace.apply(scenarios.tf_job(namespace.name))
        wait_for(lambda: names(namespace) == ALL_FIVE, DEADLINE_S, "the training operator makes the five pods")
        assert stays(lambda: not watch.bound["job1"])
        cluster.add_node("cpu-0", cpu="4")
        wait_for(lambda: sorted(namespace.running(JOB_PODS)) == ALL_FIVE, DEADLINE_S, "all five run")
    assert watch.longest_in_part_s() < SETTLING_S


def add_gpu_nodes(cluster: Cluster, count: int) -> None:
    for index in range(count):
        cluster.add_node(f"gpu-{index}", gpus=1)


def names(namespace: Namespace) -> list[str]:
    return sorted(pod["metadata"]["name"] for pod in namespace.pods(JOB_PODS))
