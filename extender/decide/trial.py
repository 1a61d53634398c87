"""What if these pods were placed: an overlay on a snapshot, with undo.

Nothing here touches the live state; a trial that is not wanted is simply dropped.
"""

from extender.decide.fit import fit_room
from extender.model.node import NodeRoom
from extender.model.pod import PodShape
from extender.model.resources import add_up, take_off
from extender.model.snapshot import Snapshot


class Trial:
    """A snapshot on which pods can be placed and taken off again."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._changed: dict[str, NodeRoom] = {}
        self._undo: list[tuple[str, NodeRoom]] = []

    def room(self, node_name: str) -> NodeRoom:
        """Return the node with everything placed on it so far."""
        return self._changed.get(node_name) or self._snapshot.rooms[node_name]

    def capacity(self, shape: PodShape, node_name: str) -> int:
        """Return how many pods of the shape still find room on the node; taints and the like are not looked at."""
        room = self.room(node_name)
        if shape.host_ports:
            return 0 if fit_room(shape, room) else 1
        return max(
            0,
            min(
                (room.node.allocatable.get(name, 0) - room.taken.get(name, 0)) // amount
                for name, amount in shape.requests
            ),
        )

    def place(self, shape: PodShape, node_name: str, count: int = 1) -> None:
        """Put `count` pods of the shape on the node; whether they fit is the caller's question to `capacity`."""
        before = self.room(node_name)
        amounts = [(name, amount * count) for name, amount in shape.requests]
        self._replace(
            NodeRoom(before.node, add_up(amounts, before.taken), before.taken_ports + shape.host_ports * count)
        )

    def evict(self, shape: PodShape, node_name: str) -> None:
        """Take one pod of the shape off the node, as a preemption would."""
        before = self.room(node_name)
        ports = list(before.taken_ports)
        for port in shape.host_ports:
            ports.remove(port)
        self._replace(NodeRoom(before.node, take_off(shape.requests, before.taken), tuple(ports)))

    def as_snapshot(self) -> Snapshot:
        """Return the nodes with everything placed so far, for another trial to go on from."""
        return Snapshot(self._snapshot.generation, {**self._snapshot.rooms, **self._changed})

    def mark(self) -> int:
        """Return a point to which `undo` can go back."""
        return len(self._undo)

    def undo(self, mark: int) -> None:
        """Take back everything that was done after `mark`."""
        while len(self._undo) > mark:
            node_name, before = self._undo.pop()
            self._changed[node_name] = before

    def _replace(self, room: NodeRoom) -> None:
        name = room.node.name
        self._undo.append((name, self.room(name)))
        self._changed[name] = room
