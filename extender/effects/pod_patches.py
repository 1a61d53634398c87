"""Writes small changes to pods, one after another per pod, several pods at a time; of one pod's, the latest wins.

Each patch carries the pod's UID, with which the API server leaves a namesake created since alone. Whether it is still
wanted is asked before each try.
"""

import asyncio
from collections.abc import Callable
from typing import Any, ClassVar, Generic, Literal, NoReturn, TypeVar

import orjson
import structlog
from msgspec import Struct
from prometheus_client import Counter

from extender.apiserver import Response
from extender.backoff import Backoff
from extender.effects.fence import Requests
from extender.effects.retry import TRIES, TRY_S, settle
from extender.model.pod import PodUid

IN_FLIGHT = 16
"""More at a time gained nothing on two cores."""

WAITING = 20_000
"""A bound on memory (5 MB) beyond any gang; the newest are dropped, and whoever plans asks again."""

_log = structlog.get_logger()


class PodPatch(Struct, frozen=True):
    """A change of one pod, each sort with a class of its own; `subresource` is "" or begins with a slash."""

    subresource: ClassVar[str]
    content_type: ClassVar[str]

    namespace: str
    name: str
    uid: PodUid

    @property
    def body(self) -> dict[str, Any]:
        """What is merged into the pod, beside the UID."""
        raise NotImplementedError


P = TypeVar("P", bound=PodPatch)

Result = Literal["written", "stale", "gone", "refused", "failed", "dropped"]
"""`stale`: out of date before it was written. `failed`: no try was granted. `dropped`: too many were waiting."""


class PodPatches(Generic[P]):
    """Writes patches of one sort; `results` counts them by result, `is_wanted` is asked before each try."""

    def __init__(
        self,
        api: Requests,
        results: Counter,
        is_wanted: Callable[[P], bool],
        *,
        first_pause_s: float = 0.2,
    ) -> None:
        self._api = api
        self._results = results
        self._is_wanted = is_wanted
        self._first_pause_s = first_pause_s
        self._waiting: dict[PodUid, P] = {}
        self._in_flight: set[PodUid] = set()
        self._turns: asyncio.Queue[PodUid] = asyncio.Queue()
        self._is_losing = False

    def submit(self, patch: P) -> None:
        """Have it written soon, in place of an earlier one of the same pod that still waits."""
        if patch.uid not in self._waiting:
            if len(self._waiting) >= WAITING:
                self._note(patch, "dropped", "too many were waiting")
                return
            if patch.uid not in self._in_flight:
                self._turns.put_nowait(patch.uid)
        self._waiting[patch.uid] = patch

    async def run(self) -> NoReturn:
        """Write what is submitted until cancelled."""
        async with asyncio.TaskGroup() as writers:
            for _ in range(IN_FLIGHT):
                writers.create_task(self._write_in_turn())
        raise AssertionError("the writers never end")

    async def _write_in_turn(self) -> NoReturn:
        while True:
            uid = await self._turns.get()
            patch = self._waiting.pop(uid)
            self._in_flight.add(uid)
            self._note(patch, *await self._write(patch))
            self._in_flight.remove(uid)
            if uid in self._waiting:
                self._turns.put_nowait(uid)

    async def _write(self, patch: P) -> tuple[Result, str]:
        backoff = Backoff(self._first_pause_s, 20 * self._first_pause_s)
        for _ in range(TRIES):
            if patch.uid in self._waiting or not self._is_wanted(patch):
                return "stale", ""
            answer = await settle(self._send(patch), backoff)
            if answer is None:
                continue
            if answer.status == 409:  # others wrote to the pod each time that the API server itself tried
                await backoff.pause()
                continue
            return _result(answer), answer.message
        return "failed", f"none of {TRIES} tries was granted"

    async def _send(self, patch: P) -> Response:
        path = f"/api/v1/namespaces/{patch.namespace}/pods/{patch.name}{patch.subresource}"
        body = orjson.dumps({"metadata": {"uid": patch.uid}, **patch.body})
        return await self._api.request("PATCH", path, body=body, content_type=patch.content_type, timeout_s=TRY_S)

    def _note(self, patch: P, result: Result, text: str) -> None:
        """Count it, and say once that patches get lost, until one is written again."""
        self._results.labels(result).inc()
        if result in {"refused", "failed", "dropped"}:
            say = _log.debug if self._is_losing else _log.warning
            say(
                f"{type(patch).__name__.lower()} lost",
                result=result,
                namespace=patch.namespace,
                pod=patch.name,
                text=text,
            )
            self._is_losing = True
        elif result == "written":
            self._is_losing = False


def _result(answer: Response) -> Result:
    match answer.status:
        case 200:
            return "written"
        case 404:
            return "gone"
        case 422 if "metadata.uid" in answer.message:
            return "gone"
        case 422 if "already bound" in answer.message:  # the API server's words for a nomination that comes too late
            return "stale"
        case _:
            return "refused"
