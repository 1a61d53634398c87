"""A storm of pod events, as when large jobs come and end: memory is bounded, and verbs are answered meanwhile."""

import asyncio
import gc
import json
import os
import time
import tracemalloc
from collections.abc import Iterator

import pytest
from aiohttp import web

from extender.apiserver import ApiServer
from extender.observe.metrics import Metrics
from extender.watch.reflector import Reflector
from extender.watch.sources import pods
from tests.apiserver_stub import ApiServerStub
from tests.builders import a_node, a_pod, pod_json
from tests.eventually import eventually
from tests.rig import Rig

PODS = int(os.environ.get("STORM_PODS", "1500"))
"""Each of which makes four events, that come as fast as they are taken. STORM_PODS=12500 is for the 50,000 that a large
cluster may see within a minute; tracing what is allocated makes it take half a minute of a processor."""

MOST_BYTES = 2 * 2**20 + 1024 * PODS
"""Above what it began with, at any time: most of it is who was deleted, of which 100,000 are remembered."""

ANSWERED_S = 2.0
"""kube-scheduler's time-out for filter."""


def storm() -> Iterator[bytes]:
    """Yield the lives of pods: each comes, is bound, succeeds and goes, with a hundred others beside it."""
    lives = [
        json.dumps({"type": kind, "object": pod_json("NAME", metadata=metadata, spec=spec, status={"phase": phase})})
        for kind, node, phase in (
            ("ADDED", "", "Pending"),
            ("MODIFIED", "n1", "Running"),
            ("MODIFIED", "n1", "Succeeded"),
            ("DELETED", "n1", "Succeeded"),
        )
        for metadata, spec in [({"resourceVersion": "1000"}, {"nodeName": node})]
    ]
    for start in range(0, PODS, 100):
        for line in lives:
            yield "".join(line.replace("NAME", f"w{index}") + "\n" for index in range(start, start + 100)).encode()


@pytest.mark.timeout(300)
async def test_a_storm_of_events_leaves_nothing_behind_and_filter_is_answered_meanwhile(
    stub: ApiServerStub, api: ApiServer, metrics: Metrics
) -> None:
    is_over = asyncio.Event()

    async def send(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        for lines in storm():
            await response.write(lines)
        is_over.set()
        await asyncio.Event().wait()
        return response

    stub.answer_next("watch", send)
    rig = Rig(a_node("n1", gpu=1000), a_node("n2"))
    asked = a_pod("asked")
    tasks = [asyncio.create_task(job) for job in (Reflector(pods(rig.cluster), api, metrics).run(), _cycles(rig))]
    longest_s = 0.0
    gc.collect()
    tracemalloc.start()
    while not is_over.is_set():
        started_s = time.monotonic()
        await asyncio.sleep(0)
        rig.ask(asked)
        longest_s = max(longest_s, time.monotonic() - started_s)
        await asyncio.sleep(0.02)
    await eventually(lambda: not rig.cluster.pods, within_s=30.0)
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    for task in tasks:
        task.cancel()
    assert peak_bytes < MOST_BYTES
    assert longest_s < ANSWERED_S


async def _cycles(rig: Rig) -> None:
    await rig.cycle.run(lambda: True)
