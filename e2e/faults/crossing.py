"""Where is a gang's life stopped? At the crossing that all messages of the extender pass, one proxy for each neighbour.

    kube-scheduler --verbs--> [crossing] --> extender --requests, watches--> [crossing] --> API server

Nothing is changed on the way. Once the message of the step that was asked for arrives, it and every later one is held.
Then a process is killed, and what is held finds its end as with a real network: what the dead process has sent may
still be delivered or be lost, what is for it is lost, all else goes on.

Bindings of a gang cross one after the other, each with its answer: else the number of members that are bound at a step
would be a matter of luck.
"""

import asyncio
import ssl
import threading
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Set
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, nullcontext
from http import HTTPStatus
from typing import Any, Literal, NoReturn

import aiohttp
import orjson
from aiohttp import web
from msgspec import Struct

from e2e.cluster import EXTENDER, GANG_SCHEDULER
from e2e.faults.proxy import TLS_END_S
from e2e.faults.steps import API_SERVER, Kind, Life, Side, Step
from e2e.processes import free_ports

Fate = Literal["delivered", "lost"]
"""What becomes of a message that its sender did not outlive."""

_HANG_UP_S = 0.05  # a request of a dead caller is read, and then its connection ends
_START_S = 10.0
_MAX_BODY = 2**26
_DROPPED = frozenset({"host", "content-length", "transfer-encoding", "connection", "accept-encoding"})


class _CutError(Exception):
    """The message does not get across."""


class Link(Struct, frozen=True):
    """One of the two proxies; `hangs_up`: who answers notices that the caller is gone."""

    caller: str
    answerer: str
    url: str
    hangs_up: bool


class _Held(Struct, frozen=True):
    verdict: "asyncio.Future[bool]"
    sender: str
    receiver: str


class Crossing:
    """Both proxies; the methods are for other threads than its own, which `open_crossing` starts."""

    def __init__(self, api_url: str, extender_url: str, tls: ssl.SSLContext) -> None:
        self.api_port, self.extender_port = free_ports(2)
        self.stopped = threading.Event()
        """Whether the armed step was reached, and all is held."""
        self.life = Life(frozenset())
        self._links = {
            self.api_port: Link(EXTENDER, API_SERVER, api_url, hangs_up=False),
            self.extender_port: Link(GANG_SCHEDULER, EXTENDER, extender_url, hangs_up=True),
        }
        self._tls = tls
        self._armed: Step | None = None
        self._held: list[_Held] = []
        self._deaths: Counter[str] = Counter()
        self._loop = asyncio.new_event_loop()

    def begin(self, members: Set[str], stop_at: Step | None) -> Life:
        """Follow the life of a gang of these pods from now on, and hold everything once it comes to this step."""

        async def begin() -> Life:
            assert not self._held
            self.stopped.clear()
            self.life, self._armed = Life(members), stop_at
            return self.life

        return asyncio.run_coroutine_threadsafe(begin(), self._loop).result(_START_S)

    def go_on(self, killed: str = "", fate: Fate = "lost") -> None:
        """Let go of everything that is held, but what the death of a process cuts."""

        async def go_on() -> None:
            self._armed = None
            self.stopped.clear()
            self._deaths[killed] += bool(killed)
            held, self._held = self._held, []
            for each in held:
                if not each.verdict.done():
                    gets_across = fate == "delivered" if each.sender == killed else each.receiver != killed
                    each.verdict.set_result(gets_across)

        asyncio.run_coroutine_threadsafe(go_on(), self._loop).result(_START_S)

    # In its own thread

    @asynccontextmanager
    async def _serving(self) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            for port, link in self._links.items():
                # A connection for each request: one that is kept may be that of a process which is dead by now.
                connector = aiohttp.TCPConnector(ssl=self._tls, force_close=True, limit=0)
                timeout = aiohttp.ClientTimeout(total=None)
                session = await stack.enter_async_context(aiohttp.ClientSession(connector=connector, timeout=timeout))
                app = web.Application(client_max_size=_MAX_BODY)
                app.router.add_route("*", "/{path:.*}", _Proxy(self, link, session).handle)
                runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=0.1)
                await runner.setup()
                stack.push_async_callback(runner.cleanup)
                await web.TCPSite(runner, "127.0.0.1", port).start()
            yield

    async def cross(self, kind: Kind | None, side: Side, link: Link, died: int) -> None:
        """Let a message across, in its turn; raises _CutError."""
        sender, receiver = (link.caller, link.answerer) if side == "request" else (link.answerer, link.caller)
        if self.deaths(link) != died:
            raise _CutError
        if kind is not None and not self.stopped.is_set() and self.life.take(kind, side) == self._armed:
            self.stopped.set()
        if self.stopped.is_set():
            held = _Held(self._loop.create_future(), sender, receiver)
            self._held.append(held)
            if not await held.verdict:
                raise _CutError

    def deaths(self, link: Link) -> int:
        """Return how often one of the link's two ends was killed: what began before is over."""
        return self._deaths[link.caller] + self._deaths[link.answerer]


class _Proxy:
    def __init__(self, crossing: Crossing, link: Link, session: aiohttp.ClientSession) -> None:
        self._crossing = crossing
        self._link = link
        self._session = session
        self._binding = asyncio.Lock()

    async def handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        try:
            if "watch" in request.query:
                return await self._watch(request)
            gone = asyncio.Event()
            exchange = asyncio.create_task(self._exchange(request, body, gone))
            try:
                return await asyncio.shield(exchange)
            except asyncio.CancelledError:  # the caller is gone, and what it sent goes its own way
                gone.set()
                exchange.add_done_callback(_ignore)
                raise
        except (_CutError, aiohttp.ClientError, OSError):
            _cut(request)

    async def _exchange(self, request: web.Request, body: bytes, gone: asyncio.Event) -> web.Response:
        crossing, link = self._crossing, self._link
        died = crossing.deaths(link)
        kind = _kind_of(request.method, request.path, body, crossing.life)
        async with self._binding if kind == "binding" else nullcontext():
            await crossing.cross(kind, "request", link, died)
            answer = await self._ask(request, body, gone)
            await crossing.cross(kind, "answer", link, crossing.deaths(link))
            await asyncio.sleep(0)
            return answer

    async def _ask(self, request: web.Request, body: bytes, gone: asyncio.Event) -> web.Response:
        if not self._link.hangs_up:
            return await self._forward(request, body)
        asking, leaving = asyncio.create_task(self._forward(request, body)), asyncio.create_task(gone.wait())
        await asyncio.wait([asking, leaving], return_when=asyncio.FIRST_COMPLETED)
        leaving.cancel()
        if not asking.done():
            await asyncio.wait([asking], timeout=_HANG_UP_S)
            asking.cancel()
        return await asking

    async def _forward(self, request: web.Request, body: bytes) -> web.Response:
        async with self._session.request(
            request.method, self._link.url + request.path_qs, data=body or None, headers=_headers(request)
        ) as answer:
            content = await answer.read()
            return web.Response(status=answer.status, body=content, headers=_content_type(answer))

    async def _watch(self, request: web.Request) -> web.StreamResponse:
        crossing, link = self._crossing, self._link
        died = crossing.deaths(link)
        await crossing.cross(None, "request", link, died)
        url = link.url + request.path_qs
        async with self._session.get(url, headers=_headers(request), read_bufsize=_MAX_BODY) as answer:
            if answer.status != HTTPStatus.OK:
                return web.Response(status=answer.status, body=await answer.read(), headers=_content_type(answer))
            response = web.StreamResponse(status=answer.status, headers=_content_type(answer))
            await response.prepare(request)
            async for line in answer.content:
                kind = _kind_of_event(request.path, line, crossing.life)
                await crossing.cross(kind, "event", link, died)
                await response.write(line)
            await response.write_eof()
            return response


def _kind_of(method: str, path: str, body: bytes, life: Life) -> Kind | None:
    """Return what a request means for the gang; None where it is about others."""
    *_, last = path.split("/")
    if method == "POST" and last in ("filter", "bind"):
        args = orjson.loads(body)
        name = args["Pod"]["metadata"]["name"] if last == "filter" else args["PodName"]
        kind: Kind = "filter" if last == "filter" else "bind"
        return kind if life.concerns(name) else None
    parts = path.split("/")
    if "pods" not in parts or method not in ("POST", "PATCH"):
        return None
    name, *subresource = parts[parts.index("pods") + 1 :] or [""]
    kinds: dict[tuple[str, ...], Kind] = {("binding",): "binding", ("status",): "nomination", (): "release"}
    return kinds.get(tuple(subresource)) if life.concerns(name) else None


def _kind_of_event(path: str, line: bytes, life: Life) -> Kind | None:
    if path != "/api/v1/pods":
        return None
    event: dict[str, Any] = orjson.loads(line)
    is_ours = event["type"] in ("ADDED", "MODIFIED") and life.concerns(event["object"]["metadata"]["name"])
    return life.kind_of_event(event["object"]) if is_ours else None


def _headers(request: web.Request) -> dict[str, str]:
    return {name: value for name, value in request.headers.items() if name.lower() not in _DROPPED}


def _content_type(answer: aiohttp.ClientResponse) -> dict[str, str]:
    kept = ("Content-Type", "Retry-After")
    return {name: answer.headers[name] for name in kept if name in answer.headers}


def _cut(request: web.Request) -> NoReturn:
    if request.transport is not None:
        request.transport.abort()
    raise asyncio.CancelledError


def _ignore(task: "asyncio.Task[web.Response]") -> None:
    if not task.cancelled():
        task.exception()


@contextmanager
def open_crossing(api_url: str, extender_url: str, tls: ssl.SSLContext) -> Iterator[Crossing]:
    """Serve both proxies in a thread of their own until the end."""
    crossing = Crossing(api_url, extender_url, tls)
    ready, end = threading.Event(), asyncio.Event()

    async def serve() -> None:
        async with crossing._serving():  # noqa: SLF001 - it is the other half of the class
            ready.set()
            await end.wait()
        await asyncio.sleep(TLS_END_S)

    thread = threading.Thread(target=lambda: crossing._loop.run_until_complete(serve()))  # noqa: SLF001
    thread.start()
    try:
        assert ready.wait(_START_S), "the crossing does not serve"
        yield crossing
    finally:
        crossing._loop.call_soon_threadsafe(end.set)  # noqa: SLF001
        thread.join()
        crossing._loop.close()  # noqa: SLF001
