"""When was each pod bound, and where? `python -m e2e.bench.sightings KUBECONFIG NAMESPACE` writes it down.

A process of its own, since the API server ends the watch of a client that lags, as one does that shares its
interpreter with 32 writers. Where it ends all the same, it goes on after the last event.
"""

import asyncio
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

import msgspec

from e2e.cluster import Namespace, wait_for
from extender.apiserver import ApiServer, NoAnswerError, connect

_NAME = "sightings"
_START_S = 20.0
_SILENCE_S = 600.0
_BEGUN = "watching"


class Sightings:
    """What the process has written so far. The clock is the machine's, which all processes share."""

    def __init__(self, path: Path) -> None:
        self._file = path.open(encoding="utf-8")
        self._rest = ""
        self.has_begun = False
        self.bound_s: dict[str, float] = {}
        self.node: dict[str, str] = {}

    def read(self) -> Mapping[str, float]:
        """Return when each pod was first seen bound."""
        *lines, self._rest = (self._rest + self._file.read()).split("\n")
        for line in lines:
            if line == _BEGUN:
                self.has_begun = True
            else:
                at_s, name, self.node[name] = _parts(line)
                self.bound_s[name] = at_s
        return self.bound_s

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def _parts(line: str) -> tuple[float, str, str]:
    at_s, name, node = line.split()
    return float(at_s), name, node


@contextmanager
def watching(namespace: Namespace) -> Iterator[Sightings]:
    """Let the process watch until the end; raises StartError when it ended before."""
    cluster = namespace.cluster
    command = [sys.executable, "-m", "e2e.bench.sightings", str(cluster.kubeconfig), namespace.name]
    (cluster.logs / f"{_NAME}.log").unlink(missing_ok=True)
    process = cluster.start_process(_NAME, command)
    seen = Sightings(process.log)
    try:
        wait_for(lambda: seen.read() is not None and seen.has_begun, _START_S, "the watch has begun")
        yield seen
        process.check()
    finally:
        process.stop()
        seen.close()


class _Metadata(msgspec.Struct):
    name: str
    resource_version: str = msgspec.field(name="resourceVersion")


class _Spec(msgspec.Struct):
    node: str = msgspec.field(name="nodeName", default="")


class _Pod(msgspec.Struct):
    metadata: _Metadata
    spec: _Spec


class _ListMeta(msgspec.Struct):
    resource_version: str = msgspec.field(name="resourceVersion")


class _PodList(msgspec.Struct):
    metadata: _ListMeta


class _Event(msgspec.Struct):
    type: str
    pod: _Pod = msgspec.field(name="object")


_EVENT = msgspec.json.Decoder(_Event)
_LIST = msgspec.json.Decoder(_PodList)


async def _watch(kubeconfig: str, namespace: str) -> NoReturn:
    server = await connect(kubeconfig)
    path = f"/api/v1/namespaces/{namespace}/pods"
    # Not from the beginning: else those that wait already are sent first, while the clock runs.
    now = await server.request("GET", path, query={"limit": "1"}, timeout_s=_START_S)
    since = {"resourceVersion": _LIST.decode(now.body).metadata.resource_version}
    known: set[str] = set()
    while True:
        try:
            await _follow(server, path, known, since)
        except NoAnswerError:
            await asyncio.sleep(0)  # the server may have cut the connection: go on where it was


async def _follow(server: ApiServer, path: str, known: set[str], since: dict[str, str]) -> None:
    async with server.stream(path, query={"watch": "true", **since}, silence_s=_SILENCE_S) as lines:
        print(_BEGUN, flush=True)
        async for line in lines:
            event = _EVENT.decode(line)  # a refusal to go on has no name, and so ends the process
            name, node = event.pod.metadata.name, event.pod.spec.node
            since["resourceVersion"] = event.pod.metadata.resource_version
            if node and name not in known and event.type != "DELETED":
                known.add(name)
                print(f"{time.monotonic():.6f} {name} {node}", flush=True)


if __name__ == "__main__":
    asyncio.run(_watch(*sys.argv[1:]))
