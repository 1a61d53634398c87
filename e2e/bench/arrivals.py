"""How do many objects come to the API server? Several at once, or one after the other as from an operator."""

import asyncio
import time
from collections.abc import Iterable, Mapping, Sequence
from http import HTTPStatus

import orjson
from msgspec import Struct

from e2e.bench.gangs import members
from e2e.client import Object
from e2e.cluster import Cluster
from extender.apiserver import JSON, MERGE_PATCH, RefusedError, connect

_TIMEOUT_S = 60.0  # the API server's own

ARRIVALS: Mapping[str, int] = {"burst": 32, "operator": 1}
"""How many write at once."""


class Write(Struct, frozen=True):
    """A request, ready to be sent; `gang` is whom it is for."""

    method: str
    path: str
    body: bytes = b""
    gang: str = ""


def gang_writes(namespace: str, gang: str, size: int, *, has_pod_group: bool) -> list[Write]:
    """Return what makes a gang: its pods, which declare it, or the PodGroup that they name, and then they."""
    pods = [_grouped(pod, gang) if has_pod_group else pod for pod in members(gang, size)]
    made = pod_writes(namespace, gang, pods)
    if not has_pod_group:
        return made
    group = {
        "apiVersion": "scheduling.k8s.io/v1alpha2",
        "kind": "PodGroup",
        "metadata": {"name": gang},
        "spec": {"schedulingPolicy": {"gang": {"minCount": size}}},
    }
    return [Write("POST", groups_path(namespace), orjson.dumps(group), gang), *made]


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


def _grouped(pod: Object, gang: str) -> Object:
    metadata = {key: value for key, value in pod["metadata"].items() if key != "annotations"}
    return {**pod, "metadata": metadata, "spec": {**pod["spec"], "schedulingGroup": {"podGroupName": gang}}}
