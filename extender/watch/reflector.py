"""How does one kind of object get from the API server into our state, and stay up to date?

    LIST, page by page --> replace --> WATCH from the list's version --> upsert, remove
     ^                                   |              ^
     +--- the version is too old (410) --+-- other end --+   each way back costs a pause

An optional kind may be absent from the API server (404): its list counts as empty, and is asked for again and again.

Every end costs a pause from a back-off that only a minute of quiet resets: no answer of the server makes a hot loop.
Paged lists and no WatchList: every version serves them, 50,000 pods come as fast (1.5 s against 1.4 s), and there is
one way instead of two. Upstream counterpart: client-go's Reflector.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from random import SystemRandom
from typing import Generic, Literal, NoReturn, TypeVar, assert_never

import structlog
from msgspec import Struct

from extender.apiserver import ApiServer, NoAnswerError, RefusedError, SilenceError
from extender.backoff import Backoff
from extender.observe.metrics import Metrics
from extender.wire.kube import (
    Bookmark,
    Changed,
    Deleted,
    Kind,
    ListPage,
    ObjectId,
    Unreadable,
    WatchError,
    decode_event,
    open_page,
    read_page,
)
from extender.wire.malformed import MalformedBody

M = TypeVar("M")

_log = structlog.get_logger()
_chance = SystemRandom()


class Source(Struct, Generic[M], frozen=True):
    """What to watch and whom to tell. The three functions are called in the event loop and must not wait.

    `replace` gets all objects there are, so that those it does not name are gone; `resource` is the plural name. An
    `optional` kind may not be installed. A `field_selector` leaves others out.
    """

    resource: str
    path: str
    kind: Kind[M]
    replace: Callable[[Iterable[M]], None]
    upsert: Callable[[M], None]
    remove: Callable[[ObjectId], None]
    optional: bool = False
    field_selector: str = ""


class Pace(Struct, frozen=True):
    """How often and how long; tests scale it down."""

    page_size: int = 500
    """client-go's, too; a page of pods is 2.5 MB and decoded in 10 ms."""

    list_timeout_s: float = 60.0
    """For one page; kube-apiserver itself gives up on a request after 60 s."""

    watch_s: tuple[float, float] = (300.0, 600.0)
    """A watch ends after a time drawn from here, as client-go's do, so that watches spread over API servers."""

    silence_s: float = 70.0
    """A stream that is silent for this long may be dead without TCP having noticed, so it is asked for again from where
    it was. Bookmarks come every 60 s and save that, but not while nothing changes: kube-apiserver sends none with the
    version that a watch began with."""

    first_pause_s: float = 0.2
    longest_pause_s: float = 30.0
    """client-go's longest as well; a cluster of extenders that come back at once must not topple the API server."""

    longest_retry_after_s: float = 60.0
    """What a server's Retry-After may ask for; kube-apiserver's own goes to 32 s."""

    absent_s: float = 8.0
    """How often to ask for a kind that is not installed. Who installs one expects it to work within ten seconds, and a
    404 costs the API server next to nothing."""

    healthy_s: float = 60.0
    """Whatever took this long is no part of a hot loop, and what follows begins with short pauses again."""


USUAL_PACE = Pace()


class _End(Struct, frozen=True):
    """Why listing or watching stopped."""

    reason: Literal["ended", "expired", "throttled", "refused", "absent", "silent", "no_answer", "malformed"]
    text: str
    retry_after_s: float = 0.0


class Reflector(Generic[M]):
    """Keeps one source's sink up to date while `run` runs. Times are those of the event loop's clock, in seconds."""

    def __init__(
        self,
        source: Source[M],
        api: ApiServer,
        metrics: Metrics,
        pace: Pace = USUAL_PACE,
        uniform: Callable[[float, float], float] = _chance.uniform,
    ) -> None:
        self.source = source
        self.synced = False
        """Whether a whole list was delivered once."""
        self._api = api
        self._metrics = metrics
        self._pace = pace
        self._uniform = uniform
        self._backoff = Backoff(pace.first_pause_s, pace.longest_pause_s, uniform)
        self._version = ""
        self._contact_s = float("-inf")

    def is_fresh(self, now_s: float) -> bool:
        """Whether the sink is synced and the API server was heard of lately; `now_s` is the event loop's time."""
        return self.synced and now_s - self._contact_s <= self._pace.silence_s + self._pace.longest_pause_s

    async def run(self) -> NoReturn:
        """List and watch until cancelled. Nothing but what a sink raises gets out."""
        while True:
            started_s = _now_s()
            end = await self._list_and_watch()
            self._report(end)
            if end.reason == "absent":
                await asyncio.sleep(self._pace.absent_s)
                continue
            if _now_s() - started_s >= self._pace.healthy_s:
                self._backoff.reset()
            await self._backoff.pause(min(end.retry_after_s, self._pace.longest_retry_after_s))

    async def _list_and_watch(self) -> _End:
        try:
            if not self._version:
                await self._list()
            return await self._watch()
        except RefusedError as error:
            if error.response.status == 404 and self.source.optional:
                return self._absent()
            return self._refused(error.response.status, error.response.message, error.response.retry_after_s)
        except SilenceError as error:
            return _End("silent", str(error))
        except NoAnswerError as error:
            return _End("no_answer", str(error))
        except MalformedBody as error:
            return _End("malformed", str(error))

    async def _list(self) -> None:
        objects: list[M] = []
        query = {"limit": str(self._pace.page_size)} | self._selected()
        coming = asyncio.create_task(self._fetch(query))
        try:
            while True:
                page = await coming
                if page.continue_token:  # the API server makes the next page while we read this one
                    coming = asyncio.create_task(self._fetch({**query, "continue": page.continue_token}))
                    await asyncio.sleep(0)
                objects += self._read(page)
                if not page.continue_token:
                    break
        finally:
            coming.cancel()
        self.source.replace(objects)
        self._version = page.resource_version
        self.synced = True
        _log.info("listed", resource=self.source.resource, objects=len(objects), version=self._version)

    async def _fetch(self, query: Mapping[str, str]) -> ListPage:
        response = await self._api.request("GET", self.source.path, query=query, timeout_s=self._pace.list_timeout_s)
        if response.status != 200:
            raise RefusedError(response)
        page = open_page(self.source.kind, response.body)
        self._contact_s = _now_s()
        return page

    def _read(self, page: ListPage) -> list[M]:
        read = read_page(self.source.kind, page)
        self._skip(read.problems)
        return [seen.object for seen in read.objects]

    async def _watch(self) -> _End:
        query = {
            "watch": "1",
            "resourceVersion": self._version,
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(round(self._uniform(*self._pace.watch_s))),
        } | self._selected()
        async with self._api.stream(self.source.path, query=query, silence_s=self._pace.silence_s) as lines:
            self._contact_s = _now_s()
            async for line in lines:
                end = self._take(line)
                if end is not None:
                    return end
        return _End("ended", "the API server ended the watch")

    def _selected(self) -> dict[str, str]:
        return {"fieldSelector": self.source.field_selector} if self.source.field_selector else {}

    def _take(self, line: bytes) -> _End | None:
        try:
            event = decode_event(self.source.kind, line)
        except MalformedBody as error:
            self._skip((str(error),))
            return None
        self._contact_s = _now_s()
        match event:
            case Changed(seen=seen):
                self.source.upsert(seen.object)
                self._version = seen.resource_version
            case Deleted(id=gone, resource_version=version):
                self.source.remove(gone)
                self._version = version
            case Bookmark(resource_version=version):
                self._version = version
            case Unreadable(resource_version=version, problem=problem):
                self._skip((problem,))
                self._version = version or self._version
            case WatchError(code=code, message=message, retry_after_s=retry_after_s):
                return self._refused(code, message, retry_after_s)
            case never:
                assert_never(never)
        return None

    def _absent(self) -> _End:
        self._version = ""
        self._contact_s = _now_s()
        self.source.replace(())
        self.synced = True
        return _End("absent", "the API server has no such kind")

    def _refused(self, status: int, message: str, retry_after_s: float) -> _End:
        text = f"HTTP {status}: {message}"
        if status == 429:
            return _End("throttled", text, retry_after_s)
        if 400 <= status < 500:
            self._version = ""
        return _End("expired" if status == 410 else "refused", text, retry_after_s)

    def _skip(self, problems: Sequence[str]) -> None:
        if problems:
            resource = self.source.resource
            self._metrics.watch_skipped_objects.labels(resource).inc(len(problems))
            _log.warning("objects skipped", resource=resource, count=len(problems), first=problems[:3])

    def _report(self, end: _End) -> None:
        resource = self.source.resource
        self._metrics.watch_reconnects.labels(resource, end.reason).inc()
        log = _log.debug if end.reason in {"ended", "silent", "absent"} else _log.warning
        log("watch ended", resource=resource, reason=end.reason, text=end.text)


def _now_s() -> float:
    return asyncio.get_running_loop().time()
