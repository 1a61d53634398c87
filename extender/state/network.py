"""Which nodes are near one another now? By the labels of the nodes that the ledger knows."""

from extender.model.node import Node
from extender.model.topology import Level, Topology
from extender.state.ledger import Ledger


class Network:
    """The levels of the configuration on the nodes that are there."""

    def __init__(self, levels: tuple[Level, ...], ledger: Ledger) -> None:
        self._levels = levels
        self._ledger = ledger
        self._known: tuple[int, Topology] = -1, Topology(levels)

    @property
    def topology(self) -> Topology:
        """The network as it is now; it stays as it is while nodes come and go."""
        if self._known[0] != self._ledger.nodes_generation:
            labels = {name: room.node.labels for name, room in self._ledger.rooms.items()}
            self._known = self._ledger.nodes_generation, Topology(self._levels, labels)
        return self._known[1]

    def is_moved(self, node: Node) -> bool:
        """Whether this version of a known node is in another domain than the one that the ledger has."""
        room = self._ledger.rooms.get(node.name)
        return room is not None and self._whereabouts(room.node) != self._whereabouts(node)

    def _whereabouts(self, node: Node) -> list[tuple[str, str]]:
        return Topology(self._levels, {node.name: node.labels}).whereabouts(node.name)
