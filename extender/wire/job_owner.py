"""Which job made this pod?

By the pod's owner references, or else by the labels that only one operator writes. `job-name` alone says nothing: it is
also what Kubernetes' own Job controller writes.
"""

import re
from typing import Final, TypeAlias

from msgspec import Struct

from extender.model.claim import JobKey, job_key
from extender.wire.core_v1 import ObjectMeta

TF_JOB: Final = "TFJob"
PYTORCH_JOB: Final = "PyTorchJob"
ELASTIC_JOB: Final = "ElasticJob"
TORCH_JOB: Final = "TorchJob"
BATCH_JOB: Final = "Job"

GROUP_OF = {
    TF_JOB: "kubeflow.org",
    PYTORCH_JOB: "kubeflow.org",
    ELASTIC_JOB: "elastic.iml.github.io",
    TORCH_JOB: "train.distributed.io",
    BATCH_JOB: "batch",
}
"""The API group of each kind that we know."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,252}")
"""Nobody checks what a reference says: no object has a name unlike this, and it would stand in every text."""

_NOT_CONTROLLER = frozenset({ELASTIC_JOB})
"""DLRover's master makes the workers, and names the job as an owner that does not control them."""

_Label: TypeAlias = tuple[str, str]
_BY_LABEL: tuple[tuple[str, tuple[_Label, ...], str], ...] = (
    ("training.kubeflow.org/job-name", (("training.kubeflow.org/operator-name", "tfjob-controller"),), TF_JOB),
    (
        "training.kubeflow.org/job-name",
        (("training.kubeflow.org/operator-name", "pytorchjob-controller"),),
        PYTORCH_JOB,
    ),
    ("elasticjob.dlrover/name", (), ELASTIC_JOB),
    ("tf-job-name", (("group-name", "kubeflow.org"),), TF_JOB),
    ("job-name", (("group-name", "train.distributed.io"),), TORCH_JOB),
)
"""The label with the job's name, the labels that must stand beside it, and the kind."""


class Owner(Struct, frozen=True):
    """A job by kind and key; both are empty for none."""

    kind: str = ""
    key: JobKey = JobKey("")


_NONE = Owner()


def owning_job(meta: ObjectMeta) -> Owner:
    """Return the job of a kind that we know which made the object."""
    for owner in meta.owner_references or ():
        group, _, version = owner.api_version.partition("/")
        known = bool(version) and GROUP_OF.get(owner.kind) == group and bool(_NAME.fullmatch(owner.name))
        if known and (owner.controller or owner.kind in _NOT_CONTROLLER):
            return Owner(owner.kind, job_key(meta.namespace, owner.kind, owner.name))
    labels = meta.labels or {}
    for label, beside, kind in _BY_LABEL:
        if label in labels and all(labels.get(key) == value for key, value in beside):
            return Owner(kind, job_key(meta.namespace, kind, labels[label]))
    return _NONE
