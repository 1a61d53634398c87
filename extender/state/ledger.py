"""What is taken of each node, by pods and by reservations alike.

Charges may name a node that is not known (yet): they are kept, and count as soon as it appears.
"""

from extender.model.node import Node, NodeRoom
from extender.model.pod import Occupant
from extender.model.snapshot import Edition


class Ledger:
    """Charges by node; every charge is undone by the discharge of an equal pod from the same node."""

    def __init__(self) -> None:
        self.generation = 0
        self.nodes_generation = 0
        self.rooms: dict[str, NodeRoom] = {}
        self._changed_at: dict[str, int] = {}
        self._charged: dict[str, NodeRoom] = {}
        self._repelling: set[str] = set()

    @property
    def repels(self) -> bool:
        """Whether any node holds pods with required anti-affinity."""
        return bool(self._repelling)

    def edition(self) -> Edition:
        """Return the rooms as they are now."""
        return Edition(dict(self.rooms), self._changed_at, self.generation)

    def put_node(self, node: Node) -> bool:
        """Add or change a node; False when nothing that matters changed (a heartbeat)."""
        known = self.rooms.get(node.name)
        if known is not None and known.node == node:
            return False
        self.nodes_generation += 1
        charged = self._charged.get(node.name)
        self._set(charged.on(node) if charged else NodeRoom(node))
        return True

    def drop_node(self, name: str) -> None:
        """Forget a node; what is charged to it stays charged."""
        self.generation += 1
        self.nodes_generation += 1
        self.rooms.pop(name, None)
        self._changed_at = {}  # another one: names of nodes that are gone would stay in it
        self._repelling.discard(name)

    def charge(self, node_name: str, pod: Occupant) -> None:
        """Take room for one such pod."""
        self._settle(self._charges(node_name).having(pod))

    def discharge(self, node_name: str, pod: Occupant) -> None:
        """Give the room of one such pod back."""
        self._settle(self._charges(node_name).without(pod))

    def _charges(self, node_name: str) -> NodeRoom:
        return self.rooms.get(node_name) or self._charged.get(node_name) or NodeRoom(Node(node_name))

    def _settle(self, room: NodeRoom) -> None:
        name = room.node.name
        if room.pods:
            self._charged[name] = room
        else:
            self._charged.pop(name, None)
        if name in self.rooms:
            self._set(room)

    def _set(self, room: NodeRoom) -> None:
        self.generation += 1
        self.rooms[room.node.name] = room
        self._changed_at.pop(room.node.name, None)  # so that it comes to stand at the end
        self._changed_at[room.node.name] = self.generation
        if room.repelling:
            self._repelling.add(room.node.name)
        else:
            self._repelling.discard(room.node.name)
