"""What is announced can be read as Events, repeats as series, within limits, and nobody ever waits for it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from extender.apiserver import ApiServer
from extender.effects.events import BURST, REFILL_S, SERIES_S, WAITING, EventRecorder
from extender.model.announcement import Announcement
from extender.observe.metrics import Metrics
from tests.apiserver_stub import ApiServerStub, Json, answer
from tests.builders import a_pod, uid_of
from tests.eventually import eventually

EVENTS = "/apis/events.k8s.io/v1/namespaces/default/events"


class Clock:
    """A wall clock that is set by hand."""

    def __init__(self) -> None:
        self.now_s = 1_800_000_000.25

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def recorder(api: ApiServer, metrics: Metrics, clock: Clock) -> EventRecorder:
    return EventRecorder(api, metrics, "gang-scheduler-0", clock, first_pause_s=0.01)


@asynccontextmanager
async def running(recorder: EventRecorder) -> AsyncIterator[None]:
    task: asyncio.Task[None] = asyncio.create_task(recorder.run())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])


def placed(pod: str = "w0", note: str = "Gang placed.") -> Announcement:
    return Announcement(a_pod(pod), "Normal", "GangPlaced", "Planning", note)


def events(stub: ApiServerStub) -> list[Json]:
    return [content for path, content in stub.objects.items() if path.startswith(EVENTS)]


def count(metrics: Metrics, result: str) -> float:
    return metrics.registry.get_sample_value("gang_extender_events_total", {"result": result}) or 0


async def announce(recorder: EventRecorder, metrics: Metrics, announcement: Announcement, times: int = 1) -> None:
    """Announce, and wait until each is dealt with."""
    before = dealt_with(metrics)
    for _ in range(times):
        recorder.announce(announcement)
    await eventually(lambda: dealt_with(metrics) == before + times)


def dealt_with(metrics: Metrics) -> float:
    return sum(count(metrics, result) for result in ("created", "repeated", "limited", "refused", "failed", "dropped"))


async def test_an_announcement_becomes_an_event_on_its_pod(
    stub: ApiServerStub, recorder: EventRecorder, metrics: Metrics
) -> None:
    async with running(recorder):
        await announce(recorder, metrics, placed())
    [event] = events(stub)
    assert event["metadata"]["name"].startswith("w0.")
    assert event["eventTime"] == "2027-01-15T08:00:00.250000Z"
    assert event["regarding"] == {
        "apiVersion": "v1",
        "kind": "Pod",
        "namespace": "default",
        "name": "w0",
        "uid": uid_of("w0"),
    }
    said = {key: event[key] for key in ("type", "reason", "action", "note")}
    assert said == {"type": "Normal", "reason": "GangPlaced", "action": "Planning", "note": "Gang placed."}
    assert event["reportingController"] == "gang-extender.io/extender"
    assert event["reportingInstance"] == "gang-scheduler-0"


async def test_repeats_are_one_event_with_a_count(
    stub: ApiServerStub, recorder: EventRecorder, metrics: Metrics, clock: Clock
) -> None:
    async with running(recorder):
        await announce(recorder, metrics, placed())
        clock.now_s += 60
        await announce(recorder, metrics, placed(), times=2)
    [event] = events(stub)
    assert event["series"] == {"count": 3, "lastObservedTime": "2027-01-15T08:01:00.250000Z"}
    assert (count(metrics, "created"), count(metrics, "repeated")) == (1, 2)


async def test_another_text_or_another_pod_is_another_event(
    stub: ApiServerStub, recorder: EventRecorder, metrics: Metrics, clock: Clock
) -> None:
    async with running(recorder):
        for announcement in (placed(), placed(note="Gang moved."), placed("w1")):
            clock.now_s += 1
            await announce(recorder, metrics, announcement)
    assert len(events(stub)) == 3


async def test_a_repeat_after_a_long_time_is_a_new_event(
    stub: ApiServerStub, recorder: EventRecorder, metrics: Metrics, clock: Clock
) -> None:
    async with running(recorder):
        await announce(recorder, metrics, placed())
        clock.now_s += SERIES_S + 1
        await announce(recorder, metrics, placed())
    assert len(events(stub)) == 2


async def test_a_series_lives_as_long_as_it_is_repeated(
    stub: ApiServerStub, recorder: EventRecorder, metrics: Metrics, clock: Clock
) -> None:
    async with running(recorder):
        for _ in range(4):
            await announce(recorder, metrics, placed())
            clock.now_s += SERIES_S - 1
    [event] = events(stub)
    assert event["series"]["count"] == 4


async def test_a_repeat_of_an_event_that_was_deleted_is_a_new_event(
    stub: ApiServerStub, recorder: EventRecorder, metrics: Metrics, clock: Clock
) -> None:
    async with running(recorder):
        await announce(recorder, metrics, placed())
        stub.objects.clear()
        clock.now_s += 1
        await announce(recorder, metrics, placed())
        await announce(recorder, metrics, placed())
    [event] = events(stub)
    assert event["series"]["count"] == 2


async def test_a_pod_that_is_talked_of_too_much_is_left_out_for_a_while(
    stub: ApiServerStub, recorder: EventRecorder, metrics: Metrics, clock: Clock
) -> None:
    async with running(recorder):
        await announce(recorder, metrics, placed(), times=BURST + 10)
        await announce(recorder, metrics, placed("w1"))
        assert count(metrics, "limited") == 10
        clock.now_s += REFILL_S
        await announce(recorder, metrics, placed(), times=2)
    assert count(metrics, "limited") == 11
    assert len(stub.calls) == BURST + 2


@pytest.mark.parametrize(
    "note", ["x" * 5000, "é" * 5000, "x" + "€" * 5000, "gang \ud800"], ids=["ascii", "two bytes", "three", "surrogate"]
)
async def test_a_text_of_any_length_and_script_fits(
    stub: ApiServerStub, recorder: EventRecorder, metrics: Metrics, note: str
) -> None:
    async with running(recorder):
        await announce(recorder, metrics, placed(note=note))
    [event] = events(stub)
    assert len(event["note"].encode()) <= 1024
    assert len(event["note"].encode()) >= min(1022, len(note))
    assert "\ufffd" not in event["note"]


async def test_the_longest_pod_name_makes_a_legal_event_name(
    stub: ApiServerStub, recorder: EventRecorder, metrics: Metrics
) -> None:
    async with running(recorder):
        await announce(recorder, metrics, placed("a." * 126 + "b"))
    [event] = events(stub)
    assert len(event["metadata"]["name"]) <= 253
    assert ".." not in event["metadata"]["name"]


async def test_an_event_whose_answer_was_lost_is_written_once(
    stub: ApiServerStub, recorder: EventRecorder, metrics: Metrics
) -> None:
    stub.answer_next("create", stub.act_unheard)
    async with running(recorder):
        await announce(recorder, metrics, placed())
    assert len(events(stub)) == 1
    assert count(metrics, "created") == 1


async def test_what_cannot_be_written_does_not_hold_up_the_rest(
    stub: ApiServerStub, recorder: EventRecorder, metrics: Metrics
) -> None:
    stub.answer_next("create", answer(403), *[answer(500)] * 3)
    async with running(recorder):
        for pod in ("w0", "w1", "w2"):
            await announce(recorder, metrics, placed(pod))
    assert [event["regarding"]["name"] for event in events(stub)] == ["w2"]
    assert (count(metrics, "refused"), count(metrics, "failed"), count(metrics, "created")) == (1, 1, 1)


async def test_more_than_can_be_written_is_dropped_and_counted(recorder: EventRecorder, metrics: Metrics) -> None:
    for _ in range(WAITING + 5):
        recorder.announce(placed())
    assert count(metrics, "dropped") == 5
