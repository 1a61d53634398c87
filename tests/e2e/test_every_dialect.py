"""Every way to declare a gang on its pods: one that does not fit holds no room, and with one more node it runs whole.

Pods that nobody takes for a gang would be bound one by one, as far as the room goes.
"""

from collections.abc import Iterator

import pytest

from e2e import scenarios
from e2e.cluster import Cluster, Namespace, wait_for
from e2e.crd import wait_until_served
from e2e.nodes import make_node
from tests.e2e.dialect_samples import GPU, Sample
from tests.e2e.steady import stays

pytestmark = pytest.mark.usefixtures("priority_classes")

DEADLINE_S = 25.0  # a kind that was just installed is noticed within ten

POD_GROUPS = {
    "scheduling.sigs.k8s.io": "v1alpha1",
    "scheduling.x-k8s.io": "v1alpha1",
    "scheduling.volcano.sh": "v1beta1",
}

SAMPLES = [
    Sample("koordinator", 1, {"torch-mnist-edljob-worker-0": 4}),
    Sample("koordinator-crd", 1, {"mnist-0": 3}),
    Sample("ack", 1, {"pytorch-test-worker-0": 3}),
    Sample("scheduler-plugins", 1, {"mnist-master-0": 2}),
    Sample("volcano", 1, {"dist-mnist-worker-0": 2, "by-the-newer-name": 1}),
    Sample("elasticjob", 2, {"llama-worker-0": 2}),
    Sample("kubeshare", 1, {"resnet18-worker-0": 2}),
    Sample("kubeshare", 1, {"by-the-readmes-name": 3}),
    Sample("upstream", 1, {"llama-0": 4}),
]


@pytest.fixture(scope="module", autouse=True)
def kinds(cluster: Cluster) -> Iterator[None]:
    """Install every scheduler's PodGroup."""
    objects = [scenarios.pod_group_crd(group, version) for group, version in POD_GROUPS.items()]
    cluster.apply(*objects)
    for group, version in POD_GROUPS.items():
        wait_until_served(cluster, f"{group}/{version}", "podgroups")
    yield
    paths = [cluster.api.path_of(each) for each in objects]
    for path in paths:
        cluster.api.delete(path)
    wait_for(lambda: not any(map(cluster.api.find, paths)), DEADLINE_S, "the kinds are gone")


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: f"{sample.name}-{next(iter(sample.members))}")
def test_a_gang_that_lacks_one_node_holds_none_and_runs_whole_once_it_is_there(
    cluster: Cluster, namespace: Namespace, sample: Sample
) -> None:
    gpus = sample.gpus_a_member()
    cluster.add_nodes([make_node(f"gpu-{index}", gpus) for index in range(sample.size - 1)])
    namespace.apply(*sample.objects())
    wait_for(lambda: all_are_told(namespace, f"Insufficient {GPU}"), DEADLINE_S, "every pod says what is lacking")
    assert stays(lambda: not bound(namespace))

    cluster.add_node("one-more", gpus)
    wait_for(lambda: len(namespace.running()) == sample.size, DEADLINE_S, "all of them run")


def test_as_many_workers_as_minmember_do_not_run_without_the_parameter_server_of_mintaskmember(
    cluster: Cluster, namespace: Namespace
) -> None:
    cluster.add_nodes([make_node(f"gpu-{index}", gpus=1, cpu="4") for index in range(3)])
    group, *pods = Sample("volcano", 1, {"dist-mnist-worker-0": 3, "by-the-newer-name": 1}).objects()
    parameter_server = next(pod for pod in pods if pod["metadata"]["name"].startswith("by-the-newer-name"))
    parameter_server["spec"]["containers"][0]["resources"] = {"limits": {"cpu": "8"}}
    namespace.apply(group, *pods)
    wait_for(lambda: all_are_told(namespace, "Insufficient cpu"), DEADLINE_S, "every pod says what is lacking")
    assert stays(lambda: not bound(namespace))

    cluster.add_node("one-more", cpu="8")
    wait_for(lambda: len(namespace.running()) == 4, DEADLINE_S, "all of them run")


def all_are_told(namespace: Namespace, reason: str) -> bool:
    pods = [pod["metadata"]["name"] for pod in namespace.pods()]
    return all(any(reason in event["message"] for event in namespace.events(pod)) for pod in pods)


def bound(namespace: Namespace) -> list[str]:
    return [pod["metadata"]["name"] for pod in namespace.pods() if pod["spec"].get("nodeName")]
