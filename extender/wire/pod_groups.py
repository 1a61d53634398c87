"""What is read of the PodGroup objects of each scheduler.

Mirrors PodGroup of Koordinator (scheduling.sigs.k8s.io/v1alpha1), scheduler-plugins (scheduling.x-k8s.io/v1alpha1),
Volcano (scheduling.volcano.sh/v1beta1) and Kubernetes itself (scheduling.k8s.io/v1alpha2).
"""

from msgspec import Struct, structs

from extender.model.claim import Ignored, Terms, gang_key
from extender.model.pod_group import GroupStatus, PodGroup
from extender.wire.core_v1 import ObjectMeta
from extender.wire.gang_terms import read_terms, with_topology
from extender.wire.job_owner import owning_job
from extender.wire.roles import LONGEST
from extender.wire.topology_dialects import topology_of
from extender.wire.topology_upstream import SchedulingConstraints, upstream_topology
from extender.wire.topology_volcano import NetworkTopology, volcano_topology


class _Wire(Struct, frozen=True, gc=False, rename="camel"):
    pass


class MinMemberSpec(_Wire, frozen=True):
    """`spec` of the three CRDs' PodGroups; what one of them lacks is absent there."""

    min_member: int = 0
    schedule_timeout_seconds: int | None = None
    min_task_member: dict[str, int] | None = None
    network_topology: NetworkTopology | None = None


class MinMemberStatus(_Wire, frozen=True):
    """`status` of the three CRDs' PodGroups; only Koordinator counts what is scheduled."""

    phase: str = ""
    scheduled: int = 0
    running: int = 0
    succeeded: int = 0
    failed: int = 0


class MinMemberPodGroup(_Wire, frozen=True):
    """A PodGroup of one of the three CRDs."""

    metadata: ObjectMeta
    spec: MinMemberSpec = MinMemberSpec()
    status: MinMemberStatus = MinMemberStatus()


class GangPolicy(_Wire, frozen=True):
    """`spec.schedulingPolicy.gang`."""

    min_count: int = 0


class BasicPolicy(_Wire, frozen=True):
    """`spec.schedulingPolicy.basic`: the pods go one by one."""


class SchedulingPolicy(_Wire, frozen=True):
    """`spec.schedulingPolicy`: one of the two."""

    gang: GangPolicy | None = None
    basic: BasicPolicy | None = None


class UpstreamSpec(_Wire, frozen=True):
    """`spec` of Kubernetes' own PodGroup."""

    scheduling_policy: SchedulingPolicy = SchedulingPolicy()
    scheduling_constraints: SchedulingConstraints | None = None


class UpstreamPodGroup(_Wire, frozen=True):
    """A PodGroup of Kubernetes itself."""

    metadata: ObjectMeta
    spec: UpstreamSpec = UpstreamSpec()


def pod_group_of(api: str, group: MinMemberPodGroup) -> PodGroup:
    """Return the PodGroup of a CRD of API group `api`."""
    meta, spec = group.metadata, group.spec
    terms = with_topology(read_terms(meta.annotations or {}), volcano_topology(spec.network_topology))
    return PodGroup(
        api=api,
        key=gang_key(meta.namespace, meta.name),
        min_available=spec.min_member if spec.min_member > 0 else None,
        terms=_with_timeout(terms, spec.schedule_timeout_seconds or 0),
        role_minimums=_role_minimums(spec),
        uid=meta.uid,
        job=owning_job(meta).key,
        job_role=_job_role(meta),
        status=GroupStatus(*structs.astuple(group.status)),
    )


def _with_timeout(terms: Terms, seconds: int) -> Terms:
    """Return the terms with `scheduleTimeoutSeconds`; 0 says nothing, and what is below it makes no sense."""
    if seconds < 0:
        wrong = Ignored("scheduleTimeoutSeconds of its PodGroup", str(seconds), "above 0")
        return structs.replace(terms, ignored=(*terms.ignored, wrong))
    return structs.replace(terms, waiting_s=float(seconds)) if seconds else terms


def _role_minimums(spec: MinMemberSpec) -> tuple[tuple[str, int], ...]:
    """Return how many of each role are needed; none where they are more together than the gang itself needs.

    Volcano's controller writes all replicas of a task there that says no minimum of its own: with a smaller minMember
    the tasks' are passed over, as CheckTaskReady of Volcano's JobInfo has it.
    """
    least_of = spec.min_task_member or {}
    if spec.min_member < sum(least_of.values()):
        return ()
    return tuple(sorted((role[:LONGEST].lower(), least) for role, least in least_of.items()))


def _job_role(meta: ObjectMeta) -> str:
    """Return the role of which torch-on-k8s makes a PodGroup, where there is one for each."""
    labels = meta.labels or {}
    return labels.get("task-type", "").lower() if "distributed.io/gang-job-name" in labels else ""


def upstream_pod_group_of(api: str, group: UpstreamPodGroup) -> PodGroup:
    """Return Kubernetes' own PodGroup."""
    policy = group.spec.scheduling_policy
    min_available = policy.gang.min_count if policy.gang else 0 if policy.basic else None
    meta = group.metadata
    said = topology_of(meta.annotations or {})
    terms = with_topology(with_topology(Terms(), said), upstream_topology(group.spec.scheduling_constraints))
    return PodGroup(
        api, gang_key(meta.namespace, meta.name), min_available, terms, uid=meta.uid, job=owning_job(meta).key
    )
