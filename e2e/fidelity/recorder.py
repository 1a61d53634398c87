"""Which nodes did kube-scheduler's own filters leave? A stand-in for an extender that writes it down.

It turns every node away, so that nothing is ever placed and each pod is judged on the same cluster. kube-scheduler
does not call it for a pod that no node passes: the pod's condition PodScheduled tells that.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import orjson
from aiohttp import web

PASSED = "passed"
"""What kube-scheduler shows for a node that its own filters let through."""


class Recorder:
    """What was offered for each pod, by its UID, the last time it was tried."""

    def __init__(self) -> None:
        self.offered: dict[str, frozenset[str]] = {}

    async def filter(self, request: web.Request) -> web.Response:
        """Answer ExtenderArgs: no node will do."""
        args = orjson.loads(await request.read())
        names = args["NodeNames"]
        self.offered[args["Pod"]["metadata"]["uid"]] = frozenset(names)
        return web.json_response({"FailedAndUnresolvableNodes": dict.fromkeys(names, PASSED)})


@asynccontextmanager
async def recording(port: int) -> AsyncIterator[Recorder]:
    """Serve on this loopback port."""
    recorder = Recorder()
    app = web.Application(client_max_size=2**24)
    app.add_routes([web.post("/filter", recorder.filter)])
    runner = web.AppRunner(app, access_log=None, keepalive_timeout=150)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", port).start()
        yield recorder
    finally:
        await runner.cleanup()
