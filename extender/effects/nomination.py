"""On which node does kube-scheduler look first for a waiting pod? Writes `status.nominatedNodeName`.

The patch wakes a rejected pod within 10 ms, makes kube-scheduler try only that node, and holds it against pods of equal
or lower priority. It carries the pod's UID, with which the API server leaves a namesake created since alone.
"""

import asyncio
from collections.abc import Callable
from typing import Literal, NoReturn

import orjson
import structlog
from msgspec import Struct

from extender.apiserver import MERGE_PATCH, ApiServer, Response
from extender.backoff import Backoff
from extender.effects.retry import settle
from extender.model.pod import PodUid
from extender.observe.metrics import Metrics

IN_FLIGHT = 16
"""More at a time gained nothing on two cores."""

WAITING = 20_000
"""A bound on memory (5 MB) beyond any gang; the newest are dropped, and whoever plans nominates again."""

TRIES = 5
"""Over some seconds; what an API server is away for longer must be planned again anyway."""

TRY_S = 10.0
"""A patch takes milliseconds; an API server that needs longer than this has lost the request."""

_log = structlog.get_logger()


class Nomination(Struct, frozen=True):
    """A pod and the node that it is to be tried on first; an empty `node` takes a nomination back."""

    namespace: str
    name: str
    uid: PodUid
    node: str


Result = Literal["written", "stale", "gone", "refused", "failed", "dropped"]
"""`stale`: out of date before it was written. `failed`: no try was granted. `dropped`: too many were waiting."""


class Nominator:
    """Writes nominations one after another per pod, several pods at a time; of one pod's, the latest wins.

    `is_current` is asked before each try whether the nomination is still wanted.
    """

    def __init__(
        self,
        api: ApiServer,
        metrics: Metrics,
        is_current: Callable[[Nomination], bool],
        *,
        first_pause_s: float = 0.2,
    ) -> None:
        self._api = api
        self._metrics = metrics
        self._is_current = is_current
        self._first_pause_s = first_pause_s
        self._waiting: dict[PodUid, Nomination] = {}
        self._in_flight: set[PodUid] = set()
        self._turns: asyncio.Queue[PodUid] = asyncio.Queue()

    def submit(self, nomination: Nomination) -> None:
        """Have it written soon, in place of an earlier one of the same pod that still waits."""
        uid = nomination.uid
        if uid not in self._waiting:
            if len(self._waiting) >= WAITING:
                self._count(nomination, "dropped")
                return
            if uid not in self._in_flight:
                self._turns.put_nowait(uid)
        self._waiting[uid] = nomination

    async def run(self) -> NoReturn:
        """Write what is submitted until cancelled."""
        async with asyncio.TaskGroup() as writers:
            for _ in range(IN_FLIGHT):
                writers.create_task(self._write_in_turn())
        raise AssertionError("the writers never end")

    async def _write_in_turn(self) -> NoReturn:
        while True:
            uid = await self._turns.get()
            nomination = self._waiting.pop(uid)
            self._in_flight.add(uid)
            self._count(nomination, await self._write(nomination))
            self._in_flight.remove(uid)
            if uid in self._waiting:
                self._turns.put_nowait(uid)

    async def _write(self, nomination: Nomination) -> Result:
        backoff = Backoff(self._first_pause_s, 20 * self._first_pause_s)
        for _ in range(TRIES):
            if nomination.uid in self._waiting or not self._is_current(nomination):
                return "stale"
            answer = await settle(self._patch(nomination), backoff)
            if answer is None:
                continue
            if answer.status == 409:  # others wrote to the pod each time that the API server itself tried
                await backoff.pause()
                continue
            return _result(answer)
        return "failed"

    async def _patch(self, nomination: Nomination) -> Response:
        path = f"/api/v1/namespaces/{nomination.namespace}/pods/{nomination.name}/status"
        body = {"metadata": {"uid": nomination.uid}, "status": {"nominatedNodeName": nomination.node or None}}
        return await self._api.request(
            "PATCH", path, body=orjson.dumps(body), content_type=MERGE_PATCH, timeout_s=TRY_S
        )

    def _count(self, nomination: Nomination, result: Result) -> None:
        self._metrics.nominations.labels(result).inc()
        if result in {"refused", "failed", "dropped"}:
            _log.warning("nomination lost", result=result, namespace=nomination.namespace, pod=nomination.name)


def _result(answer: Response) -> Result:
    match answer.status:
        case 200:
            return "written"
        case 404:
            return "gone"
        case 422 if "metadata.uid" in answer.message:
            return "gone"
        case _:
            return "refused"
