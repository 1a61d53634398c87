"""May this still be written? Only who leads writes, and knows it right before.

Each write waits here until we are sure that nobody else leads, and is then handed to the connection at once. What the
clock may still let through is a write that was sent and is late: the network, the API server or a stopped process may
keep it for longer than the third of the lease's duration that is left for it. What such a write can do:

- A Binding carries the pod's UID and fails where the pod is bound, so nobody is bound twice. It can bind a member where
  the next leader holds the room for another one. kube-scheduler's own Bindings do the same; the kubelet refuses the
  second pod then, and its gang is planned again as one that lost a member.
- A nomination is a hint, which the next leader takes back or overwrites. A scheduling gate that is taken off too soon
  lets a pod come to filter, which decides. A status is written again with the next change. A lock on a node carries the
  node's version.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Protocol

from extender.apiserver import JSON, ApiServer, Response


class Requests(Protocol):
    """What writers ask of an API server; see `apiserver.ApiServer.request`."""

    async def request(
        self,
        method: str,
        path: str,
        *,
        timeout_s: float,
        query: Mapping[str, str] | None = None,
        body: bytes = b"",
        content_type: str = JSON,
    ) -> Response:
        """Send one request and return the whole answer, whatever its status; raises NoAnswerError."""


class Fence:
    """An API server to whom we write only while we lead; `until_leading` returns at once then."""

    def __init__(self, api: ApiServer, until_leading: Callable[[], Awaitable[None]]) -> None:
        self._api = api
        self._until_leading = until_leading

    async def request(
        self,
        method: str,
        path: str,
        *,
        timeout_s: float,
        query: Mapping[str, str] | None = None,
        body: bytes = b"",
        content_type: str = JSON,
    ) -> Response:
        """Send one request, a write only when we lead; raises NoAnswerError."""
        if method != "GET":
            await self._until_leading()
        return await self._api.request(
            method, path, timeout_s=timeout_s, query=query, body=body, content_type=content_type
        )
