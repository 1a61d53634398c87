"""What do kube-scheduler's calls cost, against calls with the same body that do nothing, and in larger clusters?

Between two calls the cycle runs, as it would, and is not counted.
"""

import asyncio
from collections.abc import Iterator, Sequence
from statistics import median
from typing import Final

import orjson

from e2e.bench.growth.exponent import with_exponents
from e2e.bench.growth.loopback import NOTHING, CallTime, Client, serving
from e2e.bench.growth.objects import (
    BLOCK,
    GPUS,
    NAMESPACE,
    GangTerms,
    Object,
    make_member,
    node_name,
    without_managed_fields,
)
from e2e.bench.growth.world import World, filled_world
from e2e.bench.report import Row, percentile
from extender.decide import sample
from extender.model.claim import gang_key
from extender.verbs.server import PREFIX
from extender.wire.topology_own import REQUIRED

FILTER, PRIORITIZE = f"{PREFIX}/filter", f"{PREFIX}/prioritize"

PLANNED: Final = GangTerms("planned", workers=8)
HUGE: Final = GangTerms("huge", workers=BLOCK * GPUS + 1, annotations={REQUIRED: "block"})
"""Every member finds a node, but no block takes the gang, so that it waits for ever."""

AS_SHIPPED: Final = sample.LEAST
"""So many of 5,000 nodes kube-scheduler offers with scheduler-config/dedicated.yaml."""
SAMPLE: Final = 500
"""So many it offers by itself; all, if it is told to look at all."""


def measure_filter(*, nodes: int, pods_per_node: int, calls: int) -> Iterator[Row]:
    """Ask for a planned member, in turn with calls that do nothing."""
    world = _world(nodes, pods_per_node)
    for names in sorted({min(AS_SHIPPED, nodes), min(SAMPLE, nodes), nodes}):
        filtering, nothing = asyncio.run(_in_turn(world, _body(world, PLANNED, nodes, names), calls))
        for clock in ("wall", "cpu"):
            times = {"filter": _seconds(filtering, clock), "nothing": _seconds(nothing, clock)}
            row: dict[str, str | float] = {"nodes": nodes, "names": names, "calls": calls, "clock": clock}
            for what, these in times.items():
                row |= {f"{what} p50 ms": 1000 * median(these), f"{what} p99 ms": 1000 * percentile(these, 99)}
            yield row | {
                "p50 ratio": median(times["filter"]) / median(times["nothing"]),
                "p99 ratio": percentile(times["filter"], 99) / percentile(times["nothing"], 99),
            }


def measure_verbs(*, nodes: Sequence[int], pods_per_node: int, calls: int) -> Iterator[Row]:
    """Call each verb in larger and larger clusters, with a sample of the nodes and with all; the times are medians."""
    found = {number: asyncio.run(_costs(_world(number, pods_per_node), number, calls)) for number in nodes}
    for what in found[nodes[0]]:
        rows: list[Row] = [
            {"call": what, "nodes": number, "pods": number * pods_per_node, "ms": 1000 * costs[what]}
            for number, costs in found.items()
        ]
        yield from with_exponents(rows, by="nodes")


async def _costs(world: World, nodes: int, calls: int) -> dict[str, float]:
    costs: dict[str, float] = {}
    async with serving(world) as client:
        for some, names in (("a sample", min(SAMPLE, nodes)), ("all", nodes)):
            planned, huge = (_body(world, terms, nodes, names) for terms in (PLANNED, HUGE))
            for what, path, body in (
                ("filter, planned", FILTER, planned),
                ("filter, waits", FILTER, huge),
                ("filter, no gang", FILTER, _without_gang(planned)),
                ("prioritize", PRIORITIZE, planned),
                ("nothing", NOTHING, planned),
            ):
                times = [await _timed(client, world, path, body) for _ in range(calls)]
                costs[f"{what}: {some}"] = median(_seconds(times, "cpu"))
    return costs


async def _in_turn(world: World, body: bytes, calls: int) -> tuple[list[CallTime], list[CallTime]]:
    filtering, nothing = [], []
    async with serving(world) as client:
        for _ in range(10):  # the first ones are slower
            await _timed(client, world, FILTER, body)
        for _ in range(calls):
            filtering.append(await _timed(client, world, FILTER, body))
            nothing.append(await _timed(client, world, NOTHING, body))
    return filtering, nothing


async def _timed(client: Client, world: World, path: str, body: bytes) -> CallTime:
    took = await client.timed(path, body)
    world.step()
    return took


def _seconds(times: Sequence[CallTime], clock: str) -> list[float]:
    return [each.wall_s if clock == "wall" else each.cpu_s for each in times]


def _world(nodes: int, pods_per_node: int) -> World:
    """Return a world in which one gang holds its room and another one waits."""
    world = filled_world(nodes, pods_per_node, most_used=GPUS - 2)  # so that the members fit every node offered
    world.create(PLANNED)
    world.create(HUGE)
    world.step()
    assert world.cluster.reservations.get(gang_key(NAMESPACE, PLANNED.name)) is not None
    return world


def _body(world: World, terms: GangTerms, nodes: int, names: int) -> bytes:
    """Return what kube-scheduler asks for a gang's first member, with its planned node among the names."""
    pod = without_managed_fields(make_member(terms, 0))
    slot = world.cluster.reservations.slot_of(pod["metadata"]["uid"])
    offered = [node_name(number) for number in range(nodes)][:names]
    if slot is not None and slot.node not in offered:
        offered[names // 2] = slot.node
    return orjson.dumps({"Pod": pod, "Nodes": None, "NodeNames": offered})


def _without_gang(body: bytes) -> bytes:
    """Return the same question of a pod that is in no gang."""
    args: Object = orjson.loads(body)
    meta = args["Pod"]["metadata"]
    args["Pod"]["metadata"] = {"name": "single", "namespace": NAMESPACE, "uid": "uid-single", "labels": meta["labels"]}
    args["Pod"]["spec"]["schedulerName"] = "default-scheduler"
    return orjson.dumps(args)
