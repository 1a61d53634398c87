"""Which fields of Kubernetes' core/v1 objects are read.

Partial structs: a field that is not named here is skipped while decoding, so that one watched pod takes microseconds.
Lists and maps may be absent or null. Mirrors k8s.io/api/core/v1.
"""

from datetime import datetime

from msgspec import Struct, field

from extender.model.node import Taint
from extender.model.pod import Requirement, Toleration

Quantities = dict[str, str]


class _Wire(Struct, frozen=True, gc=False, rename="camel"):
    pass


class OwnerReference(_Wire, frozen=True):
    """One of an object's `ownerReferences`."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None


class ObjectMeta(_Wire, frozen=True):
    """`metadata` of any object."""

    name: str
    uid: str
    namespace: str = ""
    resource_version: str = ""
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    owner_references: tuple[OwnerReference, ...] | None = None


class ResourceRequirements(_Wire, frozen=True):
    """`resources` of a container, of a pod, or as a status reports them."""

    requests: Quantities | None = None


class ContainerPort(_Wire, frozen=True):
    """One of a container's `ports`."""

    host_port: int = 0
    host_ip: str = field(name="hostIP", default="")
    protocol: str = ""


class Container(_Wire, frozen=True):
    """A container or an init container."""

    name: str = ""
    resources: ResourceRequirements | None = None
    ports: tuple[ContainerPort, ...] | None = None
    restart_policy: str | None = None
    command: tuple[str, ...] | None = None
    args: tuple[str, ...] | None = None


class SelectorTerm(_Wire, frozen=True):
    """One of `nodeSelectorTerms`."""

    match_expressions: tuple[Requirement, ...] | None = None
    match_fields: tuple[Requirement, ...] | None = None


class NodeSelector(_Wire, frozen=True):
    """`requiredDuringSchedulingIgnoredDuringExecution` of a node affinity."""

    node_selector_terms: tuple[SelectorTerm, ...] | None = None


class NodeAffinity(_Wire, frozen=True):
    """`affinity.nodeAffinity`."""

    required: NodeSelector | None = field(name="requiredDuringSchedulingIgnoredDuringExecution", default=None)


class LabelSelector(_Wire, frozen=True):
    """A selector of pods or of namespaces."""

    match_labels: dict[str, str] | None = None
    match_expressions: tuple[Requirement, ...] | None = None


class PodAffinityTerm(_Wire, frozen=True):
    """A term of pod affinity or anti-affinity; the API server has merged its (mis)matchLabelKeys into the selector."""

    topology_key: str = ""
    label_selector: LabelSelector | None = None
    namespaces: tuple[str, ...] | None = None
    namespace_selector: LabelSelector | None = None


class PodAffinity(_Wire, frozen=True):
    """`affinity.podAffinity` and `affinity.podAntiAffinity`."""

    required: tuple[PodAffinityTerm, ...] | None = field(
        name="requiredDuringSchedulingIgnoredDuringExecution", default=None
    )


class Affinity(_Wire, frozen=True):
    """`spec.affinity`."""

    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


class TopologySpreadConstraint(_Wire, frozen=True):
    """One of `spec.topologySpreadConstraints`."""

    max_skew: int = 1
    topology_key: str = ""
    when_unsatisfiable: str = ""
    label_selector: LabelSelector | None = None
    min_domains: int | None = None
    node_affinity_policy: str | None = None
    node_taints_policy: str | None = None
    match_label_keys: tuple[str, ...] | None = None


class Something(_Wire, frozen=True):
    """An object of which no more is asked than whether it is there."""


class ClaimSource(_Wire, frozen=True):
    """`persistentVolumeClaim` of a volume."""

    claim_name: str = ""


class Volume(_Wire, frozen=True):
    """One of `spec.volumes`, as far as it may keep the pod off a node; the last ones are disks that it names itself."""

    name: str = ""
    persistent_volume_claim: ClaimSource | None = None
    ephemeral: Something | None = None
    aws_elastic_block_store: Something | None = None
    azure_disk: Something | None = None
    cinder: Something | None = None
    gce_persistent_disk: Something | None = None
    iscsi: Something | None = None
    rbd: Something | None = None


class SchedulingGate(_Wire, frozen=True):
    """One of `spec.schedulingGates`."""

    name: str = ""


class PodSchedulingGroup(_Wire, frozen=True):
    """`spec.schedulingGroup`."""

    pod_group_name: str | None = None


class PodSpec(_Wire, frozen=True):
    """`spec` of a pod."""

    containers: tuple[Container, ...] | None = None
    init_containers: tuple[Container, ...] | None = None
    resources: ResourceRequirements | None = None
    overhead: Quantities | None = None
    node_selector: dict[str, str] | None = None
    affinity: Affinity | None = None
    tolerations: tuple[Toleration, ...] | None = None
    scheduling_gates: tuple[SchedulingGate, ...] | None = None
    node_name: str = ""
    scheduler_name: str = "default-scheduler"
    priority: int | None = None
    preemption_policy: str | None = None
    scheduling_group: PodSchedulingGroup | None = None
    topology_spread_constraints: tuple[TopologySpreadConstraint, ...] | None = None
    volumes: tuple[Volume, ...] | None = None
    resource_claims: tuple[Something, ...] | None = None


class PodCondition(_Wire, frozen=True):
    """One of a pod's `status.conditions`."""

    type: str = ""
    status: str = ""
    reason: str = ""


class ContainerStatus(_Wire, frozen=True):
    """What the kubelet reports of a container: the resources that it really has."""

    name: str = ""
    resources: ResourceRequirements | None = None
    allocated_resources: Quantities | None = None


class PodStatus(_Wire, frozen=True):
    """`status` of a pod."""

    phase: str = ""
    start_time: datetime | None = None
    nominated_node_name: str = ""
    conditions: tuple[PodCondition, ...] | None = None
    container_statuses: tuple[ContainerStatus, ...] | None = None
    init_container_statuses: tuple[ContainerStatus, ...] | None = None
    resources: ResourceRequirements | None = None
    allocated_resources: Quantities | None = None


class Pod(_Wire, frozen=True):
    """A v1 Pod."""

    metadata: ObjectMeta
    spec: PodSpec
    status: PodStatus = PodStatus()


class Namespace(_Wire, frozen=True):
    """A v1 Namespace."""

    metadata: ObjectMeta


class NodeSpec(_Wire, frozen=True):
    """`spec` of a node."""

    unschedulable: bool = False
    taints: tuple[Taint, ...] | None = None


class NodeStatus(_Wire, frozen=True):
    """`status` of a node; what is of `capacity` but not `allocatable` is reserved or, of devices, unhealthy."""

    capacity: Quantities | None = None
    allocatable: Quantities | None = None


class Node(_Wire, frozen=True):
    """A v1 Node."""

    metadata: ObjectMeta
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()
