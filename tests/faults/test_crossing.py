"""What is held at a step, and what becomes of it when a process dies?"""

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Iterator

import aiohttp
import pytest
from aiohttp import web

from e2e.cluster import EXTENDER, GANG_SCHEDULER
from e2e.faults.crossing import Crossing, open_crossing
from e2e.faults.steps import API_SERVER, Step
from tests.faults.behind import serving

GANG = frozenset({"a-0", "a-1"})


class Both:
    """API server and extender in one: it keeps what came, and has a watch whose lines the test gives."""

    def __init__(self) -> None:
        self.came: list[str] = []
        self.lines: asyncio.Queue[bytes] = asyncio.Queue()
        self.answers = asyncio.Event()
        self.answers.set()
        self.waits = asyncio.Event()
        self.hung_up = asyncio.Event()

    async def post(self, request: web.Request) -> web.Response:
        self.came.append(request.path)
        self.waits.set()
        try:
            await self.answers.wait()
        except asyncio.CancelledError:
            self.hung_up.set()
            raise
        return web.json_response({}, status=201)

    async def watch(self, request: web.Request) -> web.StreamResponse:
        answer = web.StreamResponse()
        await answer.prepare(request)
        while True:
            await answer.write(await self.lines.get())


@pytest.fixture
async def both() -> Both:
    return Both()


@pytest.fixture
async def url(both: Both) -> AsyncIterator[str]:
    async with serving(both) as url:
        yield url


@pytest.fixture
def crossing(url: str) -> Iterator[Crossing]:
    with open_crossing(url, url, ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)) as crossing:
        yield crossing


def bind_pod(client: aiohttp.ClientSession, crossing: Crossing, pod: str) -> "asyncio.Task[int]":
    path = f"/api/v1/namespaces/n/pods/{pod}/binding"
    return asyncio.create_task(post(client, f"http://127.0.0.1:{crossing.api_port}{path}", {}))


def call_bind(client: aiohttp.ClientSession, crossing: Crossing, pod: str) -> "asyncio.Task[int]":
    url = f"http://127.0.0.1:{crossing.extender_port}/v1/bind"
    return asyncio.create_task(post(client, url, {"PodName": pod}))


async def post(client: aiohttp.ClientSession, url: str, body: dict[str, str]) -> int:
    async with client.post(url, json=body) as answer:
        return answer.status


async def stopped(crossing: Crossing) -> bool:
    return await asyncio.to_thread(crossing.stopped.wait, 5)


async def test_what_concerns_no_step_crosses(crossing: Crossing, client: aiohttp.ClientSession) -> None:
    crossing.begin(GANG, Step("binding", "request", 1))
    assert await bind_pod(client, crossing, "another") == 201
    assert not crossing.stopped.is_set()


async def test_from_the_step_on_all_is_held_and_then_goes_on(
    crossing: Crossing, client: aiohttp.ClientSession, both: Both
) -> None:
    life = crossing.begin(GANG, Step("binding", "request", 2))
    assert await bind_pod(client, crossing, "a-0") == 201

    held = [
        bind_pod(client, crossing, "a-1"),
        bind_pod(client, crossing, "another"),
        call_bind(client, crossing, "a-0"),
    ]
    assert await stopped(crossing)
    await asyncio.sleep(0.1)
    assert both.came == ["/api/v1/namespaces/n/pods/a-0/binding"]

    crossing.go_on()
    assert await asyncio.gather(*held) == [201, 201, 201]
    assert [str(step) for step in life.steps][:3] == ["binding-request-1", "binding-answer-1", "binding-request-2"]


@pytest.mark.parametrize(("fate", "came"), [("lost", 0), ("delivered", 1)])
async def test_what_a_dead_process_has_sent_is_lost_or_delivered(
    crossing: Crossing, client: aiohttp.ClientSession, both: Both, fate: str, came: int
) -> None:
    crossing.begin(GANG, Step("binding", "request", 1))
    first, second = bind_pod(client, crossing, "a-0"), bind_pod(client, crossing, "a-1")
    assert await stopped(crossing)
    await die(first, second)

    crossing.go_on(EXTENDER, "delivered" if fate == "delivered" else "lost")
    await asyncio.sleep(0.2)

    assert len(both.came) == came, "the second Binding, which waited for its turn, is lost in any case"
    assert await bind_pod(client, crossing, "a-1") == 201, "who is started again is heard"


async def test_what_is_for_a_dead_process_is_lost(
    crossing: Crossing, client: aiohttp.ClientSession, both: Both
) -> None:
    crossing.begin(GANG, Step("bind", "request", 1))
    call = call_bind(client, crossing, "a-0")
    assert await stopped(crossing)

    crossing.go_on(EXTENDER, "delivered")

    with pytest.raises(aiohttp.ClientError):
        await call
    assert both.came == []


async def test_a_binding_may_be_done_though_its_answer_is_lost(
    crossing: Crossing, client: aiohttp.ClientSession, both: Both
) -> None:
    crossing.begin(GANG, Step("binding", "answer", 1))
    call = bind_pod(client, crossing, "a-0")
    assert await stopped(crossing)

    crossing.go_on(API_SERVER, "lost")

    with pytest.raises(aiohttp.ClientError):
        await call
    assert len(both.came) == 1


async def test_the_extender_notices_that_its_caller_is_dead(
    crossing: Crossing, client: aiohttp.ClientSession, both: Both
) -> None:
    crossing.begin(GANG, None)
    both.answers.clear()
    call = call_bind(client, crossing, "a-0")
    await asyncio.wait_for(both.waits.wait(), 5)
    await die(call)
    crossing.go_on(GANG_SCHEDULER, "lost")
    await asyncio.wait_for(both.hung_up.wait(), 5)


async def test_a_watch_is_held_at_a_line(crossing: Crossing, client: aiohttp.ClientSession, both: Both) -> None:
    crossing.begin(GANG, Step("bound", "event", 1))
    both.lines.put_nowait(line("a-0"))
    both.lines.put_nowait(line("a-0", "node"))
    async with client.get(f"http://127.0.0.1:{crossing.api_port}/api/v1/pods", params={"watch": "true"}) as watch:
        assert await watch.content.readline() == line("a-0")
        assert await stopped(crossing)
        crossing.go_on()
        assert await watch.content.readline() == line("a-0", "node")


async def die(*calls: "asyncio.Task[int]") -> None:
    for call in calls:
        call.cancel()
    await asyncio.gather(*calls, return_exceptions=True)
    await asyncio.sleep(0.05)


def line(name: str, node: str = "") -> bytes:
    pod = {"metadata": {"name": name}, "spec": {"nodeName": node} if node else {}}
    return json.dumps({"type": "MODIFIED", "object": pod}).encode() + b"\n"
