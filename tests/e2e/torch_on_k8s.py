"""A stand-in for torch-on-k8s' operator, which does not start: what does it make of a TorchJob, and when?

The pods and PodGroups of `pkg/gangscheduler/volcano` and its default order, in which the workers come once the master
runs. The test calls `reconcile` where the operator would watch.
"""

from collections.abc import Iterator

from e2e.cluster import Cluster, Namespace, Object
from e2e.crd import wait_until_served

GROUP_VERSION = "train.distributed.io/v1alpha1"
_ROLES = ("Master", "Worker")  # in the order in which one waits for the other


def crd() -> Object:
    """Return a stand-in for the CustomResourceDefinition of TorchJobs, free-form below `spec`."""
    group, version = GROUP_VERSION.split("/")
    free = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    schema = {"type": "object", "properties": {"spec": free, "status": free}}
    versions = [{"name": version, "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}]
    names = {"kind": "TorchJob", "listKind": "TorchJobList", "plural": "torchjobs", "singular": "torchjob"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"torchjobs.{group}"},
        "spec": {"group": group, "scope": "Namespaced", "names": names, "versions": versions},
    }


def install(cluster: Cluster) -> None:
    """Install TorchJobs."""
    cluster.apply(crd())
    wait_until_served(cluster, GROUP_VERSION, "torchjobs")


def torch_job(workers: int) -> Object:
    """Return a TorchJob of a master and so many workers, with a GPU each."""
    container = {"name": "torch", "image": "train", "resources": {"limits": {"nvidia.com/gpu": "1"}}}
    spec = {"schedulerName": "gang-scheduler", "terminationGracePeriodSeconds": 0, "containers": [container]}
    counts = zip(_ROLES, (1, workers), strict=True)
    roles = {role: {"numTasks": count, "template": {"spec": spec}} for role, count in counts}
    metadata = {"name": "bert"}
    return {"apiVersion": GROUP_VERSION, "kind": "TorchJob", "metadata": metadata, "spec": {"torchTaskSpecs": roles}}


class TorchOnK8s:
    """The stand-in for the operator, for one job."""

    def __init__(self, namespace: Namespace, job: Object, *, gang_scheduling: bool) -> None:
        self._namespace = namespace
        api = namespace.cluster.api
        self._job = api.get(api.path_of(job, namespace.name))
        self._gang_scheduling = gang_scheduling
        """Its flag `--enable-gang-scheduling`: with a PodGroup for each role, or without any."""

    def reconcile(self) -> None:
        """Make the pods whose turn it is."""
        for role in _ROLES:
            self._namespace.apply(*self._role(role))
            running = self._namespace.running(f"task-type={role.lower()}")
            if len(running) < self._job["spec"]["torchTaskSpecs"][role]["numTasks"]:
                return

    def _role(self, role: str) -> Iterator[Object]:
        task = self._job["spec"]["torchTaskSpecs"][role]
        name = f"{self._job['metadata']['name']}-{role.lower()}"
        if self._gang_scheduling:
            yield self._pod_group(name, role, task["numTasks"])
        for index in range(task["numTasks"]):
            yield self._pod(name, role, index, task["template"]["spec"])

    def _pod_group(self, name: str, role: str, least: int) -> Object:
        labels = {"distributed.io/gang-job-name": self._job["metadata"]["name"], "task-type": role.lower()}
        return {
            "apiVersion": "scheduling.volcano.sh/v1beta1",
            "kind": "PodGroup",
            "metadata": {"name": name, "labels": labels, "ownerReferences": [self._owner()]},
            "spec": {"minMember": least, "queue": "default"},
        }

    def _pod(self, group: str, role: str, index: int, spec: Object) -> Object:
        labels = {
            "group-name": "train.distributed.io",
            "job-name": self._job["metadata"]["name"],
            "task-type": role.lower(),
            "task-index": str(index),
        }
        annotations = {"scheduling.k8s.io/group-name": group} if self._gang_scheduling else {}
        metadata = {"name": f"{group}-{index}", "labels": labels, "annotations": annotations}
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {**metadata, "ownerReferences": [self._owner()]},
            "spec": spec,
        }

    def _owner(self) -> Object:
        metadata = self._job["metadata"]
        return {
            "apiVersion": GROUP_VERSION,
            "kind": "TorchJob",
            "name": metadata["name"],
            "uid": metadata["uid"],
            "controller": True,
        }
