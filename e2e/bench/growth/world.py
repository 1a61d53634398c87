"""A cluster state of a size, taken in as the reflectors do it."""

from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

import orjson
from msgspec import Raw

from e2e.bench.growth.objects import NAMESPACE, GangTerms, make_member, node_pages, pod_pages
from extender.config import GpuConfig, TopologyConfig
from extender.model.claim import gang_key
from extender.model.gang import Gang
from extender.state.cluster import Cluster
from extender.watch.reflector import Source
from extender.watch.sources import nodes, pods
from extender.wire.kube import decode_page

M = TypeVar("M")


class World:
    """A cluster with nothing in it yet, by the default configuration."""

    def __init__(self) -> None:
        levels = TopologyConfig().levels_of_network
        self.cluster = Cluster(["gang-scheduler"], levels=levels)
        self.nodes = nodes(self.cluster, GpuConfig().policy_of_cards)
        self.pods = pods(self.cluster)

    def create(self, terms: GangTerms) -> Gang:
        """Create a gang's pods; return the gang."""
        for number in range(terms.members):
            take_in(self.pods, orjson.dumps(make_member(terms, number)))
        gang = self.cluster.gangs.get(gang_key(NAMESPACE, terms.name))
        assert gang is not None
        assert len(gang.waiting) == terms.members
        return gang


def filled_world(nodes: int, pods_per_node: int) -> World:
    """Return a world with so many nodes, on which so many pods run."""
    world = World()
    sync(world.nodes, node_pages(nodes))
    sync(world.pods, pod_pages(nodes, pods_per_node))
    return world


def sync(source: Source[M], pages: Iterable[bytes]) -> None:
    """Take a whole list in."""
    source.replace(list(_decoded(source, pages)))


def take_in(source: Source[Any], body: bytes) -> None:
    """Take one object in."""
    source.upsert(source.kind.read(Raw(body)).object)


def _decoded(source: Source[M], pages: Iterable[bytes]) -> Iterator[M]:
    for body in pages:
        page = decode_page(source.kind, body)
        assert not page.problems, page.problems[0]
        yield from (seen.object for seen in page.objects)
