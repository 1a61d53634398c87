"""What does the plan of a gang cost, against HTTP calls that do nothing, and with more nodes or members?

Cold is a snapshot of which nothing was looked up before, not even its domains: the first gang of a shape after the
start pays that. Warm is the next snapshot, with 1 % of its rooms changed and what was worked out for the others handed
on. That is what a running extender meets: its state hands on what was looked up for the last 64 questions from snapshot
to snapshot, and the domains as long as no node changes.
"""

import asyncio
import gc
from collections.abc import Callable, Iterator, Sequence
from statistics import median
from time import thread_time
from typing import Any, Final

from cachetools import LRUCache
from msgspec import Struct, structs

from e2e.bench.growth.exponent import with_exponents
from e2e.bench.growth.loopback import NOTHING, Client, serving
from e2e.bench.growth.objects import GangTerms
from e2e.bench.growth.world import World, filled_world
from e2e.bench.report import Row
from extender.decide.gang import admit_gang
from extender.model.gang import Gang
from extender.model.pod import PodShape
from extender.model.snapshot import Snapshot
from extender.model.topology import Topology
from extender.model.verdict import Placed
from extender.state.cluster import REMEMBERED_TABLES
from extender.wire.topology_own import PREFERRED, REQUIRED

CALLS: Final = 20
"""A plan is compared with so many calls."""

CHANGED: Final = 0.01
"""This part of the rooms changes between two snapshots."""

SERVERS: Final = 4

NEAR = {PREFERRED: "block"}
KINDS: Final[dict[str, Callable[[int], GangTerms]]] = {
    "anywhere": lambda members: GangTerms("anywhere", members),
    "near": lambda members: GangTerms("near", members, annotations=NEAR),
    "in a zone": lambda members: GangTerms("in-a-zone", members, annotations={REQUIRED: "zone"}),
    "4 PS, near": lambda members: GangTerms("with-servers", members - SERVERS, SERVERS, annotations=NEAR),
    "no GPUs, near": lambda members: GangTerms("without-gpus", members, gpus=0, annotations=NEAR),
    "whole nodes, near": lambda members: GangTerms("whole", members, gpus=8, annotations=NEAR),
}
"""Gangs of so many members, of one GPU each where nothing else is said."""

GROWING: Final = ("anywhere", "near", "in a zone", "4 PS, near")


class _Costs(Struct, frozen=True):
    """In seconds."""

    cold: float
    warm: float
    calls: float = 0.0


def measure_plan(*, nodes: int, members: int, pods_per_node: int, tries: int) -> Iterator[Row]:
    """Plan gangs of each kind, in turn with calls that do nothing; the times are medians."""
    world = filled_world(nodes, pods_per_node)
    for kind, terms_of in KINDS.items():
        costs = asyncio.run(_against_calls(world, world.create(terms_of(members)), tries))
        for what, cost in (("cold", costs.cold), ("warm", costs.warm)):
            yield {
                "gang": kind,
                "snapshot": what,
                "nodes": nodes,
                "members": members,
                "plan ms": 1000 * cost,
                "20 calls ms": 1000 * costs.calls,
                "ratio": cost / costs.calls,
            }


def measure_plan_growth(
    *, nodes: Sequence[int], members: Sequence[int], usual: tuple[int, int], pods_per_node: int, tries: int
) -> Iterator[Row]:
    """Plan with more and more nodes and members; `usual` are the nodes and the members beside which the others grow."""
    usual_nodes, usual_members = usual
    costs: dict[tuple[str, int, int], _Costs] = {}
    for number in sorted({*nodes, usual_nodes}):
        world = filled_world(number, pods_per_node)
        counts = [*(members if number == usual_nodes else ()), *([usual_members] if number in nodes else ())]
        for count in sorted(set(counts)):
            for kind in GROWING:
                costs[kind, number, count] = _least_costs(
                    world.cluster.snapshot(), world.create(KINDS[kind](count)), tries
                )
                _forget(world)
    for kind in GROWING:
        yield from _grown(kind, "nodes", [(number, usual_members) for number in nodes], costs)
        yield from _grown(kind, "members", [(usual_nodes, count) for count in members], costs)


def _grown(
    kind: str, what: str, sizes: Sequence[tuple[int, int]], costs: dict[tuple[str, int, int], _Costs]
) -> Iterator[Row]:
    for snapshot in ("cold", "warm"):
        rows = [
            {
                "gang": kind,
                "snapshot": snapshot,
                "more": what,
                "nodes": nodes,
                "members": members,
                "ms": 1000 * float(getattr(costs[kind, nodes, members], snapshot)),
            }
            for nodes, members in sizes
        ]
        yield from with_exponents(rows, by=what)


async def _against_calls(world: World, gang: Gang, tries: int) -> _Costs:
    calls: list[float] = []
    async with serving(world) as client:
        await _calls_s(client)
        cold, warm = [], []
        for number in range(tries):
            cold_s, warm_s = _plan_twice(world.cluster.snapshot(), gang, number)
            calls.append(await _calls_s(client))
            cold.append(cold_s)
            warm.append(warm_s)
    return _Costs(median(cold), median(warm), median(calls))


async def _calls_s(client: Client) -> float:
    started_s = thread_time()
    for _ in range(CALLS):
        await client.post(NOTHING, b"{}")
    return thread_time() - started_s


def _least_costs(snapshot: Snapshot, gang: Gang, tries: int) -> _Costs:
    """Return the least of some tries: what else runs on the machine only adds, and would bend the exponents."""
    times = [_plan_twice(snapshot, gang, number) for number in range(tries)]
    return _Costs(min(cold for cold, _ in times), min(warm for _, warm in times))


def _plan_twice(snapshot: Snapshot, gang: Gang, number: int) -> tuple[float, float]:
    """Return how many seconds the plan takes on a cold snapshot and on the next one."""
    topology = Topology(snapshot.topology.levels, snapshot.topology.labels)
    remembered: LRUCache[tuple[str, PodShape], Any] = LRUCache(REMEMBERED_TABLES)
    first = Snapshot(1, snapshot.rooms, snapshot.namespaces, remembered, topology)
    cold_s = _timed(gang, first)
    step = round(1 / CHANGED)
    changed = {name: structs.replace(room) for name, room in list(first.rooms.items())[number % step :: step]}
    following = Snapshot(2, {**first.rooms, **changed}, first.namespaces, remembered, topology)
    return cold_s, _timed(gang, following)


def _timed(gang: Gang, snapshot: Snapshot) -> float:
    started_s = thread_time()
    plan = admit_gang(gang, snapshot)
    took_s = thread_time() - started_s
    assert isinstance(plan, Placed), f"no room for {gang.key}"
    return took_s


def _forget(world: World) -> None:
    """Delete the pods that wait."""
    for uid in [uid for uid, pod in world.cluster.pods.items() if not pod.node_name]:
        world.cluster.remove_pod(uid)
    gc.collect()
