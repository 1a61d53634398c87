"""What is taken of each node, by pods and by reservations alike.

Charges may name a node that is not known (yet): they are kept, and count as soon as it appears.
"""

from collections.abc import Iterable

from extender.model.node import Node, NodeRoom
from extender.model.pod import HostPort, PodShape
from extender.model.resources import add_up, take_off


class Ledger:
    """Charges by node; every charge is undone by the discharge of the same shape from the same node."""

    def __init__(self) -> None:
        self.generation = 0
        self.rooms: dict[str, NodeRoom] = {}
        self._charged: dict[str, NodeRoom] = {}

    def put_node(self, node: Node) -> bool:
        """Add or change a node; False when nothing that matters changed (a heartbeat)."""
        known = self.rooms.get(node.name)
        if known is not None and known.node == node:
            return False
        charged = self._charged.get(node.name)
        self._set(NodeRoom(node, charged.taken, charged.taken_ports) if charged else NodeRoom(node))
        return True

    def drop_node(self, name: str) -> None:
        """Forget a node; what is charged to it stays charged."""
        self.generation += 1
        self.rooms.pop(name, None)

    def charge(self, node_name: str, shape: PodShape) -> None:
        """Take room for one pod of the shape."""
        before = self._charges(node_name)
        self._settle(NodeRoom(before.node, add_up(shape.requests, before.taken), before.taken_ports + shape.host_ports))

    def discharge(self, node_name: str, shape: PodShape) -> None:
        """Give the room of one pod of the shape back."""
        before = self._charges(node_name)
        ports = _without(before.taken_ports, shape.host_ports)
        self._settle(NodeRoom(before.node, take_off(shape.requests, before.taken), ports))

    def _charges(self, node_name: str) -> NodeRoom:
        return self.rooms.get(node_name) or self._charged.get(node_name) or NodeRoom(Node(node_name))

    def _settle(self, room: NodeRoom) -> None:
        name = room.node.name
        if room.taken or room.taken_ports:
            self._charged[name] = room
        else:
            self._charged.pop(name, None)
        if name in self.rooms:
            self._set(room)

    def _set(self, room: NodeRoom) -> None:
        self.generation += 1
        self.rooms[room.node.name] = room


def _without(ports: Iterable[HostPort], gone: Iterable[HostPort]) -> tuple[HostPort, ...]:
    rest = list(ports)
    for port in gone:
        rest.remove(port)
    return tuple(rest)
