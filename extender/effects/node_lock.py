"""Is this node locked for that pod? Some device plugins find the pod that they are asked for by an annotation.

The annotation is changed only as it was read: the patch carries the node's resourceVersion. The plugin takes the lock
off when it has handed out the pod's cards; we do when the pod was not bound. Mirrors HAMi's pkg/util/nodelock.
"""

import asyncio
from collections.abc import Callable
from typing import Any

import orjson
from msgspec import MsgspecError, Struct, field
from msgspec.json import Decoder

from extender.apiserver import MERGE_PATCH, NoAnswerError, Response
from extender.backoff import Backoff
from extender.decide.explain import name_before
from extender.effects.fence import Requests
from extender.effects.retry import TRY_S, settle
from extender.model.pod import Pod
from extender.wire.cards.node_lock import EXPIRES_S, LockUse, NodeLock, read_lock

ENDING_S = 2.0
"""How long a release by others is waited for. HAMi's plugin says first that it is done and then releases the lock, some
milliseconds later, and it may not see that the lock is another pod's by then."""

RELEASE_S = 1.0
"""How long the answer to a bind call waits for a release. It is not needed: the next one finds that nobody uses it."""


class _Metadata(Struct):
    resource_version: str = field(name="resourceVersion", default="")
    annotations: dict[str, str] | None = None


class _Node(Struct):
    metadata: _Metadata


_NODE = Decoder(_Node)


class _Waiting(Struct):
    """What is waited for; `ending` is a lock that is about to be released, first seen at `since_s`."""

    problem: str
    ending: str = ""
    since_s: float = 0.0


class NodeLocks:
    """Takes and releases locks; `epoch_s` is the time that others read, too.

    `use` says of a node and a pod's namespace and name what that pod's lock still means.
    """

    def __init__(
        self,
        api: Requests,
        use: Callable[[str, str, str], LockUse],
        epoch_s: Callable[[], float],
        *,
        first_pause_s: float = 0.1,
    ) -> None:
        self._api = api
        self._use = use
        self._epoch_s = epoch_s
        self._first_pause_s = first_pause_s

    async def take(self, lock: str, node: str, pod: Pod, *, deadline_s: float) -> str:
        """Lock the node for the pod; return "" or, at the deadline on the event loop's clock, why not.

        What another pod holds is waited for. Raises nothing.
        """
        waiting = _Waiting("the API server did not answer in time")
        backoff = Backoff(self._first_pause_s, 10 * self._first_pause_s)
        try:
            async with asyncio.timeout_at(deadline_s):
                while True:
                    answer = await settle(self._get(node), backoff)
                    if answer is None:
                        continue
                    if answer.status != 200:
                        return answer.message
                    found = _NODE.decode(answer.body).metadata
                    if self._is_held(found, lock, node, pod, waiting):
                        await backoff.pause()
                        continue
                    value = NodeLock(self._epoch_s(), pod.namespace, pod.name).value
                    written = await settle(self._patch(node, found, lock, value), backoff)
                    if written is not None and written.status != 409:
                        return "" if written.status == 200 else written.message
        except TimeoutError:
            return waiting.problem
        except MsgspecError as error:
            return f"the API server's answer makes no sense: {error}"

    async def release(self, lock: str, node: str, pod: Pod) -> None:
        """Unlock the node if it is locked for the pod, as far as that is soon done. Raises nothing."""
        try:
            async with asyncio.timeout(RELEASE_S):
                while not await self._is_released(lock, node, pod):
                    pass
        except (TimeoutError, NoAnswerError, MsgspecError):
            return

    async def _is_released(self, lock: str, node: str, pod: Pod) -> bool:
        """Try once; False where somebody else changed the node meanwhile."""
        answer = await self._get(node)
        if answer.status != 200:
            return True
        found = _NODE.decode(answer.body).metadata
        held = read_lock((found.annotations or {}).get(lock, ""))
        return held is None or not _is_of(held, pod) or (await self._patch(node, found, lock, None)).status != 409

    def _is_held(self, found: _Metadata, lock: str, node: str, pod: Pod, waiting: _Waiting) -> bool:
        """Whether another pod's lock is to be waited for; notes for whose."""
        text = (found.annotations or {}).get(lock, "")
        held, now_s = read_lock(text), self._epoch_s()
        if held is None or _is_of(held, pod) or now_s >= held.since_s + EXPIRES_S:
            return False
        waiting.problem = f"it is locked for {name_before(pod.namespace, held.namespace, held.name)}"
        use = self._use(node, held.namespace, held.name) if held.name else LockUse.WANTED
        if use is not LockUse.ENDING:
            return use is LockUse.WANTED
        if waiting.ending != text:
            waiting.ending, waiting.since_s = text, now_s
        return now_s < waiting.since_s + ENDING_S

    async def _get(self, node: str) -> Response:
        return await self._api.request("GET", f"/api/v1/nodes/{node}", timeout_s=TRY_S)

    async def _patch(self, node: str, found: _Metadata, lock: str, value: str | None) -> Response:
        metadata: dict[str, Any] = {"annotations": {lock: value}, "resourceVersion": found.resource_version}
        return await self._api.request(
            "PATCH",
            f"/api/v1/nodes/{node}",
            body=orjson.dumps({"metadata": metadata}),
            content_type=MERGE_PATCH,
            timeout_s=TRY_S,
        )


def _is_of(lock: NodeLock, pod: Pod) -> bool:
    return (lock.namespace, lock.name) == (pod.namespace, pod.name)
