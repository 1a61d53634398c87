"""Has our watch seen every Binding that was written before now?

Asked when we begin to lead: the one who led before may have bound pods a moment ago, of which the watch has not told
yet. Only Bindings count. A pod that is new, changed or gone without us knowing is what every scheduler lives with; one
that is bound takes room, and none must be given away twice.
"""

import asyncio
from collections.abc import Mapping, Sequence

import structlog
from msgspec import Struct, field
from msgspec.json import Decoder

from extender.apiserver import ApiServer, NoAnswerError, RefusedError
from extender.backoff import Backoff
from extender.model.pod import PodUid
from extender.state.cluster import Cluster
from extender.wire.bound_pod import BoundPod
from extender.wire.malformed import MalformedBody, decode

CAUGHT_UP_S = 5.0
"""A watch is milliseconds behind, and a page of a list takes as long; what takes longer needs a new list."""

PAGE_SIZE = 500
PAGE_S = 5.0
"""As for other lists, of which each page takes some ten milliseconds."""

FIRST_PAUSE_S = 0.2
"""After a list that failed, doubled up to CAUGHT_UP_S: meanwhile nobody schedules gangs."""

POLL_S = 0.01
"""How often to look whether the watch has caught up."""


_log = structlog.get_logger()


class _ListMeta(Struct):
    continue_token: str = field(name="continue", default="")


class _PodList(Struct):
    metadata: _ListMeta
    items: list[BoundPod] | None


_PODS = Decoder(_PodList)


async def is_fresh_view(api: ApiServer, cluster: Cluster, scheduler_names: Sequence[str]) -> bool:
    """Return true once every Binding for these schedulers that was there at the call is known; false if not soon.

    Asks until the API server answers.
    """
    bound = await _answered(api, scheduler_names)
    try:
        async with asyncio.timeout(CAUGHT_UP_S):
            while not _knows(cluster, bound):  # noqa: ASYNC110 - the state has no waiting in it
                await asyncio.sleep(POLL_S)
    except TimeoutError:
        return False
    return True


def _knows(cluster: Cluster, bound: Mapping[PodUid, str]) -> bool:
    pods = cluster.pods
    return all(pods[uid].node_name == node if uid in pods else cluster.was_deleted(uid) for uid, node in bound.items())


async def _answered(api: ApiServer, scheduler_names: Sequence[str]) -> dict[PodUid, str]:
    backoff = Backoff(FIRST_PAUSE_S, CAUGHT_UP_S)
    while True:
        try:
            return await _list_bound(api, scheduler_names)
        except (NoAnswerError, RefusedError, MalformedBody) as error:
            _log.warning("cannot list the pods that are bound", text=str(error))
            await backoff.pause()


async def _list_bound(api: ApiServer, scheduler_names: Sequence[str]) -> dict[PodUid, str]:
    """Ask for the bound pods without naming a version: what is answered is as new as the question."""
    bound: dict[PodUid, str] = {}
    for name in scheduler_names:
        query = {"limit": str(PAGE_SIZE), "fieldSelector": f"spec.schedulerName={name},spec.nodeName!="}
        while True:
            answer = await api.request("GET", "/api/v1/pods", query=query, timeout_s=PAGE_S)
            if answer.status != 200:
                raise RefusedError(answer)
            page = decode(_PODS, answer.body, "list of Pods")
            bound |= {pod.metadata.uid: pod.spec.node_name for pod in page.items or () if pod.spec.node_name}
            if not page.metadata.continue_token:
                break
            query["continue"] = page.metadata.continue_token
    return bound
