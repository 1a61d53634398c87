"""Gangs that are declared otherwise than by annotations: by a PodGroup whose CRD comes late, and by the job alone."""

from collections.abc import Iterator

import pytest

from e2e import scenarios
from e2e.cluster import Cluster, Namespace, Object, wait_for
from e2e.crd import wait_until_served
from tests.e2e.steady import stays

DEADLINE_S = 20.0
PICKED_UP_S = 10.0
"""A kind that is installed later is asked for every eight seconds."""

KOORDINATOR = ("scheduling.sigs.k8s.io", "v1alpha1", {"labels": {"pod-group.scheduling.sigs.k8s.io": "g"}})
SCHEDULER_PLUGINS = ("scheduling.x-k8s.io", "v1alpha1", {"labels": {"scheduling.x-k8s.io/pod-group": "g"}})
VOLCANO = ("scheduling.volcano.sh", "v1beta1", {"annotations": {"scheduling.k8s.io/group-name": "g"}})


class PodGroups:
    """The PodGroups of one scheduler, whose CRD is installed when the test says so."""

    def __init__(self, cluster: Cluster, group: str, version: str, metadata: Object) -> None:
        self.metadata = metadata
        self._cluster = cluster
        self._api_version = f"{group}/{version}"
        self._crd = scenarios.pod_group_crd(group, version)

    def install(self) -> None:
        self._cluster.apply(self._crd)
        wait_until_served(self._cluster, self._api_version, "podgroups")

    def uninstall(self) -> None:
        path = self._cluster.api.path_of(self._crd)
        self._cluster.api.delete(path)
        wait_for(lambda: self._cluster.api.find(path) is None, DEADLINE_S, "the CRD is gone")

    def of(self, min_member: int) -> Object:
        return {
            "apiVersion": self._api_version,
            "kind": "PodGroup",
            "metadata": {"name": "g"},
            "spec": {"minMember": min_member},
        }


@pytest.fixture(params=[KOORDINATOR, SCHEDULER_PLUGINS, VOLCANO], ids=lambda dialect: dialect[0])
def pod_groups(request: pytest.FixtureRequest, cluster: Cluster) -> Iterator[PodGroups]:
    pod_groups = PodGroups(cluster, *request.param)
    yield pod_groups
    pod_groups.uninstall()


def worker(index: int, metadata: Object) -> Object:
    limits = {"cpu": "1", "memory": "1Gi", "nvidia.com/gpu": "1"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"worker-{index}", **metadata},
        "spec": {
            "schedulerName": "gang-scheduler",
            "terminationGracePeriodSeconds": 0,
            "containers": [{"name": "main", "image": "train", "resources": {"limits": limits}}],
        },
    }


def test_pods_wait_for_a_pod_group_whose_kind_is_installed_later(
    cluster: Cluster, namespace: Namespace, pod_groups: PodGroups
) -> None:
    cluster.add_node("gpu", gpus=2)
    namespace.apply(*(worker(index, pod_groups.metadata) for index in range(3)))
    wait_for(lambda: "nobody says how many" in last_event(namespace), DEADLINE_S, "the pods are told what is missing")
    assert not bound(namespace)

    pod_groups.install()
    namespace.apply(pod_groups.of(min_member=3))
    wait_for(lambda: "Insufficient nvidia.com/gpu" in last_event(namespace), PICKED_UP_S, "the PodGroup is heeded")
    assert stays(lambda: not bound(namespace))

    cluster.api.patch(cluster.api.path_of(pod_groups.of(2), namespace.name), {"spec": {"minMember": 2}})
    wait_for(lambda: len(namespace.running()) == 2, DEADLINE_S, "two run, since two are enough now")
    wait_for(lambda: status(namespace, pod_groups) == ("Running", 2), DEADLINE_S, "the PodGroup's status says so")


@pytest.mark.usefixtures("training_operator")
def test_a_pytorchjob_without_gang_metadata_runs_whole_or_not_at_all(cluster: Cluster, namespace: Namespace) -> None:
    for index in range(3):
        cluster.add_node(f"gpu-{index}", gpus=1)
    namespace.apply(scenarios.pytorch_job(namespace.name))
    wait_for(lambda: len(namespace.pods()) == 4, DEADLINE_S, "the training operator makes the four pods")
    assert stays(lambda: not bound(namespace))
    rejection = f'Gang "{namespace.name}/pytorchjob/mnist" gets rejected'
    wait_for(
        lambda: rejection in namespace.describe_pod("mnist-worker-0"),
        DEADLINE_S,
        "the job is known, though its CRD was installed only a moment ago, and its pod's events say why it waits",
    )

    cluster.add_node("gpu-3", gpus=1)
    wait_for(lambda: len(namespace.running()) == 4, DEADLINE_S, "all four run")


def status(namespace: Namespace, pod_groups: PodGroups) -> tuple[str, int]:
    group = namespace.cluster.api.get(namespace.cluster.api.path_of(pod_groups.of(2), namespace.name))
    written = group.get("status", {})
    return written.get("phase", ""), written.get("running", 0)


def bound(namespace: Namespace) -> list[str]:
    return [pod["metadata"]["name"] for pod in namespace.pods() if pod["spec"].get("nodeName")]


def last_event(namespace: Namespace) -> str:
    return "\n".join(event["message"] for event in namespace.events("worker-0")[-2:])
