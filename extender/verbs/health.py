"""Is the extender alive, is it ready, and what does it count? /livez, /readyz and /metrics.

Ready means that every watch has delivered its list and the API server was heard of lately: only then the state can be
trusted. Behind a Service it also means that this one leads, so that calls come to no other; beside a kube-scheduler it
does not, since that one calls nobody while it stands by. Alive means no more than that the event loop answers.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Protocol

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from extender.model.gang import Gang
from extender.observe.metrics import Metrics
from extender.state.cluster import Cluster


class Watch(Protocol):
    """What health asks of a watch."""

    synced: bool

    def is_fresh(self, now_s: float) -> bool:
        """Whether the API server was heard of lately."""


GANG_STATES = ("undeclared", "gathering", "waiting", "placed", "stranded", "running")


class Health:
    """The endpoints for kubelet and Prometheus; `watches` by resource. `why_not` says what else keeps us from ready."""

    def __init__(
        self, cluster: Cluster, watches: Mapping[str, Watch], metrics: Metrics, why_not: Callable[[], str]
    ) -> None:
        self._cluster = cluster
        self._watches = watches
        self._metrics = metrics
        self._why_not = why_not

    def routes(self) -> list[web.RouteDef]:
        """Return one route per endpoint."""
        return [
            web.get("/livez", self.livez),
            web.get("/readyz", self.readyz),
            web.get("/metrics", self.metrics),
        ]

    def is_ready(self) -> bool:
        """Whether the state can be trusted."""
        return not any(self._problem(watch) for watch in self._watches.values())

    async def livez(self, _request: web.Request) -> web.Response:
        """Answer as long as the event loop does."""
        return web.Response(text="ok\n")

    async def readyz(self, request: web.Request) -> web.Response:
        """Answer 200 or 503; `?verbose` and any failure list every part."""
        problems = {f"watch {resource}": self._problem(watch) for resource, watch in self._watches.items()}
        problems["leader"] = self._why_not()
        ready = not any(problems.values())
        lines = [f"[-]{what} {why}" if why else f"[+]{what} ok" for what, why in problems.items()]
        text = "\n".join([*lines, f"readyz check {'passed' if ready else 'failed'}", ""])
        return web.Response(status=200 if ready else 503, text="ok\n" if ready and not _verbose(request) else text)

    async def metrics(self, _request: web.Request) -> web.Response:
        """Answer in Prometheus' text format."""
        self._observe_state()
        body = generate_latest(self._metrics.registry)
        return web.Response(body=body, headers={"Content-Type": CONTENT_TYPE_LATEST})

    def _problem(self, watch: Watch) -> str:
        if not watch.synced:
            return "not synced"
        return "" if watch.is_fresh(asyncio.get_running_loop().time()) else "stale"

    def _observe_state(self) -> None:
        gangs = (self._cluster.gangs.get(key) for key in self._cluster.gangs)
        counts = Counter(self._state_of(gang) for gang in gangs if gang is not None)
        counts["undeclared"] = sum(self._cluster.gangs.undeclared(key) is not None for key in self._cluster.gangs)
        for state in GANG_STATES:
            self._metrics.gangs.labels(state).set(counts[state])
        self._metrics.tasks.set(len(asyncio.all_tasks()))
        self._metrics.reservations.set(sum(len(held.slots) for held in self._cluster.reservations))

    def _state_of(self, gang: Gang) -> str:
        if gang.satisfied:
            return "running"
        if gang.stranded:
            return "stranded"
        if self._cluster.reservations.get(gang.key):
            return "placed"
        return "gathering" if gang.present < gang.min_available else "waiting"


def _verbose(request: web.Request) -> bool:
    return "verbose" in request.query
