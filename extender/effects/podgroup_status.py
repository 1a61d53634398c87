"""How far is the gang of a PodGroup? Writes the PodGroup's status, for the operators that wait for it.

What changes in half a second is one write, and one write is under way at a time: a status is news, not a decision. One
that gets lost is written again later, ever more seldom: an operator may make no pods before it reads it.
"""

import asyncio
from collections.abc import Callable
from typing import Literal, NoReturn

import orjson
import structlog
from msgspec import structs

from extender.apiserver import MERGE_PATCH, Response
from extender.backoff import Backoff
from extender.effects.fence import Requests
from extender.effects.retry import TRIES, TRY_S, settle
from extender.model.pod_group import KOORDINATOR, StatusReport
from extender.observe.metrics import Metrics
from extender.state.doubling import doubled_s

SETTLING_S = 0.5
"""The members of a gang start within a second; operators look every few."""

LOST_S = 15.0
"""Until the next try of what got lost; its tries have taken as long."""

LONGEST_S = 300.0
"""A right that was missing is given by a person, who then waits for no longer."""

_log = structlog.get_logger()

Result = Literal["written", "stale", "gone", "refused", "failed"]


class PodGroupStatusWriter:
    """Writes the latest status of each PodGroup. `paths` are those of the APIs, by group.

    Whether one that got lost `is_current` is asked before it is tried again.
    """

    def __init__(
        self,
        api: Requests,
        metrics: Metrics,
        paths: dict[str, str],
        is_current: Callable[[StatusReport], bool],
        *,
        settling_s: float = SETTLING_S,
        lost_s: float = LOST_S,
    ) -> None:
        self._api = api
        self._metrics = metrics
        self._paths = paths
        self._is_current = is_current
        self._settling_s = settling_s
        self._lost_s = lost_s
        self._waiting: dict[str, StatusReport] = {}
        self._losses: dict[str, int] = {}
        """How often in a row the status of a PodGroup got lost, by UID."""
        self._news = asyncio.Event()

    def submit(self, report: StatusReport) -> None:
        """Have it written soon, in place of an earlier one of the same PodGroup that still waits."""
        self._waiting[report.group.uid] = report
        self._news.set()

    async def run(self) -> NoReturn:
        """Write what is submitted until cancelled."""
        while True:
            await self._news.wait()
            await asyncio.sleep(self._settling_s)
            self._news.clear()
            reports, self._waiting = self._waiting, {}
            for report in reports.values():
                result = await self._write(report)
                self._metrics.pod_group_statuses.labels(result).inc()
                if result in {"refused", "failed"}:
                    self._lose(report, result)
                else:
                    self._losses.pop(report.group.uid, None)

    def _lose(self, report: StatusReport, result: Result) -> None:
        uid, losses = report.group.uid, self._losses.get(report.group.uid, 0)
        say = _log.debug if losses else _log.warning
        say("status of PodGroup lost", result=result, api=report.group.api, key=report.group.key)
        self._losses[uid] = losses + 1
        pause_s = doubled_s(self._lost_s, losses, LONGEST_S)
        asyncio.get_running_loop().call_later(pause_s, self._try_again, report)

    def _try_again(self, report: StatusReport) -> None:
        if not self._is_current(report):
            self._losses.pop(report.group.uid, None)
        elif report.group.uid not in self._waiting:
            self.submit(report)

    async def _write(self, report: StatusReport) -> Result:
        backoff = Backoff(self._settling_s, 20 * self._settling_s)
        for _ in range(TRIES):
            if report.group.uid in self._waiting:
                return "stale"
            answer = await settle(self._patch(report, "/status"), backoff)
            if answer is not None and answer.status == 404:  # Koordinator's CRD has no such subresource
                answer = await settle(self._patch(report, ""), backoff)
            if answer is not None:
                return _result(answer)
        return "failed"

    async def _patch(self, report: StatusReport, subresource: str) -> Response:
        namespace, _, name = report.group.key.partition("/")
        status = structs.asdict(report.status)
        if report.group.api != KOORDINATOR:
            del status["scheduled"]
        body = {"metadata": {"uid": report.group.uid}, "status": status}
        path = f"{self._paths[report.group.api]}/namespaces/{namespace}/podgroups/{name}{subresource}"
        return await self._api.request(
            "PATCH", path, body=orjson.dumps(body), content_type=MERGE_PATCH, timeout_s=TRY_S
        )


def _result(answer: Response) -> Result:
    match answer.status:
        case 200:
            return "written"
        case 404:
            return "gone"
        case 409 | 422 if "uid" in answer.message.lower():
            return "gone"
        case _:
            return "refused"
