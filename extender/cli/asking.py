"""How does `doctor` ask the API server? What it may not see, or what is not there, is said as such."""

from collections.abc import AsyncIterator, Mapping
from typing import Any
from urllib.parse import urlsplit

import orjson
from msgspec import Raw, Struct
from msgspec.json import Decoder

from extender.apiserver import ApiServer, NoAnswerError, Response
from extender.doctor.finding import Unseen

NOT_ENDED = "status.phase!=Succeeded,status.phase!=Failed"
"""The field selector of pods that have not ended."""

_TIMEOUT_S = 20.0
"""A page of a list on a busy API server takes seconds."""

_PAGE = "500"


class _Metadata(Struct, frozen=True, rename={"token": "continue"}):
    token: str = ""


class _Page(Struct, frozen=True):
    items: list[Raw]
    metadata: _Metadata = _Metadata()


_PAGES = Decoder(_Page)


class Asker:
    """Asks on behalf of whoever runs the command."""

    def __init__(self, api: ApiServer) -> None:
        self.api = api

    async def get(self, path: str, query: Mapping[str, str] | None = None) -> Response | Unseen:
        """Return the answer 200 or 404 to a GET."""
        return _seen(await self._send("GET", path, query=query), f"read {path}")

    async def through(self, path: str, query: Mapping[str, str] | None = None) -> Response | Unseen:
        """Return what answers behind the API server's proxy, whatever its status; a 403 is the API server's own."""
        answer = await self._send("GET", path, query=query)
        is_ours = isinstance(answer, Response) and answer.status not in {401, 403}
        return answer if is_ours else _seen(answer, f"read {path}")

    async def find(self, path: str, query: Mapping[str, str] | None = None) -> dict[str, Any] | Unseen | None:
        """Return the object, or None where there is none."""
        answer = await self.get(path, query)
        if isinstance(answer, Unseen):
            return answer
        return _object(answer) if answer.status == 200 else None

    async def create(self, path: str, body: dict[str, Any]) -> dict[str, Any] | Unseen:
        """Return what the API server makes of a review; nothing is stored."""
        answer = _seen(await self._send("POST", path, body=orjson.dumps(body)), f"create {path.rpartition('/')[2]}")
        return answer if isinstance(answer, Unseen) else _object(answer)

    async def items(self, path: str, **query: str) -> AsyncIterator[bytes]:
        """Yield a list's objects, page by page, as JSON; raises UnseenError."""
        token = ""
        while True:
            answer = await self.get(path, {**query, "limit": _PAGE} | ({"continue": token} if token else {}))
            if isinstance(answer, Unseen):
                raise UnseenError(answer)
            if answer.status != 200:
                return
            page = _PAGES.decode(answer.body)
            for item in page.items:
                yield bytes(item)
            token = page.metadata.token
            if not token:
                return

    async def _send(self, method: str, path: str, **rest: Any) -> Response | Unseen:
        try:
            return await self.api.request(method, path, timeout_s=_TIMEOUT_S, **rest)
        except NoAnswerError as error:
            return Unseen(str(error))


class UnseenError(Exception):
    """A list could not be read to its end."""

    def __init__(self, unseen: Unseen) -> None:
        super().__init__(unseen.why)
        self.unseen = unseen


def origin(url: str) -> str:
    """Return scheme, host and port of a URL."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


def _seen(answer: Response | Unseen, what: str) -> Response | Unseen:
    if isinstance(answer, Unseen) or answer.status in {200, 201, 404}:
        return answer
    if answer.status in {401, 403}:
        return Unseen(f"we may not {what}", "run it with a kubeconfig of somebody who may")
    return Unseen(f"the API server would not let us {what}: HTTP {answer.status}: {answer.message}")


def _object(answer: Response) -> dict[str, Any]:
    content: dict[str, Any] = orjson.loads(answer.body)
    return content
