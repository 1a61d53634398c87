"""Which part a pod plays in its training job."""

from collections.abc import Mapping

ROLE_LABELS = (
    "training.kubeflow.org/replica-type",  # Kubeflow training operator
    "elasticjob.dlrover/replica-type",  # DLRover
    "replica-type",  # Kubeflow 1.2 and 1.3, KubeDL
    "tf-replica-type",  # DRAGON and the old tf-operator
    "task-type",  # torch-on-k8s
)
"""In the order in which they are asked."""


def role_of(labels: Mapping[str, str]) -> str:
    """Return `ps`, `worker`, `master`, `chief`, `evaluator` or whatever the label says, lower-cased; empty without."""
    for label in ROLE_LABELS:
        if label in labels:
            return labels[label].lower()
    return ""
