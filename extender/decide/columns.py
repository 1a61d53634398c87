"""What do the nodes offer, asked of all of them at once?

A row for each node and a column for each question: numpy adds up and compares them a hundred times faster than Python
asks node by node. `Layout` is what stays while pods come and go, `Columns` what is free on one snapshot; the next
snapshot's are made from these, with other numbers in the rows of the rooms that changed.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property
from itertools import compress
from operator import is_not
from typing import Final, NamedTuple, TypeAlias

import numpy as np
from cachetools import LRUCache
from numpy.typing import NDArray

from extender.decide.fit import fit_static
from extender.model.device import CHOICES, BadCardRequest, CardDialect, CardManager, CardRequest
from extender.model.node import Node, NodeRoom, Taint
from extender.model.pod import PodShape
from extender.model.snapshot import Edition, Snapshot
from extender.model.topology import Level, Topology

Column: TypeAlias = NDArray[np.int64]
Mask: TypeAlias = NDArray[np.bool_]
"""Which rows are meant."""

Rows: TypeAlias = NDArray[np.intp]
"""The rows that are meant, by number."""

MOST: Final = 1 << 61
"""More of any resource than a node has; twice that can still be counted."""

_SHAPES: Final = 256
"""More than are asked about again and again; each takes 5 kB on 5,000 nodes."""

_REGIONS: Final = 32
"""More pairs of a preferred and a required level than there are; each takes 120 kB on 5,000 nodes."""

_ALL: Final = slice(None)

_NOTHING: Final[Mapping[str, Column]] = {}

_KEY: Final = ("columns", PodShape())

_ALONE: Final = "/"
"""No value of a label starts with it."""


def is_alone(domain: str) -> bool:
    """Whether the domain is that of a node that is in none."""
    return domain.startswith(_ALONE)


class Domains(NamedTuple):
    """The domains of a level, sorted by name, in which of them each row is, and the rows of each.

    A node in none is one by itself, under a name that no label can have. In `Regions`, regions stand for rows.
    """

    codes: Column
    code_of: Mapping[str, int]
    rows: Sequence[Rows]

    @classmethod
    def of(cls, codes: Column, code_of: Mapping[str, int]) -> "Domains":
        """Find the rows of each."""
        ends = np.cumsum(np.bincount(codes, minlength=len(code_of)))
        return cls(codes, code_of, np.split(np.argsort(codes, kind="stable"), ends[:-1]))


class Regions(NamedTuple):
    """The nodes that are in the same domains of all of some levels, taken together: they are many times fewer.

    Each row is in one of them; `rows` are those of each region, one after the other, from its start on.
    """

    region_of: Column
    rows: Rows
    starts: Rows
    sizes: Column
    domains: Mapping[Level, Domains]

    def rows_of(self, regions: Rows) -> Rows:
        """Return the rows of these regions, one after the other."""
        sizes = self.sizes[regions]
        ends = np.cumsum(sizes)
        within = np.arange(ends[-1] if len(ends) else 0) - np.repeat(ends - sizes, sizes)
        rows: Rows = self.rows[within + np.repeat(self.starts[regions], sizes)]
        return rows


class Layout:
    """The nodes in rows, and what they are whoever is on them."""

    def __init__(self, nodes: Sequence[Node], topology: Topology) -> None:
        self.nodes = nodes
        self.names = [node.name for node in nodes]
        self.row_of: Mapping[str, int] = {name: row for row, name in enumerate(self.names)}
        self.topology = topology
        self._domains: dict[Level, Domains] = {}
        self._regions: LRUCache[tuple[Level, ...], Regions] = LRUCache(_REGIONS)
        self._choosing: dict[CardDialect, Mask] = {}
        self._suits: LRUCache[PodShape, Mask] = LRUCache(_SHAPES)

    @cached_property
    def resource_numbers(self) -> Mapping[str, int]:
        """The resources that any node offers, numbered."""
        names = frozenset().union(*(node.allocatable for node in self.nodes))
        return {name: number for number, name in enumerate(sorted(names))}

    @cached_property
    def allocatable(self) -> Column:
        """What each node offers in all: a row for each resource by its number, a column for each node."""
        return _amounts([node.allocatable for node in self.nodes], self.resource_numbers)

    @cached_property
    def with_devices(self) -> Mask:
        """The nodes that have devices."""
        return np.array([node.has_devices for node in self.nodes], np.bool_)

    @cached_property
    def managers(self) -> Sequence[CardManager | None]:
        """Who hands out the cards of each node, as far as they are known."""
        return [node.inventory.manager if node.inventory else None for node in self.nodes]

    def to_be_asked(self, shape: PodShape) -> Mask:
        """Return the nodes where more than the amounts decides how many such pods they take: ports, or our choice."""
        if shape.host_ports:
            return np.ones(len(self.nodes), np.bool_)
        return self._choosing_for(shape.cards)

    def _choosing_for(self, cards: CardRequest | BadCardRequest | None) -> Mask:
        """Return the nodes on which such a pod's cards are ours to choose."""
        if not isinstance(cards, CardRequest):
            return np.zeros(len(self.nodes), np.bool_)
        if cards.dialect not in self._choosing:
            chosen = [manager is not None and cards.dialect in CHOICES[manager] for manager in self.managers]
            self._choosing[cards.dialect] = np.array(chosen, np.bool_)
        return self._choosing[cards.dialect]

    @cached_property
    def order(self) -> NDArray[np.intp]:
        """The rows, neighbours on the network side by side."""
        place = self.topology.order
        by_name = sorted(self.names)
        return np.array([self.row_of[name] for name in sorted(by_name, key=lambda name: place.get(name, 0))], np.intp)

    def mask(self, names: Iterable[str]) -> Mask:
        """Return the rows of these nodes; names without a row count for nothing."""
        mask = np.zeros(len(self.names), np.bool_)
        mask[[row for row in map(self.row_of.get, names) if row is not None]] = True
        return mask

    def names_of(self, mask: Mask) -> list[str]:
        """Return the nodes of these rows."""
        return [self.names[row] for row in np.flatnonzero(mask).tolist()]

    def suits(self, shape: PodShape) -> Mask:
        """Return the nodes that such pods may use, however full."""
        mask: Mask | None = self._suits.get(shape)
        if mask is None:
            mask = self._find_suited(shape)
            self._suits[shape] = mask = mask & self._choosing_for(shape.cards) if shape.is_placed_by_us else mask
        return mask

    def _find_suited(self, shape: PodShape) -> Mask:
        """Ask node by node; without a selector, most are alike in what decides it."""
        if shape.node_selector or shape.required_terms is not None or shape.volumes is not None:
            return np.array([not fit_static(shape, node) for node in self.nodes], np.bool_)
        known: dict[tuple[bool, tuple[Taint, ...]], bool] = {}
        for node in self.nodes:
            if (node.unschedulable, node.taints) not in known:
                known[node.unschedulable, node.taints] = not fit_static(shape, node)
        return np.array([known[node.unschedulable, node.taints] for node in self.nodes], np.bool_)

    def domains(self, level: Level) -> Domains:
        """Return the domains of the level."""
        if level not in self._domains:
            self._domains[level] = self._find_domains(level)
        return self._domains[level]

    def _find_domains(self, level: Level) -> Domains:
        domain_of = self.topology.domain_of_nodes(level)
        of_rows = [domain_of.get(name) or _ALONE + name for name in self.names]
        names = sorted(set(of_rows))
        code_of = {name: code for code, name in enumerate(names)}
        return Domains.of(np.array([code_of[name] for name in of_rows], np.int64), code_of)

    def regions(self, levels: tuple[Level, ...]) -> Regions:
        """Return the regions that these levels, one or more, tell apart."""
        regions: Regions | None = self._regions.get(levels)
        if regions is None:
            regions = self._find_regions([(level, self.domains(level)) for level in levels])
            self._regions[levels] = regions
        return regions

    def _find_regions(self, found: Sequence[tuple[Level, Domains]]) -> Regions:
        region_of = np.zeros(len(self.names), np.int64)
        for _, domains in found:
            _, region_of = np.unique(region_of * len(domains.code_of) + domains.codes, return_inverse=True)
        sizes = np.bincount(region_of)
        rows = np.argsort(region_of, kind="stable")
        starts = np.cumsum(sizes) - sizes
        of_regions = {level: Domains.of(domains.codes[rows[starts]], domains.code_of) for level, domains in found}
        return Regions(region_of, rows, starts, sizes, of_regions)

    def steps_from(self, homes: Collection[str], rows: Rows) -> Column:
        """Return how many levels out each of the rows' nodes shares a domain with one of these, all levels if none."""
        topology = self.topology
        steps = np.full(len(rows), len(topology.levels), np.int64)
        for number, level in reversed(list(enumerate(topology.levels))):
            for domain in {topology.domain_of(level, home) for home in homes} - {""}:
                domains = self.domains(level)
                steps[domains.codes[rows] == domains.code_of.get(domain, -1)] = number
        return steps


class Columns:
    """What is free on each node of a snapshot, by resource."""

    def __init__(self, layout: Layout, edition: Edition, free: Column, shared: Mask, repels: Mask) -> None:
        self.layout = layout
        self._edition = edition
        self._free = free
        """Of each resource by its number, what is left of it on each node."""
        self._shared = shared
        """The nodes on which we have chosen cards: the kubelet gives none of them to others."""
        self._repels = repels

    @classmethod
    def of(cls, snapshot: Snapshot) -> "Columns":
        """Return the columns of a snapshot of which nothing is known."""
        rooms = list(snapshot.rooms.values())
        layout = Layout([room.node for room in rooms], snapshot.topology)
        free = layout.allocatable - _taken(rooms, layout)
        return cls(layout, snapshot.rooms_edition, free, _shared(rooms), _repels(rooms))

    def after(self, snapshot: Snapshot) -> "Columns":
        """Return the columns of another snapshot, made from these where the nodes are the same."""
        layout = self.layout
        if snapshot.topology is not layout.topology or len(snapshot.rooms) != len(layout.nodes):
            return Columns.of(snapshot)
        changed = self._changed(snapshot)
        rows = [layout.row_of.get(room.node.name, -1) for room in changed]
        if any(room.node is not layout.nodes[row] for room, row in zip(changed, rows, strict=True)):
            return Columns.of(snapshot)
        free, shared, repels = self._free.copy(), self._shared.copy(), self._repels.copy()
        free[:, rows] = layout.allocatable[:, rows] - _taken(changed, layout)
        shared[rows] = _shared(changed)
        repels[rows] = _repels(changed)
        return Columns(layout, snapshot.rooms_edition, free, shared, repels)

    def _changed(self, snapshot: Snapshot) -> list[NodeRoom]:
        """Return the rooms of another snapshot, of as many nodes, that may differ from those here."""
        rooms, before = snapshot.rooms, self._edition
        names = snapshot.rooms_edition.differing(before)
        if names is None or not names <= rooms.keys():
            return list(compress(rooms.values(), map(is_not, rooms.values(), before.rooms.values())))
        return [rooms[name] for name in names]

    @cached_property
    def repelling(self) -> Sequence[NodeRoom]:
        """The nodes that hold pods with required anti-affinity, which every other pod must be checked against."""
        return [self._edition.rooms[name] for name in self.layout.names_of(self._repels)]

    def capacities(self, shape: PodShape, taken: Mapping[str, Column] = _NOTHING, rows: Rows | slice = _ALL) -> Column:
        """Return for how many such pods there is room on each of the rows' nodes, beside what is `taken` there.

        Neither ports nor cards that are ours to choose are looked at, nor whether the nodes are for such pods.
        """
        most = np.full(len(self.layout.nodes), MOST, np.int64)[rows]
        if shape.cards is not None and not shape.is_placed_by_us:
            most[(self._shared & ~self.layout.to_be_asked(shape))[rows]] = 0
        for name, amount in shape.requests:
            if name not in self.layout.resource_numbers or amount > MOST:
                return np.zeros_like(most)
            np.minimum(most, self._left(name, taken, rows) // amount, out=most)
        return np.maximum(most, 0, out=most)

    def free_devices(self, shape: PodShape, taken: Mapping[str, Column], rows: Rows) -> Column:
        """Return how many devices of the kinds that such a pod asks for are left beside what is `taken` there.

        That is what whole GPUs cost a node whose cards nobody knows (`wear`).
        """
        left = np.zeros(len(rows), np.int64)
        for name, _ in shape.requests:
            if "/" in name and name in self.layout.resource_numbers:
                left += self._left(name, taken, rows)
        return left

    def _left(self, name: str, taken: Mapping[str, Column], rows: Rows | slice) -> Column:
        free: Column = self._free[self.layout.resource_numbers[name]][rows]
        return free - taken[name] if name in taken else free


def columns_of(snapshot: Snapshot) -> Columns:
    """Return the columns of the snapshot."""
    found: Columns | None = snapshot.looked_up.get(_KEY)
    if found is None:
        before: Columns | None = snapshot.remembered.get(_KEY)
        found = before.after(snapshot) if before else Columns.of(snapshot)
        snapshot.looked_up[_KEY] = snapshot.remembered[_KEY] = found
    return found


def _taken(rooms: Sequence[NodeRoom], layout: Layout) -> Column:
    """Return how much of each resource is taken on these nodes."""
    return _amounts([room.taken for room in rooms], layout.resource_numbers)


def _amounts(of_nodes: Sequence[Mapping[str, int]], resources: Collection[str]) -> Column:
    """Return a row for each resource, with its amount on each node."""
    amounts = [amount_of.get(name, 0) for name in resources for amount_of in of_nodes]
    table: Column = _column(amounts).reshape(len(resources), len(of_nodes))
    return table


def _shared(rooms: Sequence[NodeRoom]) -> Mask:
    return np.array([bool(room.taken_cards) for room in rooms], np.bool_)


def _repels(rooms: Sequence[NodeRoom]) -> Mask:
    return np.array([bool(room.repelling) for room in rooms], np.bool_)


def _column(amounts: Sequence[int]) -> Column:
    try:
        return np.minimum(np.array(amounts, np.int64), MOST)
    except OverflowError:  # nobody has so much, but anybody can write it
        return np.array([min(amount, MOST) for amount in amounts], np.int64)
