"""Does this process lead, by which lease, and who waits to know?

Beside a kube-scheduler we follow the lease of its election: who holds it calls only the extender in his own pod. As a
service for several we hold a lease of our own. Every look is a read from the API server's quorum; a watch only says
when to look. `state/leadership.py` says what the looks mean. Upstream counterpart: client-go's tools/leaderelection.
"""

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NoReturn

import orjson
import structlog

from extender.apiserver import ApiServer, NoAnswerError, Response
from extender.state.leadership import Leadership
from extender.wire.leases import PATH, given_up_spec, held_spec, read_lease
from extender.wire.malformed import MalformedBody

LOOK_S = 5.0
"""For one request: what kube-scheduler gives its own (half of renewDeadline)."""

LOOK_EVERY_S = 2.0
"""Without news from the watch: kube-scheduler's retryPeriod, so that no renewal is missed for longer than it lasts."""

RENEWALS = 7.5
"""In a lease's duration: client-go's 2 s of 15 s."""

RELEASE_S = 2.0
"""For giving the lease up at the end; without it the next one waits until it is over."""

_log = structlog.get_logger()


def steady_s() -> float:
    """Return the time of a clock that nobody sets, and that goes on, where there is one, while the machine sleeps."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


class Lead:
    """Whether this process leads, and news of it; see `state.leadership`."""

    def __init__(self, leadership: Leadership, now_s: Callable[[], float] = steady_s) -> None:
        self.leadership = leadership
        self._now_s = now_s
        self._news = asyncio.Event()

    @property
    def term(self) -> str:
        """Names the time in which nobody else led; empty while another one, or nobody, does."""
        return self.leadership.term

    @property
    def is_sure(self) -> bool:
        """Whether we lead, and nobody else can by now."""
        return self.leadership.is_sure(self._now_s())

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait until this is so; it is looked at with every news of the lease."""
        while not condition():
            await self._news.wait()

    def tell(self) -> None:
        """Have those that wait look again."""
        self._news.set()
        self._news = asyncio.Event()


class AlwaysLeads(Lead):
    """Of the only process there is."""

    def __init__(self) -> None:
        super().__init__(Leadership(bool))

    @property
    def term(self) -> str:
        """Return a term that never ends."""
        return "the only one"

    @property
    def is_sure(self) -> bool:
        """Return true."""
        return True

    async def give_up(self) -> None:
        """Do nothing: there is no lease."""


class Lease:
    """One lease on the API server, which others hold. `news` is set when it is worth a look."""

    def __init__(self, api: ApiServer, namespace: str, name: str, lead: Lead) -> None:
        self.collection = PATH.format(namespace=namespace)
        self.name = name
        self.news = asyncio.Event()
        self._api = api
        self._lead = lead
        self._is_troubled = False

    async def run(self) -> NoReturn:
        """Look at who holds it until cancelled."""
        while True:
            await self._look()
            await self._pause(LOOK_EVERY_S)

    async def give_up(self) -> None:
        """Let the next one have it at once, if it is ours to give up. Raises nothing."""

    async def _look(self) -> dict[str, Any] | None:
        """Return the lease, an empty one where there is none, or None where that cannot be known now."""
        self.news.clear()
        asked_s = steady_s()
        answer = await self._request("GET", f"{self.collection}/{self.name}")
        if answer is None or answer.status not in {200, 404}:
            return None
        try:
            record = read_lease(answer.body) if answer.status == 200 else None
        except MalformedBody as error:
            self._complain(str(error))
            return None
        self._note(lambda: self._lead.leadership.see(record, asked_s, steady_s()))
        return dict(orjson.loads(answer.body)) if record is not None else {}

    async def _request(self, method: str, path: str, body: bytes = b"") -> Response | None:
        """Return an answer of use, which may be that there is no such lease, or that it is another one by now."""
        try:
            answer = await self._api.request(method, path, body=body, timeout_s=LOOK_S)
        except NoAnswerError as error:
            self._complain(str(error))
            return None
        if answer.status not in {200, 201, 404, 409}:
            self._complain(answer.message)
            return None
        self._is_troubled = False
        return answer

    def _complain(self, text: str) -> None:
        say = _log.debug if self._is_troubled else _log.warning
        say("the lease cannot be reached", lease=self.name, text=text)
        self._is_troubled = True

    def _note(self, take_in: Callable[[], None]) -> None:
        was = self._lead.term
        take_in()
        if self._lead.term != was:
            _log.info("the lease is ours" if self._lead.term else "the lease is not ours", lease=self.name)
        self._lead.tell()

    async def _pause(self, at_most_s: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(at_most_s):
                await self.news.wait()


class OwnLease(Lease):
    """A lease that we take when it is free, as `identity`, and renew."""

    def __init__(self, api: ApiServer, namespace: str, name: str, lead: Lead, identity: str, duration_s: int) -> None:
        super().__init__(api, namespace, name, lead)
        self._identity = identity
        self._duration_s = duration_s

    async def run(self) -> NoReturn:
        """Take it when it is free, and renew it, until cancelled."""
        leadership = self._lead.leadership
        while True:
            lease = await self._look()
            if lease is not None and (leadership.term or leadership.is_free(steady_s())):
                spec = held_spec(lease.get("spec", {}), self._identity, self._duration_s, time.time())
                await self._write(lease, spec)
            if leadership.term:
                await asyncio.sleep(self._duration_s / RENEWALS)  # the watch's news is of our own renewals
            else:
                await self._pause(self._duration_s / RENEWALS)

    async def give_up(self) -> None:
        """Let the next one have it at once, if we hold it. Raises nothing."""
        try:
            async with asyncio.timeout(RELEASE_S):
                lease = await self._look()
                if lease and self._lead.term:
                    await self._write(lease, given_up_spec(lease["spec"], time.time()))
        except TimeoutError:
            _log.warning("the lease was not given up in time", lease=self.name)

    async def _write(self, lease: dict[str, Any], spec: dict[str, Any]) -> None:
        """Write the lease as it was read, with another spec; somebody else's write in between makes this one fail."""
        body = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": self.name}}
        body |= lease | {"spec": spec}
        sent_s = steady_s()
        if lease:
            answer = await self._request("PUT", f"{self.collection}/{self.name}", orjson.dumps(body))
        else:
            answer = await self._request("POST", self.collection, orjson.dumps(body))
        if answer is not None and answer.status in {200, 201}:
            record = read_lease(orjson.dumps(body))
            self._note(lambda: self._lead.leadership.wrote(record, sent_s, steady_s()))
