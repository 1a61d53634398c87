"""What is read of the objects from which operators make training pods.

Mirrors kubeflow.org/v1, elastic.iml.github.io/v1alpha1, train.distributed.io/v1alpha1 and batch/v1, and of DRAGON what
it adds to the TFJob: `min-instances` in the spec or, where the CRD prunes that, as an annotation of the job or of a
replica's template.
"""

import re
from collections.abc import Iterable, Mapping

from msgspec import Raw, Struct, field
from msgspec.json import Decoder

from extender.model.claim import Ignored, job_key
from extender.model.job import JobRole, TrainingJob
from extender.wire.core_v1 import ObjectMeta
from extender.wire.gang_owner import ALONE
from extender.wire.gang_terms import WHOLE_NUMBER, count_of
from extender.wire.job_owner import TORCH_JOB
from extender.wire.pod_template import names_gang, sample_of

MIN_INSTANCES = "dragon/min-instances"
"""The annotation; its number is quoted in a pod's template, and need not be in an ElasticJob's."""

_SHOWN = 63
"""Characters of a bad value that are shown: an annotation may hold 256 KiB."""
_INDEXES = re.compile(r"[0-9]{1,10}(-[0-9]{1,10})?(,[0-9]{1,10}(-[0-9]{1,10})?)*")

_NOTHING = Raw(b"null")


class _Wire(Struct, frozen=True, gc=False, rename="camel"):
    pass


class TemplateMeta(_Wire, frozen=True):
    """`metadata` of a replica's template."""

    annotations: dict[str, object] | None = None


class TemplateSpec(_Wire, frozen=True):
    """`spec` of a replica's template."""

    scheduler_name: str = ""


class Template(_Wire, frozen=True):
    """`template` of a replica, as far as it says something of the job."""

    metadata: TemplateMeta | None = None
    spec: TemplateSpec | None = None


class Replicas(_Wire, frozen=True):
    """One kind of replicas: Kubeflow and DLRover say `replicas`, torch-on-k8s `numTasks`."""

    replicas: int | None = None
    num_tasks: int | None = None
    template: Raw = _NOTHING


class SchedulingPolicy(_Wire, frozen=True):
    """`schedulingPolicy` of a Kubeflow job's run policy or of a TorchJob."""

    min_available: int | None = None


class RunPolicy(_Wire, frozen=True):
    """`spec.runPolicy` of a Kubeflow job."""

    scheduling_policy: SchedulingPolicy | None = None


class OperatorJobSpec(_Wire, frozen=True):
    """`spec` of any of the operators' jobs; of the four maps of replicas one is there."""

    tf_replica_specs: dict[str, Replicas] | None = None
    pytorch_replica_specs: dict[str, Replicas] | None = None
    replica_specs: dict[str, Replicas] | None = None
    torch_task_specs: dict[str, Replicas] | None = None
    run_policy: RunPolicy | None = None
    scheduling_policy: SchedulingPolicy | None = None
    min_members: dict[str, int] | None = None
    min_instances: int | None = field(name="min-instances", default=None)


class OperatorJob(_Wire, frozen=True):
    """A TFJob, PyTorchJob, ElasticJob or TorchJob."""

    metadata: ObjectMeta
    spec: OperatorJobSpec = OperatorJobSpec()


class BatchJobSpec(_Wire, frozen=True):
    """`spec` of Kubernetes' own Job."""

    parallelism: int | None = None
    completions: int | None = None
    completion_mode: str | None = None
    template: Raw = _NOTHING


class BatchJobStatus(_Wire, frozen=True):
    """`status` of Kubernetes' own Job."""

    succeeded: int | None = None
    failed_indexes: str | None = None


class BatchJob(_Wire, frozen=True):
    """A Job of Kubernetes itself."""

    metadata: ObjectMeta
    spec: BatchJobSpec = BatchJobSpec()
    status: BatchJobStatus = BatchJobStatus()


_TEMPLATE = Decoder(Template | None)


def operator_job_of(kind: str, job: OperatorJob) -> TrainingJob:
    """Return the job of one of the operators."""
    spec = job.spec
    replicas = spec.tf_replica_specs or spec.pytorch_replica_specs or spec.replica_specs or spec.torch_task_specs or {}
    run_policy = spec.run_policy or RunPolicy()
    policy = run_policy.scheduling_policy or spec.scheduling_policy or SchedulingPolicy()
    members = spec.min_members or {}
    ignored: list[Ignored] = []

    def usable(number: int | Ignored | None) -> int | None:
        if isinstance(number, Ignored):
            ignored.append(number)
            return None
        return number

    minimums = {role.lower(): usable(_not_below_0(f"minMembers of {role}", n)) for role, n in members.items()}
    return TrainingJob(
        key=job_key(job.metadata.namespace, kind, job.metadata.name),
        roles=tuple(_roles(job.metadata.namespace, replicas, minimums)),
        min_available=usable(_not_below_0("minAvailable", policy.min_available)),
        min_workers=usable(_min_instances(job, replicas.values())),
        in_stages=kind == TORCH_JOB,
        ignored=tuple(ignored),
    )


def batch_job_of(kind: str, job: BatchJob) -> TrainingJob:
    """Return Kubernetes' own Job, with as many replicas as its controller still keeps at a time.

    Where it is neither Indexed nor parallel, its pods need not run together.
    """
    spec = job.spec
    parallelism = 1 if spec.parallelism is None else spec.parallelism
    succeeded = job.status.succeeded or 0
    if spec.completions is not None:
        given_up = _count_indexes(job.status.failed_indexes or "")
        at_a_time = min(parallelism, max(0, spec.completions - succeeded - given_up))
    else:
        at_a_time = 1 if succeeded else parallelism  # the others only end what they are at
    together = spec.completion_mode == "Indexed" or parallelism > 1
    namespace = job.metadata.namespace
    sample = sample_of(namespace, spec.template)
    role = JobRole("", at_a_time, scheduler_name=_scheduler_name(spec.template), sample=sample)
    key = job_key(namespace, kind, job.metadata.name)
    return TrainingJob(key, (role,), min_available=None if together else 0)


def _count_indexes(text: str) -> int:
    """Return how many there are in `1,3-5`, as the Job's controller writes them; 0 where it is nothing of the sort."""
    if not _INDEXES.fullmatch(text):
        return 0
    ends = (part.partition("-") for part in text.split(","))
    return sum(max(0, int(last or first) - int(first) + 1) for first, _, last in ends)


def _roles(namespace: str, replicas: Mapping[str, Replicas], minimums: Mapping[str, int | None]) -> Iterable[JobRole]:
    for name, each in sorted(replicas.items()):
        role = name.lower()
        count = each.num_tasks if each.replicas is None else each.replicas
        if role not in ALONE:
            yield JobRole(
                role,
                1 if count is None else count,
                minimums.get(role),
                _scheduler_name(each.template),
                sample_of(namespace, each.template),
                names_gang(namespace, each.template),
            )


def _scheduler_name(raw: Raw) -> str:
    template = _TEMPLATE.decode(raw)
    return template.spec.scheduler_name if template and template.spec else ""


def _not_below_0(what: str, number: int | None) -> int | Ignored | None:
    return Ignored(f"{what} in its job", str(number), "0 or more") if number is not None and number < 0 else number


def _min_instances(job: OperatorJob, replicas: Iterable[Replicas]) -> int | Ignored | None:
    if job.spec.min_instances is not None:
        return _not_below_0("min-instances", job.spec.min_instances)
    templates = [template for each in replicas if (template := _TEMPLATE.decode(each.template)) is not None]
    metas = [job.metadata, *(template.metadata for template in templates if template.metadata)]
    for annotations in [meta.annotations for meta in metas]:
        if annotations and MIN_INSTANCES in annotations:
            text = str(annotations[MIN_INSTANCES])
            return count_of(text) or Ignored(f"annotation {MIN_INSTANCES} in its job", text[:_SHOWN], WHOLE_NUMBER)
    return None
