"""Where is room for pods of a shape, and why not elsewhere, on a whole snapshot?

Looked up once for a snapshot: a backlog of gangs from one template asks the same for each. And on the next snapshot,
only where a room has changed: most have not. Only what a node alone decides is told here; what its pods mean for others
is asked in `neighbourhood`. Amounts are compared for all nodes at once (`columns`), ports and cards node by node.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeVar

import numpy as np

from extender.decide.columns import Column, columns_of
from extender.decide.devices import count_fitting, fit_cards
from extender.decide.fit import fit_node, fit_room
from extender.decide.wear import wear_of
from extender.model.node import NodeRoom
from extender.model.pod import PodShape
from extender.model.snapshot import Snapshot
from extender.model.verdict import CardReason, Reason

T = TypeVar("T")


def reasons_by_node(shape: PodShape, snapshot: Snapshot) -> Mapping[str, tuple[Reason, ...]]:
    """Return for every node why such a pod does not fit there; empty where it does."""
    return _once("reasons", shape, snapshot, _reasons_by_node)


def lacking_cards(shape: PodShape, snapshot: Snapshot) -> Mapping[str, CardReason]:
    """Return the first reason of each node whose cards do not do for such a pod."""
    return {} if shape.cards is None else _once("cards", shape, snapshot, _lacking_cards)


def nodes_with_room(shape: PodShape, snapshot: Snapshot) -> frozenset[str]:
    """Return the nodes that take at least one such pod."""
    return frozenset(columns_of(snapshot).layout.names_of(capacities(shape, snapshot) > 0))


def total_capacity(shape: PodShape, snapshot: Snapshot) -> int:
    """Return how many such pods all nodes take together."""
    return int(capacities(shape, snapshot).sum())


def capacities(shape: PodShape, snapshot: Snapshot) -> Column:
    """Return how many such pods each node takes, in the rows of the snapshot's columns; not to be changed."""
    return _once("capacities", shape, snapshot, _capacities)


def capacity(shape: PodShape, room: NodeRoom) -> int:
    """Return how many pods of the shape find room on the node; nothing but room is looked at."""
    if shape.host_ports:
        return 0 if fit_room(shape, room) else 1
    free = room.node.allocatable
    most = min((free.get(name, 0) - room.taken.get(name, 0)) // amount for name, amount in shape.requests)
    if most > 0 and shape.cards is not None:
        return min(most, count_fitting(shape.cards, room))
    return max(0, most)


def capacity_on(name: str, shape: PodShape, snapshot: Snapshot) -> int:
    """Return how many pods of the shape find room on a node of the snapshot."""
    if shape.cards is None:  # then it is as quick as to look it up
        return capacity(shape, snapshot.rooms[name])
    return _on_room(_table("capacity", shape, snapshot), name, snapshot.rooms[name], partial(capacity, shape))


def wear_on(name: str, shape: PodShape, snapshot: Snapshot) -> int:
    """Return what one pod of the shape costs a node of the snapshot in whole cards."""
    return _on_room(_table("wear", shape, snapshot), name, snapshot.rooms[name], partial(wear_of, shape))


def _once(what: str, shape: PodShape, snapshot: Snapshot, look_up: Callable[[PodShape, Snapshot], T]) -> T:
    known = snapshot.looked_up
    if (what, shape) not in known:
        known[what, shape] = look_up(shape, snapshot)
    found: T = known[what, shape]
    return found


def _reasons_by_node(shape: PodShape, snapshot: Snapshot) -> Mapping[str, tuple[Reason, ...]]:
    table = _table("reasons", shape, snapshot)
    return {name: _on_room(table, name, room, partial(fit_node, shape)) for name, room in snapshot.rooms.items()}


def _lacking_cards(shape: PodShape, snapshot: Snapshot) -> Mapping[str, CardReason]:
    if shape.cards is None:
        return {}
    table, look_up = _table("cards", shape, snapshot), partial(fit_cards, shape.cards)
    return {name: why[0] for name, room in snapshot.rooms.items() if (why := _on_room(table, name, room, look_up))}


def _table(what: str, shape: PodShape, snapshot: Snapshot) -> dict[str, tuple[NodeRoom, Any]]:
    table = snapshot.remembered.get((what, shape))
    if table is None:
        table = snapshot.remembered[what, shape] = {}
    if len(table) > 2 * len(snapshot.rooms):  # most of these nodes are gone
        table.clear()
    return table


def _on_room(table: dict[str, tuple[NodeRoom, Any]], name: str, room: NodeRoom, work_out: Callable[[NodeRoom], T]) -> T:
    known = table.get(name)
    if known is None or known[0] is not room:
        known = table[name] = (room, work_out(room))
    found: T = known[1]
    return found


def _capacities(shape: PodShape, snapshot: Snapshot) -> Column:
    columns = columns_of(snapshot)
    layout = columns.layout
    found = columns.capacities(shape) * layout.suits(shape)
    asked = np.flatnonzero(layout.to_be_asked(shape))
    for row in asked[found[asked] > 0].tolist():
        found[row] = capacity_on(layout.names[row], shape, snapshot)
    return found
