"""What a client sees of each fault, and what became of its request behind the proxy."""

import asyncio
import json
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager

import aiohttp
import pytest
from aiohttp import web

from e2e.faults.calls import Call
from e2e.faults.proxy import Moment, Proxy, running
from e2e.faults.rules import Draws, Kind, Rule, Tally
from tests.faults.behind import serving

Client = aiohttp.ClientSession
BINDING = "/api/v1/namespaces/a/pods/b/binding"


class Target:
    """What lies behind the proxy: it keeps what it was sent, and has a watch whose lines the test gives."""

    def __init__(self) -> None:
        self.bodies: list[str] = []
        self.tokens: list[str | None] = []
        self.queries: list[str] = []
        self.lines: list[bytes] = []
        self.ends = True
        self.hung_up = asyncio.Event()

    async def post(self, request: web.Request) -> web.Response:
        self.tokens.append(request.headers.get("Authorization"))
        self.bodies.append(await request.text())
        return web.json_response({"kind": "Status", "status": "Success"}, status=201)

    async def watch(self, request: web.Request) -> web.StreamResponse:
        self.queries.append(request.query_string)
        answer = web.StreamResponse()
        await answer.prepare(request)
        for line in self.lines:
            await answer.write(line)
        if not self.ends:
            try:
                await asyncio.sleep(30)
            except asyncio.CancelledError:
                self.hung_up.set()
                raise
        return answer


@pytest.fixture
async def target() -> Target:
    return Target()


@pytest.fixture
async def target_url(target: Target) -> AsyncIterator[str]:
    async with serving(target) as url:
        yield url


@contextmanager
def failing(url: str, *rules: Rule, where: str = "api") -> Iterator[tuple[str, Tally, Proxy]]:
    tally = Tally()
    proxy = Proxy("verbs" if where == "verbs" else "api", url, Draws(1, rules), tally)
    with running(proxy) as (proxied,):
        proxy.resume()
        yield proxied, tally, proxy


def event(name: str, kind: str = "MODIFIED") -> bytes:
    return json.dumps({"type": kind, "object": {"metadata": {"uid": name}}}).encode() + b"\n"


async def watched(client: Client, url: str) -> list[str]:
    """Return whose events came, in order; a number for an error's, and `cut` where the end was none."""
    seen = []
    try:
        async with client.get(f"{url}/api/v1/pods?watch=1&resourceVersion=1") as answer:
            async for line in answer.content:
                seen.append(told(line))  # noqa: PERF401 - what came before the cut is to be kept
    except aiohttp.ClientPayloadError:
        seen.append("cut")
    return seen


def told(line: bytes) -> str:
    try:
        obj = json.loads(line)["object"]
    except ValueError:
        return "rubbish"
    return str(obj.get("code") or obj["metadata"]["uid"])


async def test_without_a_fault_a_request_and_a_watch_go_through_as_they_are(
    target: Target, target_url: str, client: Client
) -> None:
    target.lines = [event("a"), event("b"), b'{"type":"BOOKMARK","object":{"metadata":{"uid":""}}}\n']
    with failing(target_url) as (url, tally, _):
        async with client.post(url + BINDING, data="x", headers={"Authorization": "Bearer t"}) as answer:
            assert (answer.status, (await answer.json())["status"]) == (201, "Success")
        assert await watched(client, url) == ["a", "b", ""]
    assert (target.bodies, target.tokens) == (["x"], ["Bearer t"])
    assert target.queries == ["watch=1&resourceVersion=1"]
    assert tally.total == 0


@pytest.mark.parametrize(
    ("kind", "status"),
    [(Kind.CONFLICT, 409), (Kind.TOO_MANY, 429), (Kind.ERROR, 500), (Kind.UNAVAILABLE, 503), (Kind.EXPIRED, 410)],
)
async def test_what_is_refused_does_not_reach_the_server(
    target: Target, target_url: str, client: Client, kind: Kind, status: int
) -> None:
    with failing(target_url, Rule(kind, 1, "api POST pods/binding")) as (url, tally, _):
        async with client.post(url + BINDING, data="x") as answer:
            assert (answer.status, (await answer.json())["kind"]) == (status, "Status")
            assert answer.headers.get("Retry-After") == ("1" if status == 429 else None)
    assert target.bodies == []
    assert tally.by_kind() == {("api", kind): 1}


@pytest.mark.parametrize("kind", [Kind.LOST, Kind.CUT])
async def test_what_is_done_may_be_answered_by_nothing_or_by_half(
    target: Target, target_url: str, client: Client, kind: Kind
) -> None:
    with failing(target_url, Rule(kind, 1, "api POST *")) as (url, tally, _), pytest.raises(aiohttp.ClientError):
        async with client.post(url + BINDING, data="x") as answer:
            await answer.read()
    assert target.bodies == ["x"]
    assert tally.total == 1


async def test_a_client_that_does_not_wait_for_the_answer_has_had_its_will_all_the_same(
    target: Target, target_url: str, client: Client
) -> None:
    with failing(target_url, Rule(Kind.LANDED, 1, "api POST *")) as (url, tally, _), pytest.raises(TimeoutError):
        await client.post(url + BINDING, data="x", timeout=aiohttp.ClientTimeout(total=0.3))
    assert target.bodies == ["x"]
    assert tally.total == 1


async def test_a_call_may_come_twice(target: Target, target_url: str, client: Client) -> None:
    with failing(target_url, Rule(Kind.TWICE, 1, "verbs POST bind"), where="verbs") as (url, _, _):
        async with client.post(f"{url}/v1/bind", data="x") as answer:
            assert answer.status == 201
    assert target.bodies == ["x", "x"]


async def test_in_a_pause_nothing_fails_and_what_lasts_ends(target: Target, target_url: str, client: Client) -> None:
    target.lines = [event("a")]
    rules = [Rule(Kind.SILENCE, 1, "api LINE *"), Rule(Kind.ERROR, 1, "api POST *")]
    with failing(target_url, *rules) as (url, tally, proxy):
        silent = asyncio.create_task(watched(client, url))
        await asyncio.sleep(0.5)
        assert not silent.done()
        proxy.pause()
        assert await silent == ["a"]
        async with client.post(url + BINDING) as answer:
            assert answer.status == 201
    assert tally.total == 1


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (Kind.DUPLICATE, ["a", "a", "b", "b"]),
        (Kind.REORDER, ["b", "a"]),
        (Kind.SLOW_STREAM, ["a", "b"]),
        (Kind.EXPIRED_STREAM, ["a", "410"]),
        (Kind.GAP, ["410"]),
    ],
)
async def test_lines_of_a_watch_go_wrong(
    target: Target, target_url: str, client: Client, kind: Kind, expected: list[str]
) -> None:
    target.lines = [event("a"), event("b")]
    with failing(target_url, Rule(kind, 1, "api LINE pods")) as (url, tally, _):
        assert [each for each in await watched(client, url) if each != "cut"] == expected
    assert tally.total >= 1


async def test_a_watch_is_cut_in_the_middle_of_an_event(target: Target, target_url: str, client: Client) -> None:
    target.lines = [event("a"), event("b")]
    with failing(target_url, Rule(Kind.CUT_STREAM, 1, "api LINE pods")) as (url, tally, _):
        assert set(await watched(client, url)) <= {"rubbish", "cut"}
    assert tally.total == 1


async def test_events_of_one_object_never_change_places(target: Target, target_url: str, client: Client) -> None:
    target.lines = [event("a", "ADDED"), event("a", "DELETED")]
    with failing(target_url, Rule(Kind.REORDER, 1, "api LINE pods")) as (url, tally, _):
        assert await watched(client, url) == ["a", "a"]
    assert tally.total == 0


async def test_a_client_that_hangs_up_is_felt_by_the_server(target: Target, target_url: str, client: Client) -> None:
    target.ends = False
    with failing(target_url) as (url, _, _):
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.3), client.get(f"{url}/api/v1/pods?watch=1") as answer:
                await answer.read()
        async with asyncio.timeout(5):
            await target.hung_up.wait()


async def test_a_proxy_that_turns_to_another_server_cuts_the_calls_under_way(
    target: Target, target_url: str, client: Client
) -> None:
    target.ends = False
    with failing("http://127.0.0.1:9") as (url, _, proxy):
        proxy.turn_to(target_url)
        waiting = asyncio.create_task(watched(client, url))
        await asyncio.sleep(0.3)
        assert not waiting.done()
        proxy.turn_to("http://127.0.0.1:9")
        async with asyncio.timeout(5):
            await target.hung_up.wait()
            assert await waiting == ["cut"]


async def test_whoever_looks_on_sees_a_request_before_and_after_it_was_done(
    target: Target, target_url: str, client: Client
) -> None:
    seen: list[tuple[str, Moment, int, str]] = []

    def look(call: Call, moment: Moment) -> None:
        seen.append((call.of_class, moment, len(target.bodies), threading.current_thread().name))

    with failing(target_url, Rule(Kind.LOST, 1, "api POST *")) as (url, _, proxy):
        proxy.look = look
        with pytest.raises(aiohttp.ClientError):
            await client.post(url + BINDING, data="x")
    assert seen == [
        ("api POST pods/binding", "came", 0, "fault proxies"),
        ("api POST pods/binding", "landed", 1, "fault proxies"),
    ]


async def test_a_server_that_is_away_drops_the_callers_connection(client: Client, unused_tcp_port: int) -> None:
    with failing(f"http://127.0.0.1:{unused_tcp_port}") as (url, tally, _):
        started_s = time.monotonic()
        with pytest.raises(aiohttp.ClientError):
            await client.post(url + BINDING)
        assert time.monotonic() - started_s < 10
    assert tally.total == 0
