"""Which cards has a node of which an object of its own, beside the node, says them?

Either may come first, change and go alone. What a device plugin wrote on the node itself goes before such an object:
the plugin is what hands out the cards there.
"""

from collections.abc import Callable, Iterable

from msgspec import structs

from extender.model.device import CardInventory, CardManager, NodeCards
from extender.model.node import Node


class Devices:
    """What is known of either; `take` gets each known node anew whose object changes."""

    def __init__(self, take: Callable[[Node], None]) -> None:
        self._take = take
        self._nodes: dict[str, Node] = {}
        self._inventories: dict[str, CardInventory] = {}

    def put_node(self, node: Node) -> Node:
        """Add or change a node, and return it with its cards."""
        self._nodes[node.name] = node
        reported = self._inventories.get(node.name)
        known = node.inventory
        if reported is None or (known is not None and known.manager is not CardManager.OWN):
            return node
        resources = reported.kubelet_resources | (known.kubelet_resources if known else frozenset())
        return structs.replace(node, inventory=structs.replace(reported, kubelet_resources=resources))

    def drop_node(self, name: str) -> None:
        """Forget a node; what its object says is kept."""
        self._nodes.pop(name, None)

    def replace(self, listed: Iterable[NodeCards]) -> None:
        """Take a full list of such objects."""
        by_node = {cards.node: cards for cards in listed}
        for name in [name for name in self._inventories if name not in by_node]:
            self.remove(name)
        for cards in by_node.values():
            self.upsert(cards)

    def upsert(self, cards: NodeCards) -> None:
        """Add or change such an object."""
        if cards.inventory is None:
            self.remove(cards.node)
        else:
            self._inventories[cards.node] = cards.inventory
            self._renew(cards.node)

    def remove(self, name: str) -> None:
        """Forget such an object."""
        if self._inventories.pop(name, None) is not None:
            self._renew(name)

    def _renew(self, name: str) -> None:
        if name in self._nodes:
            self._take(self._nodes[name])
