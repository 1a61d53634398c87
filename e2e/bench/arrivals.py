"""How do many objects come to the API server? Several at once, or one after the other as from an operator."""

import asyncio
import time
from collections.abc import Iterable, Mapping, Sequence
from http import HTTPStatus
from typing import Literal, TypeAlias

import orjson
from msgspec import Struct

from e2e.bench.gangs import members
from e2e.client import Object
from e2e.cluster import Cluster
from extender.apiserver import JSON, MERGE_PATCH, RefusedError, connect
from extender.model.pod import HOLD_GATE

_TIMEOUT_S = 60.0  # the API server's own

ARRIVALS: Mapping[str, int] = {"burst": 32, "operator": 1}
"""How many write at once."""

GangForm: TypeAlias = Literal["annotated", "gated", "grouped"]
"""What makes pods a gang: their annotations, or a PodGroup of Kubernetes' own, made before them. `gated`: they also
have the gate of hold mode, as from their job's template."""


class Write(Struct, frozen=True):
    """A request, ready to be sent; `gang` is whom it is for."""

    method: str
    path: str
    body: bytes = b""
    gang: str = ""


def gang_writes(namespace: str, gang: str, size: int, form: GangForm) -> list[Write]:
    """Return what makes a gang."""
    pods = members(gang, size)
    match form:
        case "annotated":
            return pod_writes(namespace, gang, pods)
        case "gated":
            return pod_writes(namespace, gang, map(_gated, pods))
        case "grouped":
            group = {
                "apiVersion": "scheduling.k8s.io/v1alpha2",
                "kind": "PodGroup",
                "metadata": {"name": gang},
                "spec": {"schedulingPolicy": {"gang": {"minCount": size}}},
            }
            made = Write("POST", groups_path(namespace), orjson.dumps(group), gang)
            return [made, *pod_writes(namespace, gang, (_grouped(pod, gang) for pod in pods))]


def pod_writes(namespace: str, gang: str, pods: Iterable[Object]) -> list[Write]:
    """Return what makes these pods."""
    return [Write("POST", f"/api/v1/namespaces/{namespace}/pods", orjson.dumps(pod), gang) for pod in pods]


def groups_path(namespace: str) -> str:
    """Return the path of Kubernetes' own PodGroups."""
    return f"/apis/scheduling.k8s.io/v1alpha2/namespaces/{namespace}/podgroups"


def send_all(cluster: Cluster, writes: Sequence[Write], writers: int) -> dict[str, float]:
    """Send them in order and return when each gang's first was sent; raises RefusedError, NoAnswerError."""
    return asyncio.run(_send_all(cluster, writes, writers))


async def _send_all(cluster: Cluster, writes: Sequence[Write], writers: int) -> dict[str, float]:
    server = await connect(str(cluster.kubeconfig))
    begun_s: dict[str, float] = {}
    left = iter(writes)

    async def send() -> None:
        for write in left:
            begun_s.setdefault(write.gang, time.monotonic())
            kind = MERGE_PATCH if write.method == "PATCH" else JSON
            answer = await server.request(
                write.method, write.path, timeout_s=_TIMEOUT_S, body=write.body, content_type=kind
            )
            if answer.status >= HTTPStatus.BAD_REQUEST:
                raise RefusedError(answer)

    try:
        async with asyncio.TaskGroup() as tasks:
            for _ in range(writers):
                tasks.create_task(send())
    finally:
        await server.close()
    return begun_s


def _gated(pod: Object) -> Object:
    return {**pod, "spec": {**pod["spec"], "schedulingGates": [{"name": HOLD_GATE}]}}


def _grouped(pod: Object, gang: str) -> Object:
    metadata = {key: value for key, value in pod["metadata"].items() if key != "annotations"}
    return {**pod, "metadata": metadata, "spec": {**pod["spec"], "schedulingGroup": {"podGroupName": gang}}}
