"""What does the plan of a gang cost, against HTTP calls that do nothing, and with more nodes or members?

Cold is a snapshot of which nothing was looked up before, not even its domains: the first gang of a shape after the
start pays that. Warm is the next snapshot, with 1 % of its rooms changed and what was worked out for the others handed
on. That is what a running extender meets: its state hands on what was looked up for the last 64 questions from snapshot
to snapshot, and the domains as long as no node changes.

The calls are read in two ways. The strictest counts the CPU time that client and server take for next to no body, in
one event loop: `CPU ratio`. What kube-scheduler meets is the other: its own process waits, by the clock, for the answer
to ExtenderArgs with the names of a sample of the nodes, or of all; the plan's time is by the clock then as well. In
both the handler does nothing, behind the server's own middlewares.
"""

import asyncio
import gc
from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import median
from time import perf_counter, thread_time
from typing import Any, Final

import orjson
from cachetools import LRUCache
from msgspec import Struct, structs

from e2e.bench.growth.exponent import with_exponents
from e2e.bench.growth.loopback import NOTHING, Client, calling, serving
from e2e.bench.growth.objects import GangTerms, make_member, node_name, without_managed_fields
from e2e.bench.growth.world import World, filled_world
from e2e.bench.report import Row
from extender.decide.gang import admit_gang
from extender.model.gang import Gang
from extender.model.pod import PodShape
from extender.model.snapshot import Edition, Snapshot
from extender.model.topology import Topology
from extender.model.verdict import Placed
from extender.state.cluster import REMEMBERED_TABLES
from extender.wire.topology_own import PREFERRED, REQUIRED

CALLS: Final = 20
"""A plan is compared with so many calls."""

CHANGED: Final = 0.01
"""This part of the rooms changes between two snapshots."""

SAMPLE: Final = 100
"""So many nodes kube-scheduler looks for at least, and offers where it stops there."""

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


class _Time(Struct, frozen=True):
    """In seconds, of this thread and by the clock."""

    cpu: float
    wall: float


class _Costs(Struct, frozen=True):
    """Of a plan."""

    cold: _Time
    warm: _Time


class _Calls(Struct, frozen=True):
    """In seconds, so many calls as a plan is compared with: the CPU's, and by the clock with names of nodes."""

    cpu: float
    wall_by_names: Mapping[int, float]


def measure_plan(*, nodes: int, members: int, pods_per_node: int, tries: int) -> Iterator[Row]:
    """Plan gangs of each kind, in turn with calls that do nothing; the times are medians."""
    world = filled_world(nodes, pods_per_node)
    for kind, terms_of in KINDS.items():
        terms = terms_of(members)
        costs, calls = asyncio.run(_against_calls(world, world.create(terms), _bodies(terms, nodes), tries))
        for what, cost in (("cold", costs.cold), ("warm", costs.warm)):
            row: dict[str, str | float] = {"gang": kind, "snapshot": what, "nodes": nodes, "members": members}
            row |= {"plan CPU ms": 1000 * cost.cpu, f"{CALLS} calls CPU ms": 1000 * calls.cpu}
            row |= {"CPU ratio": cost.cpu / calls.cpu, "plan wall ms": 1000 * cost.wall}
            for size, (names, wall) in zip(("sample", "all"), calls.wall_by_names.items(), strict=True):
                row |= {f"{size}: names": names, f"{size}: {CALLS} calls wall ms": 1000 * wall}
                row |= {f"{size}: wall ratio": cost.wall / wall}
            yield row


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
                "ms": 1000 * float(getattr(costs[kind, nodes, members], snapshot).cpu),
            }
            for nodes, members in sizes
        ]
        yield from with_exponents(rows, by=what)


async def _against_calls(world: World, gang: Gang, bodies: Mapping[int, bytes], tries: int) -> tuple[_Costs, _Calls]:
    """Plan in turn with calls; return the medians."""
    plans: list[_Costs] = []
    cpu: list[float] = []
    wall: dict[int, list[float]] = {names: [] for names in bodies}
    async with serving(world) as client, calling(client.port, NOTHING) as caller:
        for number in range(-1, tries):  # the first calls are slower
            cpu_s = await _calls_s(client)
            walls_s = {names: CALLS * await caller.median_s(body, CALLS) for names, body in bodies.items()}
            if number < 0:
                continue
            cpu.append(cpu_s)
            for names, wall_s in walls_s.items():
                wall[names].append(wall_s)
            plans.append(_plan_twice(world.cluster.snapshot(), gang, number))
    calls = _Calls(median(cpu), {names: median(these) for names, these in wall.items()})
    return _merged(plans, median), calls


def _bodies(terms: GangTerms, nodes: int) -> dict[int, bytes]:
    """Return what kube-scheduler sends of a member, with a sample of the nodes and with all, by how many they are."""
    pod = without_managed_fields(make_member(terms, 0))
    names = [node_name(number) for number in range(nodes)]
    return {
        count: orjson.dumps({"Pod": pod, "Nodes": None, "NodeNames": names[:count]})
        for count in (min(SAMPLE, nodes - 1), nodes)
    }


def _merged(plans: Sequence[_Costs], choose: Callable[[list[float]], float]) -> _Costs:
    def of(times: Sequence[_Time]) -> _Time:
        return _Time(choose([time.cpu for time in times]), choose([time.wall for time in times]))

    return _Costs(of([plan.cold for plan in plans]), of([plan.warm for plan in plans]))


async def _calls_s(client: Client) -> float:
    started_s = thread_time()
    for _ in range(CALLS):
        await client.post(NOTHING, b"{}")
    return thread_time() - started_s


def _least_costs(snapshot: Snapshot, gang: Gang, tries: int) -> _Costs:
    """Return the least of some tries: what else runs on the machine only adds, and would bend the exponents."""
    return _merged([_plan_twice(snapshot, gang, number) for number in range(tries)], min)


def _plan_twice(snapshot: Snapshot, gang: Gang, number: int) -> _Costs:
    """Return what the plan takes on a cold snapshot and on the next one."""
    topology = Topology(snapshot.topology.levels, snapshot.topology.labels)
    remembered: LRUCache[tuple[str, PodShape], Any] = LRUCache(REMEMBERED_TABLES)
    changed_at: dict[str, int] = {}
    edition = Edition(snapshot.rooms, changed_at, 1)
    first = Snapshot(1, snapshot.rooms, snapshot.namespaces, remembered, topology, edition)
    cold = _timed(gang, first)
    step = round(1 / CHANGED)
    changed = {name: structs.replace(room) for name, room in list(first.rooms.items())[number % step :: step]}
    changed_at.update(dict.fromkeys(changed, 2))  # as the ledger notes it
    edition = Edition({**first.rooms, **changed}, changed_at, 2)
    following = Snapshot(2, edition.rooms, first.namespaces, remembered, topology, edition)
    return _Costs(cold, _timed(gang, following))


def _timed(gang: Gang, snapshot: Snapshot) -> _Time:
    wall_s, cpu_s = perf_counter(), thread_time()
    plan = admit_gang(gang, snapshot)
    cpu_s, wall_s = thread_time() - cpu_s, perf_counter() - wall_s
    assert isinstance(plan, Placed), f"no room for {gang.key}"
    return _Time(cpu_s, wall_s)


def _forget(world: World) -> None:
    """Delete the pods that wait."""
    for uid in [uid for uid, pod in world.cluster.pods.items() if not pod.node_name]:
        world.cluster.remove_pod(uid)
    gc.collect()
