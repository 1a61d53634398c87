"""How does kube-scheduler reach the verbs? An aiohttp application, one route a verb.

Only HTTP 200 counts with kube-scheduler, and the body of anything else is not shown to anybody: so what a pod's owner
should read is answered with 200 and `Error`, and 4xx is for bodies that no kube-scheduler sends. Answers carry a
Content-Length and connections are kept longer than kube-scheduler keeps idle ones (90 s), since it does not repeat a
POST whose connection was closed under it.
"""

import asyncio
from collections.abc import Callable

import structlog
from aiohttp import web
from aiohttp.typedefs import Handler, Middleware
from msgspec import Struct

from extender.model.pod import Pod, PodUid
from extender.observe.metrics import Metrics
from extender.state.cluster import Cluster
from extender.verbs.agreement import Agreement
from extender.verbs.bind import Bind
from extender.verbs.filter import Filter
from extender.verbs.preempt import Preempt
from extender.verbs.prioritize import prioritize
from extender.wire.extender_v1 import (
    decode_args,
    decode_binding_args,
    decode_preemption_args,
    encode_binding,
    encode_filter,
    encode_filter_error,
    encode_preemption,
    encode_priorities,
)
from extender.wire.malformed import MalformedBody

PREFIX = "/v1"
"""The path in each extender entry's urlPrefix."""

KEEP_ALIVE_S = 150.0
"""Above the 90 s after which kube-scheduler's client closes an idle connection itself."""

_log = structlog.get_logger()


class Answers(Struct, frozen=True):
    """What answers the verbs on one state."""

    filter: Filter
    preempt: Preempt
    bind: Bind
    agreement: Agreement


class Verbs:
    """The verbs' HTTP side. `why_not` says why nothing is decided here now; empty when it is."""

    def __init__(self, cluster: Cluster, answers: Answers, metrics: Metrics, why_not: Callable[[], str]) -> None:
        self._cluster = cluster
        self._answers = answers
        self._metrics = metrics
        self._why_not = why_not

    def routes(self) -> list[web.RouteDef]:
        """Return one route per verb."""
        return [
            web.post(f"{PREFIX}/filter", self.filter),
            web.post(f"{PREFIX}/prioritize", self.prioritize),
            web.post(f"{PREFIX}/preempt", self.preempt),
            web.post(f"{PREFIX}/bind", self.bind),
        ]

    async def filter(self, request: web.Request) -> web.Response:
        """Answer ExtenderArgs with an ExtenderFilterResult."""
        args = decode_args(await request.read(), self._known)
        if why_not := self._why_not():
            return _json(encode_filter_error(why_not))
        if self._answers.filter.has_rejected(args.pod.uid):
            self._metrics.repeat_filter_calls.inc()
        self._answers.agreement.compare(args)
        answer = self._answers.filter.answer(args, _now_s())
        return _json(encode_filter(args, answer.accepted, answer.rejected))

    async def prioritize(self, request: web.Request) -> web.Response:
        """Answer ExtenderArgs with a HostPriorityList."""
        args = decode_args(await request.read(), self._known)
        return _json(encode_priorities(prioritize(self._cluster, args)))

    async def preempt(self, request: web.Request) -> web.Response:
        """Answer ExtenderPreemptionArgs with an ExtenderPreemptionResult; a veto while nothing is decided here."""
        args = decode_preemption_args(await request.read())
        return _json(encode_preemption({} if self._why_not() else self._answers.preempt.answer(args, _now_s())))

    def _known(self, uid: PodUid) -> Pod | None:
        """Return the pod as we know it, unless kube-scheduler must know another version: a held pod it never tries."""
        pod = self._cluster.pods.get(uid)
        return pod if pod is not None and not pod.held else None

    async def bind(self, request: web.Request) -> web.Response:
        """Answer ExtenderBindingArgs with an ExtenderBindingResult, when the pod's gang is complete."""
        args = decode_binding_args(await request.read())
        if why_not := self._why_not():
            return _json(encode_binding(why_not))

        def is_connected() -> bool:
            return request.transport is not None and not request.transport.is_closing()

        return _json(encode_binding(await self._answers.bind.bind(args, is_connected, _now_s)))


def make_app(verbs: Verbs, health: list[web.RouteDef], metrics: Metrics, max_body_bytes: int) -> web.Application:
    """Return the application with the verbs and the health endpoints."""
    app = web.Application(client_max_size=max_body_bytes, middlewares=[_guard(metrics)])
    app.add_routes([*verbs.routes(), *health])
    return app


def _guard(metrics: Metrics) -> Middleware:
    """Turn whatever goes wrong into a plain answer and one log line, and measure each verb."""

    @web.middleware
    async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
        started_s = _now_s()
        answer = await _answer(request, handler)
        if request.path.startswith(PREFIX) and answer.status != 404:
            verb = request.path.removeprefix(f"{PREFIX}/")
            metrics.verb_duration.labels(verb, str(answer.status)).observe(_now_s() - started_s)
        return answer

    return guard


async def _answer(request: web.Request, handler: Handler) -> web.StreamResponse:
    try:
        return await handler(request)
    except MalformedBody as error:
        _log.warning("malformed request", path=request.path, problem=str(error))
        return web.Response(status=400, text=f"{error}\n")
    except web.HTTPRequestEntityTooLarge:
        limit = request.app._client_max_size  # noqa: SLF001 - aiohttp has no public name for the limit it was given
        _log.warning("oversized request", path=request.path, limit_bytes=limit)
        return web.Response(status=413, text=f"The body is larger than {limit} bytes (server.maxBodyMib).\n")
    except web.HTTPException as error:
        return web.Response(status=error.status, text=f"{error.reason}\n", headers=_allow(error))
    except Exception:  # noqa: BLE001 - the last line of defence: it is logged, and the caller gets no traceback
        _log.exception("a request failed", path=request.path)
        return web.Response(status=500, text="The extender failed on this request; its log says where.\n")


def _allow(error: web.HTTPException) -> dict[str, str]:
    return {"Allow": error.headers["Allow"]} if "Allow" in error.headers else {}


def _now_s() -> float:
    return asyncio.get_running_loop().time()


def _json(body: bytes) -> web.Response:
    return web.Response(body=body, content_type="application/json")
