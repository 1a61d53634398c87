"""What does it cost to take in what the API server says, and what memory does it need?

A whole list is taken in by a process of its own, so that its memory is nobody else's: what it has more afterwards, as
Linux counts it (resident set). That includes what the allocator keeps for the next page, which is always about the
same, so that one object's part is told by what it has more than with the next smaller list.
"""

import gc
import resource
from collections.abc import Callable, Iterator, Sequence
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median
from time import thread_time
from typing import Any, Final

import orjson
from msgspec import Struct

from e2e.bench.growth.exponent import with_exponents
from e2e.bench.growth.objects import (
    GangTerms,
    make_member,
    make_node,
    node_pages,
    pod_pages,
    running,
)
from e2e.bench.growth.world import World, filled_world, sync, take
from e2e.bench.report import Row

MIB: Final = 2**20


class _Sync(Struct, frozen=True):
    nodes_s: float
    pods_s: float
    nodes_bytes: int
    pods_bytes: int


def measure_sync(*, nodes: Sequence[int], pods_per_node: int) -> Iterator[Row]:
    """Take in the lists of all nodes and all pods, of one cluster after the other."""
    found = {number: _in_a_process_of_its_own(number, pods_per_node) for number in nodes}
    for what in ("nodes", "pods"):
        rows: list[Row] = []
        fewer, less = 0, 0
        for number, costs in found.items():
            objects = number * (1 if what == "nodes" else pods_per_node)
            seconds, size = float(getattr(costs, f"{what}_s")), int(getattr(costs, f"{what}_bytes"))
            each = {"us of each": 10**6 * seconds / objects, "bytes more of each": (size - less) / (objects - fewer)}
            rows.append({"list of all": what, "objects": objects, "ms": 1000 * seconds, "MiB": size / MIB, **each})
            fewer, less = objects, size
        yield from with_exponents(rows, by="objects")


def measure_events(*, nodes: Sequence[int], pods_per_node: int, tries: int) -> Iterator[Row]:
    """Take in what a watch says of single objects, and what has to be done next each time; the times are medians."""
    found = {number: _costs_of_events(filled_world(number, pods_per_node), number, tries) for number in nodes}
    for what in found[nodes[0]]:
        rows: list[Row] = [
            {"what": what, "nodes": number, "pods": number * pods_per_node, "ms": 1000 * costs[what]}
            for number, costs in found.items()
        ]
        yield from with_exponents(rows, by="nodes")


def _in_a_process_of_its_own(nodes: int, pods_per_node: int) -> _Sync:
    context = get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_sync_from, args=(theirs,))
    process.start()
    for pages in (node_pages(1), pod_pages(1, pods_per_node), node_pages(nodes), pod_pages(nodes, pods_per_node)):
        for body in pages:
            ours.send_bytes(body)
        ours.send_bytes(b"")
    costs: _Sync = ours.recv()
    process.join()
    return costs


def _sync_from(pages: Connection) -> None:
    """Take in a small cluster, so that everything is loaded, and then the one that counts."""
    _take_lists(World(), pages)
    pages.send(_take_lists(World(), pages))


def _take_lists(world: World, pages: Connection) -> _Sync:
    empty = _resident_bytes()
    nodes_s = sync(world.nodes, iter(pages.recv_bytes, b""))
    with_nodes = _resident_bytes()
    pods_s = sync(world.pods, iter(pages.recv_bytes, b""))
    return _Sync(nodes_s, pods_s, with_nodes - empty, _resident_bytes() - with_nodes)


def _resident_bytes() -> int:
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def _costs_of_events(world: World, nodes: int, tries: int) -> dict[str, float]:
    times: dict[str, list[float]] = {}

    def timed(what: str, do: Callable[[], object]) -> None:
        started_s = thread_time()
        do()
        times.setdefault(what, []).append(thread_time() - started_s)

    timed("first cycle", world.step)
    world.cluster.snapshot()
    for number in range(tries):
        _tell_of_a_pod(world, number, timed)
    for number in range(tries):
        _tell_of_a_node(world, number % nodes, timed)
    return {what: median(these) for what, these in times.items()}


def _tell_of_a_pod(world: World, number: int, timed: Callable[[str, Callable[[], object]], None]) -> None:
    """Let a gang of one pod come, be bound where it is planned, and go."""
    pod = make_member(GangTerms(f"lone-{number}", workers=1), 0)
    come, gone = _line("ADDED", pod), _line("DELETED", pod)
    timed("a pod comes", lambda: take(world.pods, come))
    timed("a pod comes: cycle", world.step)  # plans it
    slot = world.cluster.reservations.slot_of(pod["metadata"]["uid"])
    assert slot is not None
    bound = _line("MODIFIED", running(pod, slot.node))
    timed("a pod is bound", lambda: take(world.pods, bound))
    timed("a pod is bound: snapshot", world.cluster.snapshot)
    timed("a pod is bound: cycle", world.step)
    timed("a pod is gone", lambda: take(world.pods, gone))
    timed("a pod is gone: snapshot", world.cluster.snapshot)
    timed("a pod is gone: cycle", world.step)  # looks at every gang, since room is free


def _tell_of_a_node(world: World, number: int, timed: Callable[[str, Callable[[], object]], None]) -> None:
    """Let a node say that it is well, then be cordoned, and not any more."""
    well, cordoned = _line("MODIFIED", make_node(number)), _line("MODIFIED", make_node(number, unschedulable=True))
    timed("a node is well", lambda: take(world.nodes, well))
    timed("a node changes", lambda: take(world.nodes, cordoned))
    timed("a node changes: snapshot", world.cluster.snapshot)
    timed("a node changes: cycle", world.step)
    take(world.nodes, well)
    world.step()


def _line(event: str, one: dict[str, Any]) -> bytes:
    return orjson.dumps({"type": event, "object": one})
