"""The gang of a pod without any gang metadata: the pods of its job.

How many of them are needed is written in the job, and is found out where the job is known.
"""

from extender.model.claim import BadGangClaim, GangClaim, GangKey
from extender.wire.core_v1 import Pod
from extender.wire.gang_terms import complete
from extender.wire.job_owner import TORCH_JOB, owning_job
from extender.wire.roles import role_of

ALONE = frozenset({"dlrover-master", "aimaster"})
"""Roles that make the other pods of their job, and so must run before these exist."""


def owner_gang(pod: Pod) -> GangClaim | BadGangClaim | None:
    """Return the gang of the job that made the pod, where it is a kind that we know.

    A TorchJob's roles are a gang each, as torch-on-k8s itself has it: its workers are made once the master runs.
    """
    job = owning_job(pod.metadata)
    if not job.key:
        return None
    role = role_of(pod)
    if role in ALONE:
        return None
    job_role = role if job.kind == TORCH_JOB else ""
    key = GangKey(f"{job.key}/{job_role}" if job_role else job.key)
    return complete(pod, GangClaim(key, job=job.key, job_role=job_role, derived=True))
