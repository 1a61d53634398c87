"""A proxy that fails: how does a request get through it, or not?

    with running(Proxy("api", "https://127.0.0.1:6443", draws, tally, tls=tls)) as url: ...

Whatever is forwarded is forwarded as it came, with the caller's own credentials: who may do what stays the API server's
to say. Watches go through `e2e.faults.streams`. Faults begin with `resume`, end with `pause`, and a pause ends what
lasts.
"""

import asyncio
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Literal

import aiohttp
import orjson
from aiohttp import web
from multidict import CIMultiDict
from yarl import URL

from e2e.faults.calls import Call, call_of
from e2e.faults.rules import Drawn, Draws, Kind, Tally, Where
from e2e.faults.streams import Stream

Moment = Literal["came", "landed"]
"""Of a request: before it is forwarded, and once it was answered there but not here."""

Look = Callable[[Call, Moment], None]
"""Sees every request that is forwarded, in the proxy's thread, which waits: the place to kill somebody in mid-call."""

_REFUSALS: Mapping[Kind, int] = {
    Kind.CONFLICT: 409,
    Kind.TOO_MANY: 429,
    Kind.ERROR: 500,
    Kind.UNAVAILABLE: 503,
    Kind.EXPIRED: 410,
}
_RETRY_AFTER_S = 1  # kube-apiserver's own
_SLOW_S: Mapping[Where, float] = {"api": 2.0, "verbs": 1.2}  # at most; kube-scheduler waits 2 s for filter
_WITHHELD_S: Mapping[Where, float] = {"api": 12.0, "verbs": 2.5}  # beyond the 10 s and the 2 s that clients wait
_HOP_BY_HOP = frozenset({"connection", "content-length", "host", "keep-alive", "transfer-encoding", "upgrade"})
_LARGEST_BODY = 64 * 2**20
_START_S = 10.0
TLS_END_S = 0.25
"""How long the API server's half of a connection's end takes, which aiohttp does not wait for; a loop that is closed
before that leaves the socket open."""
_STEP_S = 0.05


class Proxy:
    """Forwards to `target`, except for what the draws of its requests say."""

    def __init__(
        self, where: Where, target: str, draws: Draws, tally: Tally, *, tls: ssl.SSLContext | None = None
    ) -> None:
        self.where = where
        self.target = target
        self.look: Look = _look_away
        self._draws = draws
        self._tally = tally
        self._tls = tls
        self._is_paused = True
        self._loop: asyncio.AbstractEventLoop | None = None
        self._under_way: set[asyncio.Task[web.StreamResponse]] = set()
        self._session: aiohttp.ClientSession | None = None

    def pause(self) -> None:
        """Let everything through from now on."""
        self._is_paused = True

    def resume(self) -> None:
        """Inject faults from now on."""
        self._is_paused = False

    def turn_to(self, target: str) -> None:
        """Forward to this target from now on; calls under way are cut on both sides, as when their caller dies."""
        assert self._loop is not None
        self.target = target
        self._loop.call_soon_threadsafe(self._hang_up)

    def draw(self, of_class: str) -> Drawn | None:
        """Return the fault of the next request or line of this class."""
        return None if self._is_paused else self._draws.next(of_class)

    def count(self, kind: Kind) -> None:
        """Count a fault that was injected."""
        self._tally.add(self.where, kind)

    async def last(self, seconds: float) -> None:
        """Wait for so long, or until there are to be no faults."""
        for _ in range(round(seconds / _STEP_S)):
            if self._is_paused:
                return
            await asyncio.sleep(_STEP_S)

    def app(self) -> web.Application:
        """Return what answers in the target's place."""
        app = web.Application(client_max_size=_LARGEST_BODY)
        app.router.add_route("*", "/{path:.*}", self._answer)
        return app

    async def open(self) -> None:
        """Begin to forward, in the event loop that is to do it."""
        self._loop = asyncio.get_running_loop()
        connector = aiohttp.TCPConnector(limit=0, ssl=self._tls or True)
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=_START_S)
        self._session = aiohttp.ClientSession(connector=connector, timeout=timeout, auto_decompress=False)

    async def close(self) -> None:
        """Close every connection to the target."""
        if self._session is not None:
            await self._session.close()

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        watches = request.query.get("watch", "") in ("1", "true")
        call = call_of(self.where, request.method, request.path, await request.read(), watches=watches)
        answering = asyncio.ensure_future(self._answer_call(request, call, watches=watches))
        self._under_way.add(answering)
        try:
            return await answering
        except asyncio.CancelledError:
            if (current := asyncio.current_task()) is not None and current.cancelling():
                raise  # the caller hung up
            return _drop(request)  # we do, on both
        except (aiohttp.ClientError, ConnectionError):
            return _drop(request)  # the target is away: so it is for the caller
        finally:
            self._under_way.discard(answering)

    async def _answer_call(self, request: web.Request, call: Call, *, watches: bool) -> web.StreamResponse:
        drawn = self.draw(call.of_class)
        if drawn is not None:
            return await self._fail(request, call, drawn)
        if watches:
            return await self._watch(request, call)
        return await self._forward(request, call)

    def _hang_up(self) -> None:
        for answering in self._under_way:
            answering.cancel()

    async def _fail(self, request: web.Request, call: Call, drawn: Drawn) -> web.StreamResponse:
        match drawn.kind:
            case Kind.CONFLICT | Kind.TOO_MANY | Kind.ERROR | Kind.UNAVAILABLE | Kind.EXPIRED:
                self.count(drawn.kind)
                return _refusal(_REFUSALS[drawn.kind])
            case Kind.SLOW:
                self.count(drawn.kind)
                await self.last(drawn.extent * _SLOW_S[self.where])
                return await self._forward(request, call)
            case Kind.TWICE:
                self.count(drawn.kind)
                _, second = await asyncio.gather(self._forward(request, call), self._forward(request, call))
                return second
            case _:
                return await self._withhold(request, call, drawn)

    async def _withhold(self, request: web.Request, call: Call, drawn: Drawn) -> web.StreamResponse:
        """Have it done, whoever hangs up meanwhile, and do not say so, or not to the end."""
        forwarding = asyncio.ensure_future(self._forward(request, call))
        forwarding.add_done_callback(_see_failure)
        answer = await asyncio.shield(forwarding)
        self.count(drawn.kind)
        if drawn.kind is Kind.LANDED:
            await self.last(_WITHHELD_S[self.where])
        elif drawn.kind is Kind.CUT:
            await _send_half(request, answer)
        return _drop(request)

    async def _forward(self, request: web.Request, call: Call) -> web.Response:
        self.look(call, "came")
        assert self._session is not None
        async with self._session.request(
            request.method, self._url_of(request), headers=_carried(request.headers), data=call.body or None
        ) as answer:
            text = await answer.read()
        self.look(call, "landed")
        return web.Response(status=answer.status, body=text, headers=_carried(answer.headers))

    async def _watch(self, request: web.Request, call: Call) -> web.StreamResponse:
        assert self._session is not None
        async with self._session.get(self._url_of(request), headers=_carried(request.headers)) as answer:
            if answer.status != 200:
                return web.Response(status=answer.status, body=await answer.read(), headers=_carried(answer.headers))
            out = web.StreamResponse(headers={"Content-Type": "application/json"})
            await out.prepare(request)
            if not await Stream(self, call, answer.content, out).run():
                return _drop(request, out)
            return out

    def _url_of(self, request: web.Request) -> URL:
        return URL(self.target + request.raw_path, encoded=True)


@contextmanager
def running(*proxies: Proxy) -> Iterator[list[str]]:
    """Let the proxies answer in a thread of their own; yield their URLs, in order."""
    loop, started, urls = asyncio.new_event_loop(), threading.Event(), list[str]()
    ended = asyncio.Event()

    async def serve() -> None:
        runners = [await _serve(proxy, urls) for proxy in proxies]
        started.set()
        await ended.wait()
        for proxy, runner in zip(proxies, runners, strict=True):
            proxy.pause()
            await runner.cleanup()
            await proxy.close()
        await asyncio.sleep(TLS_END_S)

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),), name="fault proxies")
    thread.start()
    try:
        assert started.wait(_START_S), "the fault proxies do not listen"
        yield urls
    finally:
        loop.call_soon_threadsafe(ended.set)
        thread.join()
        loop.close()


async def _serve(proxy: Proxy, urls: list[str]) -> web.AppRunner:
    await proxy.open()
    # A caller that hangs up is to be felt behind the proxy, too: a bind call that nobody waits for goes on to nobody.
    runner = web.AppRunner(
        proxy.app(), access_log=None, keepalive_timeout=150.0, shutdown_timeout=0.1, handler_cancellation=True
    )
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    host, port = runner.addresses[0][:2]
    urls.append(f"http://{host}:{port}")
    return runner


def _carried(headers: Mapping[str, str]) -> CIMultiDict[str]:
    return CIMultiDict((name, text) for name, text in headers.items() if name.lower() not in _HOP_BY_HOP)


def _refusal(status: int) -> web.Response:
    body = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "injected", "code": status}
    headers = {"Content-Type": "application/json"}
    headers |= {"Retry-After": str(_RETRY_AFTER_S)} if status == 429 else {}
    return web.Response(status=status, body=orjson.dumps(body), headers=headers)


async def _send_half(request: web.Request, answer: web.Response) -> None:
    whole = answer.body if isinstance(answer.body, bytes) else b""
    half = web.StreamResponse(status=answer.status, headers=_carried(answer.headers))
    half.content_length = max(len(whole), 1)  # an empty answer is cut as well
    await half.prepare(request)
    await half.write(whole[: len(whole) // 2])


def _drop(request: web.Request, answer: web.StreamResponse | None = None) -> web.StreamResponse:
    """Close the connection after what was written; the answer that aiohttp wants goes nowhere."""
    if request.transport is not None:
        request.transport.close()
    return answer or web.Response()


def _see_failure(forwarding: asyncio.Future[web.Response]) -> None:
    """Ask for the error of a request that nobody waits for any more; asyncio would complain otherwise."""
    if not forwarding.cancelled():
        forwarding.exception()


def _look_away(_call: Call, _moment: Moment) -> None:
    """See nothing."""
