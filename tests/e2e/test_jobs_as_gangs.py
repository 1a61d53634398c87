"""Jobs that say nothing of gangs: one that does not fit has no pod bound, and with one more node it runs whole.

Kubernetes' own Job controller and Kubeflow's operator are the real ones; DLRover's and torch-on-k8s' are stand-ins.
"""

import copy
import time
from collections.abc import Iterator

import pytest

from e2e import scenarios
from e2e.client import ApiError
from e2e.cluster import Cluster, Namespace, Object, wait_for
from e2e.crd import wait_until_served
from e2e.nodes import make_node, read_nodes
from tests.e2e import torch_on_k8s
from tests.e2e.pods import pod
from tests.e2e.steady import stays
from tests.e2e.torch_on_k8s import TorchOnK8s, torch_job

KIND_NOTICED_S = 10.0
DEADLINE_S = 25.0  # a kind that was just installed is noticed within ten


def test_an_indexed_job(cluster: Cluster, namespace: Namespace) -> None:
    add_gpus(cluster, 2)
    namespace.apply(indexed_job(pods=3))
    wait_until_told(namespace, pods=3)
    assert stays(lambda: not bound(namespace))

    cluster.add_node("one-more", gpus=1)
    wait_for(lambda: len(namespace.running()) == 3, DEADLINE_S, "all three run")


@pytest.mark.usefixtures("training_operator")
def test_a_tfjob(cluster: Cluster, namespace: Namespace) -> None:
    add_gpus(cluster, 3)
    namespace.apply(tf_job(namespace))
    wait_until_told(namespace, pods=5)
    assert stays(lambda: not bound(namespace))

    cluster.add_node("one-more", gpus=1)
    wait_for(lambda: len(namespace.running()) == 5, DEADLINE_S, "all five run")


@pytest.fixture
def dragons_tf_jobs(cluster: Cluster) -> Iterator[None]:
    """Let TFJobs have the two fields that DRAGON adds, which Kubeflow's definition of them would take away."""
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/tfjobs.kubeflow.org"
    kubeflows = cluster.api.get(path)["spec"]["versions"]
    dragons = copy.deepcopy(kubeflows)
    spec = dragons[0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    spec["properties"] |= {"min-instances": {"type": "integer"}, "max-instances": {"type": "integer"}}
    cluster.api.patch(path, {"spec": {"versions": dragons}})
    cluster.restart_extender()  # a watch that was open before is served by the old definition for another minute
    yield
    cluster.api.patch(path, {"spec": {"versions": kubeflows}})


@pytest.mark.usefixtures("training_operator", "dragons_tf_jobs")
def test_dragons_tfjob_with_min_instances_begins_with_so_many_workers_and_its_parameter_server(
    cluster: Cluster, namespace: Namespace
) -> None:
    job = tf_job(namespace)
    job["spec"] |= {"min-instances": 2, "max-instances": 4}
    begins_with_two_workers(cluster, namespace, job)


@pytest.mark.usefixtures("training_operator")
def test_min_instances_as_an_annotation_where_kubeflows_definition_leaves_no_room_for_it(
    cluster: Cluster, namespace: Namespace
) -> None:
    job = tf_job(namespace)
    worker = job["spec"]["tfReplicaSpecs"]["Worker"]["template"]
    worker["metadata"] = {"annotations": {"dragon/min-instances": "2"}}
    begins_with_two_workers(cluster, namespace, job)


def begins_with_two_workers(cluster: Cluster, namespace: Namespace, job: Object) -> None:
    add_gpus(cluster, 1)
    wait_for(lambda: is_accepted(namespace, job), DEADLINE_S, "the API server knows the job's fields")
    wait_until_told(namespace, pods=5)
    assert stays(lambda: not bound(namespace))

    cluster.add_node("one-more", gpus=1)
    wait_for(lambda: len(namespace.running()) == 3, DEADLINE_S, "the parameter server and two workers run")
    assert "job1-ps-0" in namespace.running()

    cluster.add_nodes([make_node(f"further-{index}", gpus=1) for index in range(2)])
    wait_for(lambda: len(namespace.running()) == 5, DEADLINE_S, "all five run")


@pytest.mark.usefixtures("elasticjob_operator")
def test_an_elasticjob_whose_master_runs_before_its_workers_exist(cluster: Cluster, namespace: Namespace) -> None:
    two_more = read_nodes(scenarios.FOLDER / "two-more-gpu-nodes.yaml")
    cluster.add_nodes([*read_nodes(scenarios.FOLDER / "thirteen-nodes.yaml"), two_more[0]])
    job = scenarios.seed_job(namespace.name, min_available=4)
    del job["spec"]["replicaSpecs"]["worker"]["template"]["metadata"]
    namespace.apply(job)
    workers = "elasticjob.dlrover/replica-type=worker"
    wait_until_told(namespace, pods=4, selector=workers)
    assert stays(lambda: not bound(namespace, workers))

    cluster.add_nodes(two_more[1:])
    wait_for(lambda: len(namespace.running(workers)) == 4, DEADLINE_S, "all four workers run")


@pytest.fixture
def torch_jobs(cluster: Cluster) -> Iterator[None]:
    """Install TorchJobs and Volcano's PodGroups, as torch-on-k8s has them."""
    pod_groups = scenarios.pod_group_crd("scheduling.volcano.sh", "v1beta1")
    torch_on_k8s.install(cluster)
    cluster.apply(pod_groups)
    wait_until_served(cluster, "scheduling.volcano.sh/v1beta1", "podgroups")
    yield
    paths = [cluster.api.path_of(each) for each in (pod_groups, torch_on_k8s.crd())]
    for path in paths:
        cluster.api.delete(path)
    wait_for(lambda: not any(map(cluster.api.find, paths)), DEADLINE_S, "the kinds are gone")


@pytest.mark.usefixtures("torch_jobs")
@pytest.mark.parametrize("gang_scheduling", [True, False], ids=["with a PodGroup for each role", "by the job alone"])
def test_a_torchjob_whose_workers_come_once_the_master_runs(
    cluster: Cluster, namespace: Namespace, *, gang_scheduling: bool
) -> None:
    add_gpus(cluster, 3)
    namespace.apply(torch_job(workers=3))
    operator = TorchOnK8s(namespace, torch_job(workers=3), gang_scheduling=gang_scheduling)
    time.sleep(KIND_NOTICED_S)  # the job's kind was just installed
    operator.reconcile()
    wait_until_told(namespace, pods=1)
    assert stays(lambda: not bound(namespace)), "the master would run for nothing: its workers do not fit beside it"

    cluster.add_node("one-more", gpus=1)
    wait_for(lambda: namespace.running() == ["bert-master-0"], DEADLINE_S, "the master runs")
    namespace.apply(pod("passer-by"))
    assert stays(lambda: namespace.running() == ["bert-master-0"]), "the workers' room is theirs"
    operator.reconcile()
    wait_for(lambda: len(namespace.running()) == 4, DEADLINE_S, "the workers run, too")


def indexed_job(pods: int) -> Object:
    container = {"name": "main", "image": "train", "resources": {"limits": {"nvidia.com/gpu": "1"}}}
    spec = {
        "schedulerName": "gang-scheduler",
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 0,
        "containers": [container],
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "sweep"},
        "spec": {
            "completionMode": "Indexed",
            "completions": pods,
            "parallelism": pods,
            "template": {"spec": spec},
        },
    }


def tf_job(namespace: Namespace) -> Object:
    """Return the TFJob of one parameter server and four workers, without its gang metadata."""
    job = scenarios.tf_job(namespace.name)
    for role in job["spec"]["tfReplicaSpecs"].values():
        del role["template"]["metadata"]
    return job


def is_accepted(namespace: Namespace, job: Object) -> bool:
    """Create the job, unless the API server does not know its fields yet."""
    try:
        namespace.apply(job)
    except ApiError as error:
        if "unknown field" not in error.message and "field not declared in schema" not in error.message:
            raise
        return False
    return True


def add_gpus(cluster: Cluster, count: int) -> None:
    cluster.add_nodes([make_node(f"gpu-{index}", gpus=1) for index in range(count)])


def wait_until_told(namespace: Namespace, pods: int, selector: str = "") -> None:
    def told() -> bool:
        names = [pod["metadata"]["name"] for pod in namespace.pods(selector)]
        reasons = ("Insufficient nvidia.com/gpu", "gets rejected")
        return len(names) == pods and all(
            any(all(reason in event["message"] for reason in reasons) for event in namespace.events(name))
            for name in names
        )

    wait_for(told, DEADLINE_S, f"{pods} pods exist, and each says what its gang lacks")


def bound(namespace: Namespace, selector: str = "") -> list[str]:
    return [pod["metadata"]["name"] for pod in namespace.pods(selector) if pod["spec"].get("nodeName")]
