"""A reflector and a stand-in for kube-apiserver that misbehaves: what the sink hears, how often the server is asked.

Times are scaled down by about a thousand; jitter is off, so that each pause is as long as its bound. Which bounds were
asked for is judged rather than how long it took: a machine that has other work makes anything take longer.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from itertools import pairwise
from typing import Any

import pytest
from msgspec import Raw

from extender.apiserver import ApiServer
from extender.model.node import Node
from extender.observe.metrics import Metrics
from extender.watch.reflector import Pace, Reflector, Source
from extender.wire.kube import NODES, Kind, ObjectId, Seen
from tests.apiserver_stub import Answer, ApiServerStub, Json, answer, break_off, no_answer, silence, stream
from tests.builders import node_json
from tests.eventually import eventually

PACE = Pace(
    page_size=2,
    list_timeout_s=0.2,
    watch_s=(300.0, 600.0),
    silence_s=0.5,
    first_pause_s=0.01,
    longest_pause_s=0.1,
    longest_retry_after_s=0.3,
    healthy_s=0.2,
)


class Sink:
    """Remembers the nodes it was told of, and how often it got a whole list."""

    def __init__(self) -> None:
        self.nodes: dict[str, Node] = {}
        self.lists = 0

    def replace(self, nodes: Iterable[Node]) -> None:
        self.nodes = {node.name: node for node in nodes}
        self.lists += 1

    def upsert(self, node: Node) -> None:
        self.nodes[node.name] = node

    def remove(self, gone: ObjectId) -> None:
        del self.nodes[gone.name]


class Pauses:
    """Leaves nothing to chance and remembers each pause between two tries."""

    def __init__(self) -> None:
        self.taken_s: list[float] = []

    def __call__(self, low: float, high: float) -> float:
        if low == 0:  # how long a watch lasts is drawn, too, and never from zero
            self.taken_s.append(high)
        return high


@pytest.fixture
def sink() -> Sink:
    return Sink()


@pytest.fixture
def pauses() -> Pauses:
    return Pauses()


@pytest.fixture
def reflector(api: ApiServer, metrics: Metrics, sink: Sink, pauses: Pauses) -> Reflector[Node]:
    return a_reflector(api, metrics, sink, pauses=pauses)


def a_reflector(
    api: ApiServer, metrics: Metrics, sink: Sink, pace: Pace = PACE, pauses: Pauses | None = None
) -> Reflector[Node]:
    source = Source("nodes", "/api/v1/nodes", NODES, sink.replace, sink.upsert, sink.remove)
    return Reflector(source, api, metrics, pace, uniform=pauses or Pauses())


@asynccontextmanager
async def running(reflector: Reflector[Node]) -> AsyncIterator[asyncio.Task[None]]:
    task: asyncio.Task[None] = asyncio.create_task(reflector.run())
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.wait([task])


async def put_nodes(stub: ApiServerStub, *names: str, **more: Json) -> None:
    for name in names:
        await stub.put(f"/api/v1/nodes/{name}", node_json(name, **more))


async def watching(stub: ApiServerStub, times: int = 1) -> None:
    """Wait until this many watches were asked for."""
    await eventually(lambda: len(stub.calls_of("watch")) >= times)


def reconnects(metrics: Metrics, reason: str) -> float:
    labels = {"resource": "nodes", "reason": reason}
    return metrics.registry.get_sample_value("gang_extender_watch_reconnects_total", labels) or 0


def skipped(metrics: Metrics) -> float:
    return metrics.registry.get_sample_value("gang_extender_watch_skipped_objects_total", {"resource": "nodes"}) or 0


async def test_a_list_of_three_pages_is_delivered_at_once(
    stub: ApiServerStub, reflector: Reflector[Node], sink: Sink
) -> None:
    await put_nodes(stub, "n1", "n2", "n3", "n4", "n5")
    async with running(reflector):
        await watching(stub)
    assert sorted(sink.nodes) == ["n1", "n2", "n3", "n4", "n5"]
    assert sink.lists == 1
    assert [call.query.get("continue") for call in stub.calls_of("list")] == [None, "2", "4"]
    assert {call.query["limit"] for call in stub.calls_of("list")} == {"2"}


async def test_a_page_is_asked_for_before_the_one_before_it_is_read(
    stub: ApiServerStub, api: ApiServer, metrics: Metrics, sink: Sink
) -> None:
    """The API server and we work at the same time: reading a page takes about as long as making one."""
    await put_nodes(stub, "n1", "n2", "n3", "n4", "n5")
    asked: list[int] = []

    def read(body: Raw) -> Seen[Node]:
        asked.append(len(api_calls))
        return NODES.read(body)

    api_calls: list[object] = []
    request = api.request

    async def noted(*args: Any, **options: Any) -> Any:
        api_calls.append(args)
        return await request(*args, **options)

    source = Source("nodes", "/api/v1/nodes", Kind("Node", read), sink.replace, sink.upsert, sink.remove)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(api, "request", noted)
        async with running(Reflector(source, api, metrics, PACE)):
            await watching(stub)
    assert asked == [2, 2, 3, 3, 3], "while a page of two is read the next one is under way"
    assert len(sink.nodes) == 5


async def test_what_happens_after_the_list_reaches_the_sink(
    stub: ApiServerStub, reflector: Reflector[Node], sink: Sink
) -> None:
    await put_nodes(stub, "n1", "n2")
    async with running(reflector):
        await watching(stub)
        await put_nodes(stub, "n3")
        await put_nodes(stub, "n1", spec={"unschedulable": True})
        await stub.delete("/api/v1/nodes/n2")
        await eventually(lambda: sorted(sink.nodes) == ["n1", "n3"])
    assert sink.nodes["n1"].unschedulable
    assert sink.lists == 1


async def test_a_watch_that_ends_cleanly_goes_on_from_where_it_was(
    stub: ApiServerStub, reflector: Reflector[Node], sink: Sink, metrics: Metrics
) -> None:
    async with running(reflector):
        await watching(stub)
        await put_nodes(stub, "n1")
        await eventually(lambda: "n1" in sink.nodes)
        await stub.end_watches()
        await put_nodes(stub, "n2")
        await eventually(lambda: "n2" in sink.nodes)
    version = stub.objects["/api/v1/nodes/n1"]["metadata"]["resourceVersion"]
    assert stub.calls_of("watch")[1].query["resourceVersion"] == version
    assert (sink.lists, reconnects(metrics, "ended")) == (1, 1)


async def test_bookmarks_alone_keep_the_version_young(stub: ApiServerStub, reflector: Reflector[Node]) -> None:
    async with running(reflector):
        await watching(stub)
        await stub.bookmark("nodes")
        version = await stub.bookmark("nodes")
        await asyncio.sleep(0.02)
        await stub.end_watches()
        await watching(stub, 2)
    assert stub.calls_of("watch")[1].query["resourceVersion"] == str(version)
    assert stub.calls_of("watch")[0].query["allowWatchBookmarks"] == "true"


async def test_a_watch_is_asked_for_five_to_ten_minutes(stub: ApiServerStub, api: ApiServer, metrics: Metrics) -> None:
    source = Source("nodes", "/api/v1/nodes", NODES, Sink().replace, Sink().upsert, Sink().remove)
    async with running(Reflector(source, api, metrics)):
        await watching(stub)
    assert 300 <= int(stub.calls_of("watch")[0].query["timeoutSeconds"]) <= 600


@pytest.mark.parametrize(
    "too_old",
    [
        pytest.param(None, id="as the status of the answer"),
        pytest.param(stream(b'{"type":"ERROR","object":{"kind":"Status","code":410}}'), id="as an event"),
    ],
)
async def test_a_version_too_old_is_cured_by_a_list_that_forgets_what_has_vanished(
    stub: ApiServerStub, reflector: Reflector[Node], sink: Sink, metrics: Metrics, too_old: Answer | None
) -> None:
    await put_nodes(stub, "n1", "n2")
    async with running(reflector):
        await watching(stub)
        stub.lose("/api/v1/nodes/n2")
        if too_old is not None:
            stub.answer_next("watch", too_old)
        await stub.end_watches()
        await eventually(lambda: sink.lists == 2)
        await put_nodes(stub, "n3")
        await eventually(lambda: sorted(sink.nodes) == ["n1", "n3"])
    assert reconnects(metrics, "expired") == 1


async def test_a_server_that_is_busy_is_left_alone_for_as_long_as_it_asks(
    stub: ApiServerStub, reflector: Reflector[Node], metrics: Metrics
) -> None:
    stub.answer_next("list", answer(429, "busy", **{"Retry-After": "1"}))
    async with running(reflector):
        await watching(stub)
    first, second = stub.calls_of("list")
    assert second.at_s - first.at_s >= PACE.longest_retry_after_s
    assert reconnects(metrics, "throttled") == 1


async def test_a_server_that_is_busy_while_watching_is_no_reason_for_a_list(
    stub: ApiServerStub, reflector: Reflector[Node], sink: Sink
) -> None:
    stub.answer_next("watch", answer(429), answer(503), answer(500))
    async with running(reflector):
        await watching(stub, 4)
    assert sink.lists == 1


async def test_a_server_that_comes_up_late_is_found(
    stopped_stub: ApiServerStub, reflector: Reflector[Node], sink: Sink, metrics: Metrics
) -> None:
    await put_nodes(stopped_stub, "n1")
    async with running(reflector):
        await eventually(lambda: reconnects(metrics, "no_answer") >= 3)
        assert not reflector.synced
        await stopped_stub.start()
        await eventually(lambda: "n1" in sink.nodes)
    assert reflector.synced


async def test_a_server_that_restarts_is_found_again_without_a_list(
    stub: ApiServerStub, reflector: Reflector[Node], sink: Sink
) -> None:
    async with running(reflector):
        await watching(stub)
        await stub.stop()
        await stub.start()
        await put_nodes(stub, "n1")
        await eventually(lambda: "n1" in sink.nodes)
    assert sink.lists == 1


@pytest.mark.parametrize(("mute", "reason"), [(silence, "silent"), (no_answer, "silent"), (break_off, "no_answer")])
async def test_a_connection_that_is_dead_is_left_for_another(
    stub: ApiServerStub, api: ApiServer, metrics: Metrics, sink: Sink, mute: Answer, reason: str
) -> None:
    stub.answer_next("watch", mute, mute)
    pace = Pace(silence_s=0.05, first_pause_s=0.01)
    async with running(a_reflector(api, metrics, sink, pace)):
        await watching(stub, 3)
        await put_nodes(stub, "n1")
        await eventually(lambda: "n1" in sink.nodes)
    assert sink.lists == 1
    assert reconnects(metrics, reason) >= 1


async def test_a_cluster_where_nothing_happens_is_asked_at_an_even_pace_and_stays_fresh(
    stub: ApiServerStub, api: ApiServer, metrics: Metrics, sink: Sink, pauses: Pauses
) -> None:
    pace = Pace(silence_s=0.05, first_pause_s=0.005, longest_pause_s=1.0, healthy_s=0.04)
    reflector = a_reflector(api, metrics, sink, pace, pauses)
    async with running(reflector):
        await watching(stub, 8)
        assert reflector.is_fresh(asyncio.get_running_loop().time())
    times_s = [call.at_s for call in stub.calls_of("watch")]
    assert all(later_s - before_s >= pace.silence_s for before_s, later_s in pairwise(times_s))
    assert set(pauses.taken_s) == {pace.first_pause_s}, "nothing is wrong, so they do not double"
    assert reconnects(metrics, "silent") >= 7
    assert sink.lists == 1


async def test_it_is_fresh_while_the_server_talks_and_stale_when_it_has_gone(
    stub: ApiServerStub, api: ApiServer, metrics: Metrics, sink: Sink
) -> None:
    now_s = asyncio.get_running_loop().time
    pace = Pace(silence_s=0.2, longest_pause_s=0.1)
    for_s = pace.silence_s + pace.longest_pause_s
    reflector = a_reflector(api, metrics, sink, pace)
    assert not reflector.is_fresh(now_s())
    begun_s = now_s()
    async with running(reflector):
        await watching(stub)
        await stub.stop()
        ended_s = now_s()
        assert reflector.is_fresh(begun_s + for_s), "it was heard of since"
        assert not reflector.is_fresh(ended_s + for_s + 0.001)
        assert reflector.synced


async def test_objects_and_lines_that_cannot_be_read_cost_only_themselves(
    stub: ApiServerStub, reflector: Reflector[Node], sink: Sink, metrics: Metrics
) -> None:
    await put_nodes(stub, "n1", "n2")
    await stub.put("/api/v1/nodes/odd", {"metadata": {"name": "odd"}, "status": {"allocatable": "much"}})
    async with running(reflector):
        await watching(stub)
        assert skipped(metrics) == 1
        await stub.put("/api/v1/nodes/odder", {"metadata": {"name": 7}})
        await stub.send_line("nodes", b"<html>")
        await put_nodes(stub, "n3")
        await eventually(lambda: "n3" in sink.nodes)
        assert len(stub.calls_of("watch")) == 1
        await stub.put("/api/v1/nodes/oddest", {"metadata": {"name": []}})
        await eventually(lambda: skipped(metrics) == 4)
        await stub.end_watches()
        await watching(stub, 2)
    assert sorted(sink.nodes) == ["n1", "n2", "n3"]
    assert sink.lists == 1


async def test_an_object_may_be_larger_than_any_buffer(
    stub: ApiServerStub, reflector: Reflector[Node], sink: Sink
) -> None:
    async with running(reflector):
        await watching(stub)
        await put_nodes(stub, "n1", metadata={"annotations": {"large": "x" * 3 * 2**20}})
        await put_nodes(stub, "n2")
        await eventually(lambda: sorted(sink.nodes) == ["n1", "n2"])


@pytest.mark.parametrize(
    ("verb", "always"),
    [
        pytest.param("list", answer(500), id="lists fail"),
        pytest.param("list", answer(403), id="lists are forbidden"),
        pytest.param("list", answer(410), id="continue tokens expire"),
        pytest.param("list", break_off, id="lists break off"),
        pytest.param("list", stream(b"<html>"), id="lists are no lists"),
        pytest.param("watch", answer(500), id="watches fail"),
        pytest.param("watch", answer(403), id="watches are forbidden"),
        pytest.param("watch", answer(410), id="every version is too old"),
        pytest.param("watch", break_off, id="watches break off"),
        pytest.param("watch", stream(), id="watches end at once"),
        pytest.param("watch", stream(b"<html>"), id="watches are no watches"),
        pytest.param("watch", stream(b'{"type":"ERROR","object":{"code":500}}'), id="watches end in errors"),
        pytest.param("watch", stream(b'{"type":"ERROR","object":{"code":410}}'), id="watches end in 410"),
    ],
)
async def test_no_answer_of_the_server_makes_a_hot_loop(
    stub: ApiServerStub, api: ApiServer, metrics: Metrics, sink: Sink, verb: str, always: Answer
) -> None:
    stub.answer_next(verb, *[always] * 1000)
    pauses = Pauses()
    pace = Pace(first_pause_s=0.005, longest_pause_s=0.05)
    clock = asyncio.get_running_loop().time
    began_s = clock()
    async with running(a_reflector(api, metrics, sink, pace, pauses)):
        await eventually(lambda: len(pauses.taken_s) >= 6)
        took_s = clock() - began_s
    assert pauses.taken_s[:6] == [0.005, 0.01, 0.02, 0.04, 0.05, 0.05]
    assert took_s >= sum(pauses.taken_s[:5])
    tries_a_pause = 2 if always is break_off else 1  # aiohttp repeats a GET once when the connection breaks
    assert 6 <= len(stub.calls_of(verb)) <= tries_a_pause * (len(pauses.taken_s) + 1)


async def test_after_a_time_of_health_pauses_are_short_again(
    stub: ApiServerStub, reflector: Reflector[Node], pauses: Pauses
) -> None:
    stub.answer_next("watch", *[answer(500)] * 5)
    async with running(reflector):
        await watching(stub, 6)
        for _ in range(6):
            await asyncio.sleep(0.05)
            await stub.bookmark("nodes")
        await stub.end_watches()
        await watching(stub, 7)
    assert stub.calls_of("watch")[5].at_s - stub.calls_of("watch")[4].at_s >= PACE.longest_pause_s
    assert pauses.taken_s[4] == PACE.longest_pause_s
    assert pauses.taken_s[5] == PACE.first_pause_s


async def test_a_fault_of_the_sink_is_not_hidden(stub: ApiServerStub, api: ApiServer, metrics: Metrics) -> None:
    def broken(_nodes: Iterable[Node]) -> None:
        raise ZeroDivisionError

    sink = Sink()
    source = Source("nodes", "/api/v1/nodes", NODES, broken, sink.upsert, sink.remove)
    with pytest.raises(ZeroDivisionError):
        await Reflector(source, api, metrics, PACE).run()
    assert stub.calls_of("watch") == []


async def test_thousands_of_objects_leave_the_loop_to_others(
    stub: ApiServerStub, api: ApiServer, metrics: Metrics
) -> None:
    await put_nodes(stub, *(f"n{number}" for number in range(3000)))
    parts = [await longest_part_of_a_sync(stub, api, metrics) for _ in range(3)]
    assert min(parts) < 1 / 3, "of its CPU time; what the machine adds to one of them is not ours"


async def longest_part_of_a_sync(stub: ApiServerStub, api: ApiServer, metrics: Metrics) -> float:
    """Return for how large a part of it nobody else had the loop."""
    sink = Sink()
    longest_s = 0.0

    async def feel() -> None:
        nonlocal longest_s
        while True:
            before_s = time.process_time()
            await asyncio.sleep(0)
            longest_s = max(longest_s, time.process_time() - before_s)

    feeling = asyncio.create_task(feel())
    began_s, watches = time.process_time(), len(stub.calls_of("watch"))
    async with running(a_reflector(api, metrics, sink, Pace())):
        await watching(stub, watches + 1)
    all_s = time.process_time() - began_s
    feeling.cancel()
    assert len(sink.nodes) == 3000
    return longest_s / all_s
