"""Which part a pod plays in its training job, and as which of that part's replicas."""

from collections.abc import Mapping

from extender.model.pod import NO_NUMBER
from extender.wire.core_v1 import Pod
from extender.wire.job_owner import BATCH_JOB, owning_job

ROLE_LABELS = (
    "training.kubeflow.org/replica-type",  # Kubeflow training operator
    "elasticjob.dlrover/replica-type",  # DLRover, both masters
    "tf-replica-type",  # DRAGON and the old tf-operator
)
"""In the order in which they are asked."""

BARE_ROLE_LABELS = (
    "replica-type",  # Kubeflow 1.2 and 1.3, KubeDL
    "task-type",  # torch-on-k8s
)
"""Asked next, where `group-name` or the owner shows that an operator of training jobs wrote them."""

ROLE_ANNOTATION = "volcano.sh/task-spec"
"""Volcano's, also written by Kubeflow's operator; asked last."""

LONGEST = 63
"""Characters; a label has no more, and an annotation of 256 KiB is no role."""

RANK_LABELS = (
    "elasticjob.dlrover/rank-index",  # DLRover's Python master
    "elasticjob.dlrover/rank",  # its Go master
)
"""Only DLRover's: its replica index changes when a worker is replaced, where others' names and indexes stay."""


_DIGITS = 9
"""Of the numbers below NO_NUMBER. No job has as many members; a longer one at a name's end is a hash or a date."""


def role_of(pod: Pod) -> str:
    """Return `ps`, `worker`, `master`, `chief`, `evaluator` or whatever the pod says, lower-cased; empty without."""
    labels = pod.metadata.labels or {}
    role = _first(ROLE_LABELS, labels)
    if not role:
        bare = _first(BARE_ROLE_LABELS, labels)
        role = bare if bare and _is_made_by_operator(pod) else ""
    return (role or (pod.metadata.annotations or {}).get(ROLE_ANNOTATION, ""))[:LONGEST].lower()


def rank_of(labels: Mapping[str, str]) -> str:
    """Return the rank that a replacement of the pod takes over; empty without."""
    return _first(RANK_LABELS, labels)


def number_of(name: str, rank: str) -> int:
    """Return the rank as a number, or else the one at the end of the pod's name, or else NO_NUMBER."""
    number = rank if rank.isdecimal() else name.rpartition("-")[2] if "-" in name else ""
    return int(number) if number.isdecimal() and number.isascii() and len(number) <= _DIGITS else NO_NUMBER


def _first(keys: tuple[str, ...], values: Mapping[str, str]) -> str:
    for key in keys:
        if key in values:
            return values[key]
    return ""


def _is_made_by_operator(pod: Pod) -> bool:
    return "group-name" in (pod.metadata.labels or {}) or owning_job(pod.metadata).kind not in {"", BATCH_JOB}
