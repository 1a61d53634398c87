"""What do we watch? Another kind is one more row or function here and one more `Kind` in `wire.kube`."""

from collections.abc import Callable
from typing import Final

from extender.model.claim import gang_key, job_key
from extender.model.device import CardPolicy, NodeCards
from extender.model.disruption_budget import DisruptionBudget, budget_key
from extender.model.job import TrainingJob
from extender.model.lease import LeaseRecord
from extender.model.namespace import Namespace
from extender.model.node import Node
from extender.model.pod import Pod
from extender.model.pod_group import KOORDINATOR, SCHEDULER_PLUGINS, UPSTREAM, VOLCANO, PodGroup
from extender.model.volume import PersistentVolume, VolumeClaim, claim_key
from extender.state.cluster import Cluster
from extender.watch.reflector import Source
from extender.wire.job_owner import BATCH_JOB, ELASTIC_JOB, GROUP_OF, PYTORCH_JOB, TF_JOB, TORCH_JOB
from extender.wire.kube import (
    DISRUPTION_BUDGETS,
    JOBS,
    NAMESPACES,
    POD_GROUPS,
    PODS,
    VOLUME_CLAIMS,
    VOLUMES,
    device_kind,
    node_kind,
)
from extender.wire.leases import LEASES

POD_GROUP_PATHS: Final = {
    UPSTREAM: f"/apis/{UPSTREAM}/v1alpha2",
    KOORDINATOR: f"/apis/{KOORDINATOR}/v1alpha1",
    SCHEDULER_PLUGINS: f"/apis/{SCHEDULER_PLUGINS}/v1alpha1",
    VOLCANO: f"/apis/{VOLCANO}/v1beta1",
}
"""By API group."""

JOB_VERSIONS: Final = {TF_JOB: "v1", PYTORCH_JOB: "v1", ELASTIC_JOB: "v1alpha1", TORCH_JOB: "v1alpha1", BATCH_JOB: "v1"}
"""By kind."""


def leases(path: str, name: str, tell: Callable[[], None]) -> Source[LeaseRecord]:
    """One lease, of which it is only told that it changed; RBAC allows no other."""
    return Source(
        resource="leases.coordination.k8s.io",
        path=path,
        kind=LEASES,
        replace=lambda _: tell(),
        upsert=lambda _: tell(),
        remove=lambda _: tell(),
        field_selector=f"metadata.name={name}",
    )


def pods(cluster: Cluster) -> Source[Pod]:
    """Every pod: foreign ones take room, too."""
    return Source(
        resource="pods",
        path="/api/v1/pods",
        kind=PODS,
        replace=cluster.replace_pods,
        upsert=cluster.upsert_pod,
        remove=lambda gone: cluster.remove_pod(gone.uid),
    )


def nodes(cluster: Cluster, policy: CardPolicy) -> Source[Node]:
    """Every node."""
    return Source(
        resource="nodes",
        path="/api/v1/nodes",
        kind=node_kind(policy),
        replace=cluster.replace_nodes,
        upsert=cluster.upsert_node,
        remove=lambda gone: cluster.remove_node(gone.name),
    )


def devices(cluster: Cluster, policy: CardPolicy) -> Source[NodeCards]:
    """Every Device of Koordinator, if the cluster has them: the cards of the node of its name."""
    return Source(
        resource="devices.scheduling.koordinator.sh",
        path="/apis/scheduling.koordinator.sh/v1alpha1/devices",
        kind=device_kind(policy),
        replace=cluster.devices.replace,
        upsert=cluster.devices.upsert,
        remove=lambda gone: cluster.devices.remove(gone.name),
        optional=True,
    )


def pod_groups(cluster: Cluster, api: str) -> Source[PodGroup]:
    """Every PodGroup of one API group, if the cluster has it."""
    return Source(
        resource=f"podgroups.{api}",
        path=f"{POD_GROUP_PATHS[api]}/podgroups",
        kind=POD_GROUPS[api],
        replace=lambda groups: cluster.replace_pod_groups(api, groups),
        upsert=cluster.upsert_pod_group,
        remove=lambda gone: cluster.remove_pod_group(api, gang_key(gone.namespace, gone.name)),
        optional=True,
    )


def jobs(cluster: Cluster, kind: str) -> Source[TrainingJob]:
    """Every job of one kind, if the cluster has it."""
    resource = f"{kind.lower()}s"
    return Source(
        resource=f"{resource}.{GROUP_OF[kind]}",
        path=f"/apis/{GROUP_OF[kind]}/{JOB_VERSIONS[kind]}/{resource}",
        kind=JOBS[kind],
        replace=lambda listed: cluster.replace_jobs(kind, listed),
        upsert=cluster.upsert_job,
        remove=lambda gone: cluster.remove_job(job_key(gone.namespace, kind, gone.name)),
        optional=True,
    )


def namespaces(cluster: Cluster) -> Source[Namespace]:
    """Every namespace: pods' affinity may select by a namespace's labels."""
    return Source(
        resource="namespaces",
        path="/api/v1/namespaces",
        kind=NAMESPACES,
        replace=cluster.replace_namespaces,
        upsert=cluster.upsert_namespace,
        remove=lambda gone: cluster.remove_namespace(gone.name),
    )


def disruption_budgets(cluster: Cluster) -> Source[DisruptionBudget]:
    """Every PodDisruptionBudget: whose deaths cost more than others'."""
    return Source(
        resource="poddisruptionbudgets.policy",
        path="/apis/policy/v1/poddisruptionbudgets",
        kind=DISRUPTION_BUDGETS,
        replace=cluster.budgets.replace,
        upsert=cluster.budgets.upsert,
        remove=lambda gone: cluster.budgets.remove(budget_key(gone.namespace, gone.name)),
    )


def volume_claims(cluster: Cluster) -> Source[VolumeClaim]:
    """Every PersistentVolumeClaim: which volume a pod needs."""
    return Source(
        resource="persistentvolumeclaims",
        path="/api/v1/persistentvolumeclaims",
        kind=VOLUME_CLAIMS,
        replace=cluster.replace_claims,
        upsert=cluster.upsert_claim,
        remove=lambda gone: cluster.remove_claim(claim_key(gone.namespace, gone.name)),
    )


def volumes(cluster: Cluster) -> Source[PersistentVolume]:
    """Every PersistentVolume: which nodes reach it."""
    return Source(
        resource="persistentvolumes",
        path="/api/v1/persistentvolumes",
        kind=VOLUMES,
        replace=cluster.replace_volumes,
        upsert=cluster.upsert_volume,
        remove=lambda gone: cluster.remove_volume(gone.name),
    )
