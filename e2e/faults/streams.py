"""How does a watch get through the proxy? Line by line, and some lines go wrong.

What is kept of the API server's contract is what clients may count on: no version of an object comes after a later one
of the same object, and whoever missed events is told so by a 410. Bookmarks and errors are passed on as they are.
"""

import asyncio
import time
from typing import Protocol

import aiohttp
import orjson
from aiohttp import web

from e2e.faults.calls import Call
from e2e.faults.rules import Drawn, Kind

_SLOW_S = 0.5  # for one line, at most
_STALL_S = (1.0, 8.0)
_SILENCE_S = 80.0  # the extender asks again after 70 s
_GAP_S = (0.2, 2.0)
_REORDER_S = 0.3  # so long a line waits for another to change places with
_EXPIRED = (
    b'{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired",'
    b'"message":"too old resource version: injected","code":410}}\n'
)


class Faulty(Protocol):
    """What a stream asks of its proxy."""

    def draw(self, of_class: str) -> Drawn | None:
        """Return the fault of the next line of this class."""

    def count(self, kind: Kind) -> None:
        """Count a fault that was injected."""

    async def last(self, seconds: float) -> None:
        """Wait for so long, or until there are to be no faults."""


class Stream:
    """One watch that is passed on."""

    def __init__(self, proxy: Faulty, call: Call, source: aiohttp.StreamReader, out: web.StreamResponse) -> None:
        self._proxy = proxy
        self._call = call
        self._source = source
        self._out = out
        self._lines: asyncio.Queue[bytes] = asyncio.Queue()
        """Read at once, so that the API server never ends a watch that lags; empty at the end."""

    async def run(self) -> bool:
        """Pass on until either side ends; whether the end is the API server's own, and orderly."""
        reader = asyncio.create_task(self._read())
        try:
            while line := await self._lines.get():
                drawn = self._proxy.draw(self._call.of_lines) if _object_of(line) else None
                if drawn is None:
                    await self._tell(line)
                elif not await self._fail(line, drawn):
                    return False
            return True
        finally:
            reader.cancel()

    async def _tell(self, *lines: bytes) -> None:
        """Pass these on in one write."""
        await self._out.write(b"".join(lines))

    async def _read(self) -> None:
        rest = b""
        try:
            async for chunk in self._source.iter_any():
                *lines, rest = (rest + chunk).split(b"\n")
                for line in lines:
                    self._lines.put_nowait(line + b"\n")
        except (aiohttp.ClientError, ConnectionError):
            pass
        self._lines.put_nowait(b"")

    async def _fail(self, line: bytes, drawn: Drawn) -> bool:
        """Pass the line on as the fault has it; whether the watch goes on."""
        match drawn.kind:
            case Kind.DUPLICATE:
                await self._tell(line, line)
            case Kind.REORDER:
                return await self._reorder(line)
            case Kind.SLOW_STREAM | Kind.STALL | Kind.SILENCE:
                self._proxy.count(drawn.kind)
                await self._proxy.last(_lasts_s(drawn))
                await self._tell(line)
                return True
            case Kind.CUT_STREAM:
                await self._out.write(line[: max(1, int(drawn.extent * len(line)))].rstrip(b"\n"))
            case Kind.GAP:
                await self._proxy.last(_within(_GAP_S, drawn.extent))
                await self._out.write(_EXPIRED)
            case Kind.EXPIRED_STREAM:
                await self._tell(line, _EXPIRED)
            case _:
                raise ValueError(f"{drawn.kind} does not befall a line")
        self._proxy.count(drawn.kind)
        return drawn.kind is Kind.DUPLICATE

    async def _reorder(self, first: bytes) -> bool:
        """Let the next line go before this one, if it comes soon and is of another object; in one write.

        Else a watch that is cut between the two would go on after the later one, and the earlier would be lost.
        """
        second = b""
        until_s = time.monotonic() + _REORDER_S
        while not second and time.monotonic() < until_s:
            if self._lines.empty():
                await asyncio.sleep(_REORDER_S / 10)
            else:
                second = self._lines.get_nowait()
                if not second:
                    await self._tell(first)
                    self._lines.put_nowait(b"")
                    return True
        others = _object_of(second)
        if others and others != _object_of(first):
            self._proxy.count(Kind.REORDER)
            await self._tell(second, first)
        else:
            await self._tell(first, second)
        return True


def _lasts_s(drawn: Drawn) -> float:
    match drawn.kind:
        case Kind.SLOW_STREAM:
            return drawn.extent * _SLOW_S
        case Kind.STALL:
            return _within(_STALL_S, drawn.extent)
        case _:
            return _SILENCE_S


def _within(span: tuple[float, float], extent: float) -> float:
    return span[0] + extent * (span[1] - span[0])


def _object_of(line: bytes) -> str:
    """Return the UID of the object that a line tells of; empty for bookmarks, errors and no line."""
    if not line:
        return ""
    event = orjson.loads(line)
    return "" if event["type"] in ("BOOKMARK", "ERROR") else str(event["object"]["metadata"]["uid"])
