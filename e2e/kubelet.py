"""A stand-in for the kubelets of all nodes: what do they do with pods?

It reports a bound pod as Running and Ready, and completes the deletion of a terminating one. It starts no container,
judges no pod (a real kubelet refuses one that its node has no room for), and does not care whether the node exists.
Every write is for one pod's UID, so that a namesake made meanwhile is never hit. Pods that need a device plugin are
left to its stand-in (`e2e.plugins`).
"""

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, NoReturn

import orjson

from extender.apiserver import JSON, ApiServer, NoAnswerError, RefusedError, connect

Pod = dict[str, Any]

_STRATEGIC_MERGE = "application/strategic-merge-patch+json"
_BOUND = {"watch": "true", "fieldSelector": "spec.nodeName!=", "timeoutSeconds": "600"}
_SILENCE_S = 900.0
_OF_PLUGINS = frozenset({"aliyun.com/gpu-mem", "nvidia.com/gpumem", "volcano.sh/vgpu-number"})
"""A pod with one of these does not run before a device plugin has been asked."""
_RETRY_S = 0.2
_TIMEOUT_S = 30.0


async def run(kubeconfig: str) -> NoReturn:
    """Play the kubelets until cancelled."""
    server = await connect(kubeconfig)
    try:
        while True:
            try:
                await _follow(server)
            except* (NoAnswerError, RefusedError) as errors:
                print(f"watching again: {errors.exceptions}", flush=True)
            await asyncio.sleep(_RETRY_S)
    finally:
        await server.close()


async def _follow(server: ApiServer) -> None:
    """Watch once; without a resourceVersion a watch begins with all that exists, so there is nothing to remember."""
    async with asyncio.TaskGroup() as tasks, server.stream("/api/v1/pods", query=_BOUND, silence_s=_SILENCE_S) as lines:
        async for line in lines:
            event = orjson.loads(line)
            if event["type"] == "ERROR":
                return
            if event["type"] != "DELETED":
                tasks.create_task(attend(server, event["object"]))


async def attend(server: ApiServer, pod: Pod) -> None:
    """Do for this pod, and no namesake, what its kubelet has to do now."""
    if is_terminating(pod):
        await _write(server, "DELETE", pod, "", deletion(pod), JSON)
    elif is_to_start(pod):
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        await _write(server, "PATCH", pod, "/status", running(pod, now), _STRATEGIC_MERGE)


async def _write(server: ApiServer, method: str, pod: Pod, subresource: str, body: Pod, content_type: str) -> None:
    metadata = pod["metadata"]
    path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}{subresource}"
    query = {"fieldManager": "kubelet-stand-in"} if method == "PATCH" else {}
    while True:
        if await _is_settled(server, method, path, query, body, content_type):
            return
        await asyncio.sleep(_RETRY_S)


async def _is_settled(
    server: ApiServer, method: str, path: str, query: Mapping[str, str], body: Pod, content_type: str
) -> bool:
    """Send once; False when it may help to send again. Refusals for a namesake are of its UID: 409 and 422."""
    try:
        answer = await server.request(
            method, path, timeout_s=_TIMEOUT_S, query=query, body=orjson.dumps(body), content_type=content_type
        )
    except NoAnswerError as error:
        print(error, flush=True)
        return False
    if answer.status not in (200, 404):
        print(f"{method} {path}: HTTP {answer.status}: {answer.message}", flush=True)
    return not answer.is_transient


def is_terminating(pod: Pod) -> bool:
    """Whether a deletion waits for us. With a grace period of 0 we have done it, and only finalizers keep the pod."""
    return "deletionTimestamp" in pod["metadata"] and pod["metadata"].get("deletionGracePeriodSeconds") != 0


def is_to_start(pod: Pod) -> bool:
    """Whether the pod waits for its containers, and for nobody else."""
    waits = "deletionTimestamp" not in pod["metadata"] and pod["status"].get("phase") == "Pending"
    limits = (each.get("resources", {}).get("limits", {}) for each in pod["spec"].get("containers", ()))
    return waits and all(_OF_PLUGINS.isdisjoint(each) for each in limits)


def deletion(pod: Pod) -> dict[str, Any]:
    """Return the DeleteOptions of a kubelet that has ended all containers."""
    options = {"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0}
    return options | {"preconditions": {"uid": pod["metadata"]["uid"]}}


def running(pod: Pod, now: str) -> dict[str, Any]:
    """Return the patch of a pod's status once all its containers run; init containers are over, sidecars run."""
    spec = pod["spec"]
    conditions = ["PodReadyToStartContainers", "Initialized", "ContainersReady", "Ready"]
    return {
        "metadata": {"uid": pod["metadata"]["uid"]},
        "status": {
            "phase": "Running",
            "startTime": now,
            "hostIP": "127.0.0.1",
            "conditions": [{"type": each, "status": "True", "lastTransitionTime": now} for each in conditions],
            "initContainerStatuses": [
                _started(each, now) if each.get("restartPolicy") == "Always" else _completed(each, now)
                for each in spec.get("initContainers", ())
            ],
            "containerStatuses": [_started(each, now) for each in spec["containers"]],
        },
    }


def _started(container: dict[str, Any], now: str) -> dict[str, Any]:
    return _status(container, started=True, state={"running": {"startedAt": now}})


def _completed(container: dict[str, Any], now: str) -> dict[str, Any]:
    ended = {"exitCode": 0, "reason": "Completed", "startedAt": now, "finishedAt": now}
    return _status(container, started=False, state={"terminated": ended})


def _status(container: dict[str, Any], *, started: bool, state: dict[str, Any]) -> dict[str, Any]:
    image = container.get("image", "")
    identity = {"name": container["name"], "image": image, "imageID": "", "restartCount": 0}
    return identity | {"ready": True, "started": started, "state": state}
