"""What lies behind a proxy, served on a port of its own."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Protocol

from aiohttp import web


class Behind(Protocol):
    """Takes every POST, and every GET as a watch."""

    async def post(self, request: web.Request) -> web.Response: ...

    async def watch(self, request: web.Request) -> web.StreamResponse: ...


@asynccontextmanager
async def serving(target: Behind) -> AsyncIterator[str]:
    """Serve it, and yield its URL."""
    app = web.Application()
    app.router.add_post("/{path:.*}", target.post)
    app.router.add_get("/{path:.*}", target.watch)
    runner = web.AppRunner(app, shutdown_timeout=0.01, handler_cancellation=True)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    await runner.cleanup()
