"""What do DLRover's operator and master do to the pods of a job?

A stand-in for both: the master pod first, the workers one after another once it runs, none while the job is suspended;
suspending a job that has its workers leaves them alone. Pods that fail or are deleted are not launched again, and there
are no Services.

It asks the API server again and again instead of watching, and remembers nothing but which pods it made: by the uid of
their job, so that a job made anew, or of the same name in another namespace, is another job.
"""

import time
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from http.client import HTTPException

from e2e.client import ApiClient, ApiError, Object
from e2e.elasticjob.pods import GROUP_VERSION, JOB_LABEL, master_name, master_pod, worker_pods

_POLL_S = 0.1  # a worker then comes as late as a watch would bring it, and the API server does not notice

_NO_JOB = ""  # the uid under which pods go that only bear a job's label


class ElasticJobOperator:
    """Brings the pods of every ElasticJob of the cluster to what its spec asks for."""

    def __init__(self, api: ApiClient) -> None:
        self._api = api
        self._made: defaultdict[str, set[str]] = defaultdict(set)

    def run(self) -> None:
        """Reconcile for ever."""
        while True:
            self._try(self.reconcile_all)
            time.sleep(_POLL_S)

    def reconcile_all(self) -> None:
        """Look at every job once."""
        jobs = self._list(f"/apis/{GROUP_VERSION}/elasticjobs")
        pods: defaultdict[str, dict[str, Object]] = defaultdict(dict)
        for pod in self._list(f"/api/v1/pods?labelSelector={JOB_LABEL}"):
            pods[_owner_uid(pod)][pod["metadata"]["name"]] = pod
        for job in jobs:
            if "deletionTimestamp" not in job["metadata"]:
                self._try(partial(self._reconcile, job, pods[job["metadata"]["uid"]]))
        self._delete_orphans(pods, {job["metadata"]["uid"] for job in jobs})

    def _try(self, step: Callable[[], None]) -> None:
        """One job that the API server refuses must not hold up the others; each is looked at again soon."""
        try:
            step()
        except (ApiError, OSError, HTTPException) as error:
            print(f"trying again: {error}", flush=True)

    def _reconcile(self, job: Object, pods: dict[str, Object]) -> None:
        self._made[job["metadata"]["uid"]].update(pods)
        self._make(job, master_pod(job))
        phase = _phase(job, pods.get(master_name(job)))
        if phase == "Running":
            for pod in worker_pods(job):
                self._make(job, pod)
        if phase != job.get("status", {}).get("phase"):
            self._api.patch(f"{self._api.path_of(job)}/status", {"status": {"phase": phase}})

    def _make(self, job: Object, pod: Object) -> None:
        made, name = self._made[job["metadata"]["uid"]], pod["metadata"]["name"]
        if name not in made:
            self._api.create(_pods_path(pod), pod)
            made.add(name)

    def _delete_orphans(self, pods: dict[str, dict[str, Object]], job_uids: set[str]) -> None:
        # The garbage collector needs up to 30 s to learn of a new kind of owner; a scenario cannot wait for it.
        for job_uid in pods.keys() - job_uids - {_NO_JOB}:
            for name, pod in pods[job_uid].items():
                if "deletionTimestamp" not in pod["metadata"]:
                    self._api.delete(f"{_pods_path(pod)}/{name}", uid=pod["metadata"]["uid"])

    def _list(self, path: str) -> list[Object]:
        items: list[Object] = self._api.get(path)["items"]
        return items


def _owner_uid(pod: Object) -> str:
    owners = pod["metadata"].get("ownerReferences", ())
    return next((str(owner["uid"]) for owner in owners if owner["kind"] == "ElasticJob"), _NO_JOB)


def _pods_path(pod: Object) -> str:
    return f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods"


def _phase(job: Object, master: Object | None) -> str:
    match (master or {}).get("status", {}).get("phase"):
        case "Succeeded" | "Failed" as ended:
            return str(ended)
        case _ if job["spec"].get("suspend"):
            return "Suspended"
        case "Running":
            return "Running"
        case "Pending":
            return "Pending"
        case _:
            return "Created"
