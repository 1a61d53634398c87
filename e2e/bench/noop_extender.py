"""`python -m e2e.bench.noop_extender PORT PROBE_PORT`: what does it cost to be asked at all?

Every node offered is accepted and none is preferred. The HTTP side is the extender's own: aiohttp, msgspec and orjson,
and its metrics at PROBE_PORT.
"""

import asyncio
import sys
import time

import msgspec
import orjson
from aiohttp import web
from aiohttp.typedefs import Handler
from prometheus_client import generate_latest

from extender.observe.metrics import Metrics
from extender.verbs.server import KEEP_ALIVE_S, PREFIX

_BODY_BYTES = 16 * 2**20  # as much as the extender takes by default


class _Args(msgspec.Struct, rename="pascal"):
    """What is needed of ExtenderArgs to answer."""

    node_names: list[str]


_ARGS = msgspec.json.Decoder(_Args)


async def _accept_all(request: web.Request) -> web.Response:
    names = _ARGS.decode(await request.read()).node_names
    return _json({"NodeNames": names, "FailedNodes": {}, "Error": ""})


async def _prefer_none(request: web.Request) -> web.Response:
    names = _ARGS.decode(await request.read()).node_names
    return _json([{"Host": name, "Score": 0} for name in names])


def _json(answer: object) -> web.Response:
    return web.Response(body=orjson.dumps(answer), content_type="application/json")


def _verbs(metrics: Metrics) -> web.Application:
    @web.middleware
    async def count(request: web.Request, handler: Handler) -> web.StreamResponse:
        started_s = time.monotonic()
        answer = await handler(request)
        verb = request.path.removeprefix(f"{PREFIX}/")
        metrics.verb_duration.labels(verb, str(answer.status)).observe(time.monotonic() - started_s)
        return answer

    app = web.Application(client_max_size=_BODY_BYTES, middlewares=[count])
    app.add_routes([web.post(f"{PREFIX}/filter", _accept_all), web.post(f"{PREFIX}/prioritize", _prefer_none)])
    return app


def _probes(metrics: Metrics) -> web.Application:
    async def answer(_: web.Request) -> web.Response:
        return web.Response(body=generate_latest(metrics.registry))

    app = web.Application()
    app.add_routes([web.get("/metrics", answer)])
    return app


async def serve(port: int, probe_port: int) -> None:
    """Answer until cancelled."""
    metrics = Metrics("no-op")
    for app, at in ((_verbs(metrics), port), (_probes(metrics), probe_port)):
        runner = web.AppRunner(app, keepalive_timeout=KEEP_ALIVE_S, access_log=None)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", at).start()
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(serve(*map(int, sys.argv[1:])))
