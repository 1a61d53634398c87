"""What does an HTTP call of the verbs' server cost? The product's own server and a cheap client, over real loopback.

`Client` shares one event loop with the server, so a call's time is all that both do for it, and no process has to be
woken. It does the least that HTTP asks for: what it takes would hide what the server takes. `Caller` is a process of
its own, as kube-scheduler is.
"""

import asyncio
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from statistics import median

import orjson
from aiohttp import web
from msgspec import Struct

from e2e.bench.growth.world import LONG_S, World
from extender.config import GangExtenderConfiguration, ServerConfig
from extender.effects.binding import Binding, BindOutcome
from extender.model.pod import Pod
from extender.verbs.agreement import Agreement
from extender.verbs.bind import Bind, Posting
from extender.verbs.filter import Filter
from extender.verbs.preempt import Preempt
from extender.verbs.server import PREFIX, Answers, Verbs, make_app

NOTHING = f"{PREFIX}/nothing"
"""The path of a handler that takes the body and does nothing."""


class NoApiServer:
    """Stands in for the API server: nothing is bound or locked here."""

    async def bind(self, _binding: Binding, *, deadline_s: float) -> BindOutcome:
        """Refuse."""
        raise NotImplementedError(deadline_s)

    async def take(self, _lock: str, _node: str, _pod: Pod, *, deadline_s: float) -> str:
        """Refuse."""
        raise NotImplementedError(deadline_s)

    async def release(self, _lock: str, _node: str, _pod: Pod) -> None:
        """Refuse."""
        raise NotImplementedError


class CallTime(Struct, frozen=True):
    """How long a call takes, by the clock and of CPU time."""

    wall_s: float
    cpu_s: float


class Client:
    """One connection that is kept."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, port: int) -> None:
        self._reader, self._writer = reader, writer
        self.port = port

    async def post(self, path: str, body: bytes) -> bytes:
        """Return the body of the answer, which must be a 200."""
        head = (
            f"POST {path} HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        self._writer.write(head.encode() + body)
        answer = await self._reader.readuntil(b"\r\n\r\n")
        if not answer.startswith(b"HTTP/1.1 200 "):
            raise RuntimeError(answer.decode())
        length = answer.lower().partition(b"content-length:")[2].partition(b"\r\n")[0]
        return await self._reader.readexactly(int(length))

    async def timed(self, path: str, body: bytes) -> CallTime:
        """Return how long a call takes."""
        started_s, cpu_s = time.perf_counter(), time.thread_time()
        await self.post(path, body)
        cpu_s = time.thread_time() - cpu_s
        return CallTime(time.perf_counter() - started_s, cpu_s)


class Caller:
    """A process that calls as kube-scheduler does."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    async def median_s(self, body: bytes, calls: int) -> float:
        """Make so many calls, one after the other; return how long one takes by that process's clock."""
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        stdin.write(f"{calls} {len(body)}\n".encode() + body)
        times: list[float] = orjson.loads(await asyncio.wait_for(stdout.readline(), LONG_S))
        return median(times)


@asynccontextmanager
async def calling(port: int, path: str) -> AsyncIterator[Caller]:
    """Start the process, and end it."""
    pipe = asyncio.subprocess.PIPE
    command = (sys.executable, "-m", "e2e.bench.growth.caller", str(port), path)
    process = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe, limit=2**20)
    try:
        yield Caller(process)
    finally:
        process.kill()
        await process.wait()


@asynccontextmanager
async def serving(world: World) -> AsyncIterator[Client]:
    """Serve the verbs on this state, and a handler that does nothing behind the same middleware."""
    cluster, planner, metrics, nobody = world.cluster, world.planner, world.metrics, NoApiServer()
    bind = Bind(cluster, planner, world.barrier, world.turns, Posting(nobody, nobody, time.time, LONG_S))
    answers = Answers(
        filter=Filter(cluster, planner, GangExtenderConfiguration.model_fields["percentage_of_nodes_to_score"].default),
        preempt=Preempt(cluster, planner),
        bind=bind,
        agreement=Agreement(cluster, metrics),
    )
    verbs = Verbs(cluster, answers, metrics, str)
    app = make_app(verbs, [web.post(NOTHING, _nothing)], metrics, ServerConfig().max_body_mib * 2**20)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        reader, writer = await asyncio.open_connection(*runner.addresses[0][:2])
        yield Client(reader, writer, runner.addresses[0][1])
        writer.close()
    finally:
        await runner.cleanup()


async def _nothing(request: web.Request) -> web.Response:
    await request.read()
    return web.Response(body=b"{}", content_type="application/json")
