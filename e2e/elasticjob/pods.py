"""Which pods does an ElasticJob have?

Names, labels, environment, owner reference and the rewriting of the template are DLRover's (its master's pod_scaler.py,
its operator's master.go and resource.go), because the extender is to be tried on what DLRover makes.
Pods are plain dicts in the API's own form.
"""

import copy
from collections.abc import Iterator

from e2e.client import Object

GROUP_VERSION = "elastic.iml.github.io/v1alpha1"
JOB_LABEL = "elasticjob.dlrover/name"
ROLE_LABEL = "elasticjob.dlrover/replica-type"
NODE_ID_LABEL = "elasticjob.dlrover/replica-index"
RANK_LABEL = "elasticjob.dlrover/rank-index"
RELAUNCH_COUNT_LABEL = "elasticjob.dlrover/relaunch-count"

MASTER = "dlrover-master"
MASTER_PORT = 50001

# What DLRover asks for where a job says nothing of its master.
_DEFAULT_MASTER_RESOURCES = {"cpu": "1", "memory": "2Gi", "ephemeral-storage": "2Gi"}
_DEFAULT_MASTER_TEMPLATE = {
    "spec": {
        "restartPolicy": "Never",
        "containers": [
            {
                "name": "main",
                "image": "easydl/dlrover-master",
                "resources": {"requests": _DEFAULT_MASTER_RESOURCES, "limits": _DEFAULT_MASTER_RESOURCES},
            }
        ],
    }
}


def master_name(job: Object) -> str:
    """Return the name of the job's first master pod."""
    return f"elasticjob-{job['metadata']['name']}-{MASTER}-0"


def master_pod(job: Object) -> Object:
    """Return the pod that DLRover's operator makes, with the job's own labels and annotations, which workers lack."""
    replica = job["spec"]["replicaSpecs"].get(MASTER, {})
    template = copy.deepcopy(replica.get("template", _DEFAULT_MASTER_TEMPLATE))
    own, owner = template.get("metadata", {}), job["metadata"]
    metadata = _metadata(job, master_name(job))
    metadata["ownerReferences"][0]["controller"] = True
    metadata["annotations"] = own.get("annotations", {}) | owner.get("annotations", {})
    metadata["labels"] = own.get("labels", {}) | owner.get("labels", {})
    metadata["labels"] |= {
        "app.kubernetes.io/name": "elasticjob",
        JOB_LABEL: owner["name"],
        ROLE_LABEL: MASTER,
        NODE_ID_LABEL: "0",
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}


def worker_pods(job: Object) -> Iterator[Object]:
    """Yield the pods that DLRover's master makes, in the order in which it makes them."""
    for role, replica in job["spec"]["replicaSpecs"].items():
        if role != MASTER:
            for node_id in range(replica.get("replicas", 0)):
                yield _worker_pod(job, role, replica, node_id)


def _worker_pod(job: Object, role: str, replica: Object, node_id: int) -> Object:
    template = copy.deepcopy(replica["template"])
    own, spec = template.get("metadata", {}), template["spec"]
    metadata = _metadata(job, f"{job['metadata']['name']}-edljob-{role}-{node_id}")
    metadata["annotations"] = _strings(own.get("annotations", {}))
    metadata["labels"] = _strings(own.get("labels", {})) | {
        "app": "dlrover",
        JOB_LABEL: job["metadata"]["name"],
        ROLE_LABEL: role,
        NODE_ID_LABEL: str(node_id),
        RANK_LABEL: str(node_id),
        RELAUNCH_COUNT_LABEL: "0",
    }
    main = _main_container(spec)
    main["env"] = main.get("env", []) + _environment(job, role, node_id)
    spec |= {"restartPolicy": "Never", "priorityClassName": _priority_class(replica, node_id)}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def _metadata(job: Object, name: str) -> Object:
    owner = {
        "apiVersion": GROUP_VERSION,
        "kind": "ElasticJob",
        "name": job["metadata"]["name"],
        "uid": job["metadata"]["uid"],
        "blockOwnerDeletion": True,
    }
    return {"name": name, "namespace": job["metadata"]["namespace"], "ownerReferences": [owner]}


def _strings(free_form: Object) -> dict[str, str]:
    """DLRover's Python client turns every value of a string map into a string: `min-available: 4` becomes "4"."""
    return {key: str(value) for key, value in free_form.items()}


def _main_container(spec: Object) -> Object:
    containers: list[Object] = spec["containers"]
    return next((each for each in containers if each["name"] == "main"), containers[0])


def _environment(job: Object, role: str, node_id: int) -> list[Object]:
    job_name = job["metadata"]["name"]
    worker_count = str(job["spec"]["replicaSpecs"].get("worker", {}).get("replicas", 0))
    variables = {
        "ELASTIC_JOB_NAME": job_name,
        "JOB_UID": job["metadata"]["uid"],
        "NODE_TYPE": role,
        "NODE_ID": str(node_id),
        "NODE_NUM": worker_count,
        "NODE_RANK": str(node_id),
        "DLROVER_MASTER_ADDR": f"elasticjob-{job_name}-{MASTER}:{MASTER_PORT}",
    }
    if job["spec"].get("distributionStrategy") == "AllreduceStrategy":
        variables |= {"WORLD_SIZE": worker_count, "RANK": str(node_id)}
    return [{"name": name, "value": value} for name, value in variables.items()]


def _priority_class(replica: Object, node_id: int) -> str:
    """`priority` is a class or, as a fraction, the share of pods that are `high`: one more than one would think.

    The template's own priorityClassName is lost, as it is under DLRover.
    """
    priority: str = replica.get("priority", "")
    try:
        share = float(priority)
    except ValueError:
        return priority
    return "high" if node_id <= round(replica.get("replicas", 0) * share) else "low"
