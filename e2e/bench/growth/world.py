"""An extender's state of a cluster of some size, taken in as the reflectors do it; nothing is written anywhere."""

import time
from collections.abc import Iterable
from typing import Any, TypeVar

import orjson
from msgspec import Raw

from e2e.bench.growth.objects import GPUS, NAMESPACE, GangTerms, make_member, node_pages, pod_pages
from extender.config import GpuConfig, TopologyConfig
from extender.cycle import Cycle, Effects
from extender.model.claim import gang_key
from extender.model.gang import Gang
from extender.observe.metrics import Metrics
from extender.state.cluster import Cluster
from extender.state.expiry import Deadlines
from extender.state.planning import Planner
from extender.verbs.barrier import Barrier
from extender.verbs.turns import Turns
from extender.watch.reflector import Source
from extender.watch.sources import nodes, pods
from extender.wire.kube import Changed, Deleted, decode_event, open_page, read_page

M = TypeVar("M")

LONG_S = 3600.0
"""No deadline ends while something is measured."""


class World:
    """A cluster with nothing in it yet, by the default configuration."""

    def __init__(self) -> None:
        self.cluster = Cluster(["gang-scheduler"], levels=TopologyConfig().levels_of_network)
        self.nodes = nodes(self.cluster, GpuConfig().policy_of_cards)
        self.pods = pods(self.cluster)
        self.metrics = Metrics("bench")
        self.planner = Planner(self.cluster, Deadlines(LONG_S, LONG_S, LONG_S))
        self.barrier = Barrier(self.cluster, self.metrics)
        self.turns = Turns(self.cluster, self.metrics)
        effects = Effects(nominate=_nothing, release=_nothing, announce=_nothing, report=_nothing)
        self._cycle = Cycle(self.cluster, self.planner, self.barrier, self.turns, effects)

    def step(self) -> None:
        """Run one cycle, as after every change."""
        self._cycle.step(time.monotonic())  # the clock of the event loop

    def create(self, terms: GangTerms) -> Gang:
        """Create a gang's pods; return the gang."""
        for number in range(terms.members):
            body = orjson.dumps(make_member(terms, number))
            self.pods.upsert(self.pods.kind.read(Raw(body)).object)
        gang = self.cluster.gangs.get(gang_key(NAMESPACE, terms.name))
        assert gang is not None
        assert len(gang.waiting) == terms.members
        return gang


def filled_world(nodes: int, pods_per_node: int, most_used: int = GPUS) -> World:
    """Return a world with so many nodes, on which so many pods run each, and use at most so many GPUs."""
    world = World()
    sync(world.nodes, node_pages(nodes))
    sync(world.pods, pod_pages(nodes, pods_per_node, most_used))
    return world


def sync(source: Source[M], pages: Iterable[bytes]) -> float:
    """Take a whole list in; return how many seconds that took, without making the pages."""
    objects: list[M] = []
    took_s = 0.0
    for body in pages:
        started_s = time.thread_time()
        page = read_page(source.kind, open_page(source.kind, body))
        objects += [seen.object for seen in page.objects]
        took_s += time.thread_time() - started_s
        assert not page.problems, page.problems[0]
    started_s = time.thread_time()
    source.replace(objects)
    return took_s + time.thread_time() - started_s


def take(source: Source[Any], line: bytes) -> None:
    """Take one line of a watch in."""
    event = decode_event(source.kind, line)
    if isinstance(event, Changed):
        source.upsert(event.seen.object)
    else:
        assert isinstance(event, Deleted)
        source.remove(event.id)


def _nothing(_what: object) -> None:
    """Stands in for the effects: nothing is written."""
