"""What do a pod's owners read in `kubectl describe pod`? Writes announcements as Events, as well as it can.

Repeats within six minutes become a series of one Event, a pod that is talked of too much is left out, and so is
everything when the API server cannot keep up: nobody waits for an Event. Upstream counterparts: client-go's
tools/events (series) and tools/record (limits).
"""

import asyncio
from collections.abc import Callable
from typing import Any, Literal, NoReturn, TypeAlias

import orjson
import structlog
from cachetools import LRUCache, TTLCache
from msgspec import Struct

from extender.apiserver import JSON, MERGE_PATCH, Response
from extender.backoff import Backoff
from extender.effects.fence import Requests
from extender.effects.retry import settle
from extender.model.announcement import Announcement
from extender.model.pod import PodUid
from extender.observe.metrics import Metrics
from extender.wire.micro_time import micro_time

CONTROLLER = "gang-extender.io/extender"

SERIES_S = 360.0
"""A repeat that comes later is a new Event; client-go's finishTime."""

BURST = 25
REFILL_S = 300.0
"""A pod gets 25 writes at once and one more every five minutes; client-go's spam filter."""

REMEMBERED = 4096
"""Pods with limits, and Events with a series; client-go's size of both caches."""

WAITING = 1000
"""client-go's maxQueuedEvents; several seconds of writing."""

TRIES = 3
TRY_S = 10.0
"""What is not written after these is not worth holding up the others."""

NOTE_BYTES = 1024
INSTANCE_CHARS = 128
NAME_CHARS = 253
"""The API server's limits."""

_log = structlog.get_logger()

Result = Literal["created", "repeated", "limited", "refused", "failed", "dropped"]
_Key: TypeAlias = tuple[PodUid, str, str, str, str]


class _Written(Struct):
    path: str
    count: int


class EventRecorder:
    """Writes one Event after another. `instance` names our process; `now_s` is the wall clock in seconds."""

    def __init__(
        self,
        api: Requests,
        metrics: Metrics,
        instance: str,
        now_s: Callable[[], float],
        *,
        first_pause_s: float = 0.2,
    ) -> None:
        self._api = api
        self._metrics = metrics
        self._instance = instance[:INSTANCE_CHARS]
        self._now_s = now_s
        self._first_pause_s = first_pause_s
        self._waiting: asyncio.Queue[Announcement] = asyncio.Queue(WAITING)
        self._written: TTLCache[_Key, _Written] = TTLCache(REMEMBERED, SERIES_S, timer=now_s)
        self._tokens: LRUCache[PodUid, tuple[float, float]] = LRUCache(REMEMBERED)

    def announce(self, announcement: Announcement) -> None:
        """Have it written soon, or drop it when too many wait."""
        try:
            self._waiting.put_nowait(announcement)
        except asyncio.QueueFull:
            self._count("dropped")

    async def run(self) -> NoReturn:
        """Write what is announced until cancelled."""
        while True:
            announcement = await self._waiting.get()
            self._count(await self._write(announcement))
            self._waiting.task_done()

    async def until_written(self) -> None:
        """Wait until all that was announced is written."""
        await self._waiting.join()

    async def _write(self, announcement: Announcement) -> Result:
        if not self._take_token(announcement.pod.uid):
            return "limited"
        written = self._written.get(_key(announcement))
        if written is None:
            return await self._create(announcement)
        written.count += 1
        series = {"count": written.count, "lastObservedTime": micro_time(self._now_s())}
        answer = await self._send("PATCH", written.path, {"series": series}, MERGE_PATCH)
        if answer is not None and answer.status == 404:  # the API server keeps Events for an hour, and anyone deletes
            return await self._create(announcement)
        self._written[_key(announcement)] = written  # six minutes from now
        return _result(answer, "repeated")

    async def _create(self, announcement: Announcement) -> Result:
        event = self._event(announcement)
        path = f"/apis/events.k8s.io/v1/namespaces/{announcement.pod.namespace}/events"
        answer = await self._send("POST", path, event)
        result = _result(answer, "created")
        if result == "created":
            self._written[_key(announcement)] = _Written(f"{path}/{event['metadata']['name']}", 1)
        return result

    def _event(self, announcement: Announcement) -> dict[str, Any]:
        pod = announcement.pod
        suffix = f".{round(self._now_s() * 1e9):x}"
        return {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"name": pod.name[: NAME_CHARS - len(suffix)].rstrip("-.") + suffix},
            "eventTime": micro_time(self._now_s()),
            "type": announcement.kind,
            "reason": announcement.reason,
            "action": announcement.action,
            "note": _cut(announcement.note),
            "regarding": {
                "apiVersion": "v1",
                "kind": "Pod",
                "namespace": pod.namespace,
                "name": pod.name,
                "uid": pod.uid,
            },
            "reportingController": CONTROLLER,
            "reportingInstance": self._instance,
        }

    async def _send(self, method: str, path: str, body: dict[str, Any], content_type: str = JSON) -> Response | None:
        backoff = Backoff(self._first_pause_s, 20 * self._first_pause_s)
        payload = orjson.dumps(body)
        for _ in range(TRIES):
            request = self._api.request(method, path, body=payload, content_type=content_type, timeout_s=TRY_S)
            answer = await settle(request, backoff)
            if answer is not None:
                return answer
        return None

    def _take_token(self, uid: PodUid) -> bool:
        now_s = self._now_s()
        tokens, then_s = self._tokens.get(uid, (float(BURST), now_s))
        tokens = min(BURST, tokens + max(0.0, now_s - then_s) / REFILL_S)
        granted = tokens >= 1
        self._tokens[uid] = (tokens - granted, now_s)
        return granted

    def _count(self, result: Result) -> None:
        self._metrics.events.labels(result).inc()
        if result in {"refused", "failed", "dropped"}:
            _log.debug("event lost", result=result)


def _key(announcement: Announcement) -> _Key:
    return (
        announcement.pod.uid,
        announcement.kind,
        announcement.reason,
        announcement.action,
        announcement.note,
    )


def _cut(note: str) -> str:
    return note.encode(errors="replace")[:NOTE_BYTES].decode(errors="ignore")


def _result(answer: Response | None, success: Literal["created", "repeated"]) -> Result:
    if answer is None:
        return "failed"
    if answer.status in {200, 201}:
        return success
    # The name is ours alone: it exists because an earlier try without an answer got through.
    return success if answer.status == 409 else "refused"
