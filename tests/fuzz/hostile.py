"""What a tenant can write that is far larger than anybody needs. The API server takes 1.5 MiB an object."""

import json
from collections.abc import Mapping
from typing import Any, Final

from tests.builders import gang_annotations, pod_json

Json = dict[str, Any]

TENANT: Final = "a-tenant"
MANY: Final = 10_000
MIB: Final = 2**20
_ANNOTATION: Final = 2**18
_KOORDINATOR = "gang.scheduling.koordinator.sh"


def a_member(
    *, annotations: Mapping[str, str] | None = None, labels: Mapping[str, str] | None = None, **spec: Any
) -> Json:
    """Return a pod of the tenant's gang of one, but for what is said here."""
    meta = {"annotations": {**gang_annotations("g", 1), **(annotations or {})}, "labels": dict(labels or {})}
    return pod_json("hostile", namespace=TENANT, metadata=meta, spec=spec)


def _made_by(kind: str, version: str, name: str, **labels: str) -> Json:
    owner = {"apiVersion": version, "kind": kind, "name": name, "uid": "o", "controller": True}
    return pod_json("hostile", namespace=TENANT, metadata={"ownerReferences": [owner], "labels": labels})


def _job(kind: str, version: str, field: str, **counts: Any) -> Json:
    template = {"spec": {"schedulerName": "gang-scheduler", "containers": pod_json()["spec"]["containers"]}}
    replicas = {role: {**count, "template": template} for role, count in counts.items()}
    meta = {"name": "job", "namespace": TENANT, "uid": "job"}
    return {"apiVersion": version, "kind": kind, "metadata": meta, "spec": {field: replicas}}


def _asking(limits: Mapping[str, str]) -> list[Json]:
    return [{"name": "c", "resources": {"requests": dict(limits), "limits": dict(limits)}}]


def _affinity(what: str, terms: object) -> Json:
    return {"affinity": {what: {"requiredDuringSchedulingIgnoredDuringExecution": terms}}}


_LABELLED = {"matchLabels": {"a": "b"}}
_EXPRESSIONS = [{"key": f"k{n}", "operator": "NotIn", "values": [f"v{n}"]} for n in range(MANY)]

SIZES: Final[Mapping[str, list[Json]]] = {
    "100,000 members are claimed": [a_member(annotations=gang_annotations("g", 100_000))],
    "a billion members are claimed": [a_member(annotations=gang_annotations("g", 999_999_999))],
    "a job of two billion workers": [
        _job("TFJob", "kubeflow.org/v1", "tfReplicaSpecs", Worker={"replicas": 2**31 - 1}),
        _made_by("TFJob", "kubeflow.org/v1", "job", **{"training.kubeflow.org/replica-type": "worker"}),
    ],
    "a master that two billion workers follow": [
        _job(
            "TorchJob",
            "train.distributed.io/v1alpha1",
            "torchTaskSpecs",
            Master={"numTasks": 1},
            Worker={"numTasks": 2**31 - 1},
        ),
        _made_by("TorchJob", "train.distributed.io/v1alpha1", "job", **{"task-type": "master"}),
    ],
    "as many groups as an annotation holds": [
        a_member(annotations={f"{_KOORDINATOR}/groups": json.dumps([f"{TENANT}/{n}" for n in range(15_000)])})
    ],
    "100,000 groups": [
        a_member(annotations={f"{_KOORDINATOR}/groups": json.dumps([f"n{n}/g" for n in range(100_000)])})
    ],
    "names at their limit": [
        pod_json("p" * 253, namespace="n" * 63, metadata={"annotations": gang_annotations("g" * 253, 2)})
    ],
    "a waiting-time of a thousand years": [a_member(annotations={f"{_KOORDINATOR}/waiting-time": "8766000h"})],
    "an annotation of 256 KiB": [
        a_member(annotations={f"{_KOORDINATOR}/network-topology-spec": "[" * _ANNOTATION}),
    ],
    "a name of 256 KiB in an annotation": [a_member(annotations={f"{_KOORDINATOR}/name": "g" * _ANNOTATION})],
    "a role of 256 KiB": [a_member(annotations={"volcano.sh/task-spec": "r" * _ANNOTATION})],
    "an owner with a name of a mebibyte": [_made_by("TFJob", "kubeflow.org/v1", "o" * MIB)],
    "10,000 owners": [
        pod_json(
            "hostile",
            namespace=TENANT,
            metadata={"ownerReferences": [{"apiVersion": "v1", "kind": "X", "name": f"o{n}"} for n in range(MANY)]},
        )
    ],
    "1,000 containers": [
        a_member(
            containers=[{**_asking({"cpu": "1m", "nvidia.com/gpu": "1"})[0], "name": f"c{n}"} for n in range(1000)]
        )
    ],
    "1,000 containers that share GPUs": [
        a_member(containers=[{**_asking({"nvidia.com/gpu": "1", "nvidia.com/gpumem": "1"})[0]} for _ in range(1000)])
    ],
    "10,000 resources": [a_member(containers=_asking({f"example.com/r{n}": "1" for n in range(MANY)}))],
    "a billion GPUs": [a_member(containers=_asking({"nvidia.com/gpu": "999999999"}))],
    "shares of a billion GPUs": [
        a_member(containers=_asking({"nvidia.com/gpu": "999999999", "nvidia.com/gpumem": "1"}))
    ],
    "10,000 node selectors": [a_member(nodeSelector={f"k{n}": "v" for n in range(MANY)})],
    "10,000 terms of node affinity": [
        a_member(**_affinity("nodeAffinity", {"nodeSelectorTerms": [{"matchExpressions": [e]} for e in _EXPRESSIONS]}))
    ],
    "10,000 expressions of node affinity": [
        a_member(**_affinity("nodeAffinity", {"nodeSelectorTerms": [{"matchExpressions": _EXPRESSIONS}]}))
    ],
    "10,000 tolerations": [a_member(tolerations=[{"key": f"k{n}", "operator": "Exists"} for n in range(MANY)])],
    "10,000 host ports": [
        a_member(containers=[{"name": "c", "ports": [{"hostPort": n + 1} for n in range(MANY)]}]),
    ],
    "1,000 terms of pod affinity": [
        a_member(
            **_affinity(
                "podAffinity",
                [{"topologyKey": f"k{n}", "labelSelector": {"matchLabels": {"a": str(n)}}} for n in range(1000)],
            )
        )
    ],
    "1,000 terms of pod anti-affinity": [
        a_member(
            labels={"a": "b"},
            **_affinity(
                "podAntiAffinity",
                [{"topologyKey": "kubernetes.io/hostname", "labelSelector": _LABELLED} for _ in range(1000)],
            ),
        )
    ],
    "a selector of 10,000 expressions": [
        a_member(
            **_affinity(
                "podAntiAffinity",
                [{"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchExpressions": _EXPRESSIONS}}],
            )
        )
    ],
    "1,000 spread constraints": [
        a_member(
            topologySpreadConstraints=[
                {"maxSkew": 1, "topologyKey": f"k{n}", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": _LABELLED}
                for n in range(1000)
            ]
        )
    ],
    "10,000 volumes": [
        a_member(volumes=[{"name": f"v{n}", "persistentVolumeClaim": {"claimName": f"c{n}"}} for n in range(MANY)])
    ],
    "10,000 roles with a minimum": [
        {
            "apiVersion": "scheduling.volcano.sh/v1beta1",
            "kind": "PodGroup",
            "metadata": {"name": "g", "namespace": TENANT, "uid": "group"},
            "spec": {"minMember": 1, "minTaskMember": {f"role-{n}": 1 for n in range(MANY)}},
        },
        pod_json("hostile", namespace=TENANT, metadata={"annotations": {"scheduling.k8s.io/group-name": "g"}}),
    ],
    "a budget of 10,000 pods": [
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": "b", "namespace": TENANT, "uid": "budget"},
            "spec": {"selector": {"matchExpressions": _EXPRESSIONS}},
            "status": {"disruptedPods": {f"p{n}": "2026-01-02T03:04:05Z" for n in range(MANY)}},
        },
        a_member(labels={"a": "b"}),
    ],
}
"""By what is large: the objects of a tenant, in the order in which they come."""
