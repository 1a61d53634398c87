"""A node, and how much of it is taken by whom."""

from collections.abc import Iterable, Mapping
from typing import TypeVar

from msgspec import Struct, structs

from extender.model.device import CardInventory, CardUse
from extender.model.pod import HostPort, Occupant
from extender.model.resources import Resources, add_up, take_off

T = TypeVar("T")


class Taint(Struct, frozen=True, gc=False):
    """One of `spec.taints`."""

    key: str
    value: str = ""
    effect: str = "NoSchedule"


class Node(Struct, frozen=True):
    """What a node offers; `allocatable` holds `pods`, too. `inventory` is None where no cards are known."""

    name: str
    allocatable: Resources = {}
    labels: Mapping[str, str] = {}
    taints: tuple[Taint, ...] = ()
    unschedulable: bool = False
    inventory: CardInventory | None = None

    @property
    def has_devices(self) -> bool:
        """Whether it has devices that others may need."""
        return self.inventory is not None or any("/" in name and amount for name, amount in self.allocatable.items())


class NodeRoom(Struct, frozen=True):
    """A node with what its pods and the gangs' reservations take of it.

    `repelling` are those of `pods` that have required anti-affinity. Where the node's cards are known, `taken_cards`
    says by key what of them is taken, and `unknown_cards` how many of `pods` have cards that nobody knows.
    """

    node: Node
    taken: Resources = {}
    taken_ports: tuple[HostPort, ...] = ()
    pods: tuple[Occupant, ...] = ()
    repelling: tuple[Occupant, ...] = ()
    taken_cards: Mapping[str, CardUse] = {}
    unknown_cards: int = 0

    @property
    def is_overcommitted(self) -> bool:
        """Whether more is taken than the node has."""
        return any(amount > self.node.allocatable.get(name, 0) for name, amount in self.taken.items())

    def on(self, node: Node) -> "NodeRoom":
        """Return the same pods on another version of the node."""
        room = structs.replace(self, node=node)
        if node.inventory == self.node.inventory:
            return room
        room = structs.replace(room, taken_cards={}, unknown_cards=0)
        for pod in self.pods:
            taken, unknown = room._cards_after(pod, 1)  # noqa: SLF001 - of its own class
            room = structs.replace(room, taken_cards=taken, unknown_cards=unknown)
        return room

    def having(self, pod: Occupant, count: int = 1) -> "NodeRoom":
        """Return it with `count` such pods more."""
        added = (pod,) * count
        return NodeRoom(
            self.node,
            add_up([(name, amount * count) for name, amount in pod.shape.requests], self.taken),
            self.taken_ports + pod.shape.host_ports * count,
            self.pods + added,
            self.repelling + added if repels(pod) else self.repelling,
            *self._cards_after(pod, count),
        )

    def without(self, pod: Occupant) -> "NodeRoom":
        """Return it without one such pod, which must be there."""
        return NodeRoom(
            self.node,
            take_off(pod.shape.requests, self.taken),
            _without(self.taken_ports, pod.shape.host_ports),
            _without(self.pods, (pod,)),
            _without(self.repelling, (pod,)) if repels(pod) else self.repelling,
            *self._cards_after(pod, -1),
        )

    def _cards_after(self, pod: Occupant, count: int) -> tuple[Mapping[str, CardUse], int]:
        """Return what of the cards is taken, and how many pods have unknown ones, with `count` such pods more."""
        inventory = self.node.inventory
        if inventory is None:
            return self.taken_cards, self.unknown_cards
        if not pod.cards:
            hidden = any(name in inventory.kubelet_resources for name, _ in pod.shape.requests)
            return self.taken_cards, self.unknown_cards + (count if hidden else 0)
        taken = dict(self.taken_cards)
        for share in pod.cards * abs(count):
            key = inventory.key_of(share)
            taken[key] = taken.get(key, CardUse()).plus(share, 1 if count > 0 else -1)
            if not taken[key].shares:
                del taken[key]
        return taken, self.unknown_cards


def repels(pod: Occupant) -> bool:
    """Whether it has required anti-affinity."""
    relations = pod.shape.relations
    return relations is not None and bool(relations.anti_affinity)


def _without(these: tuple[T, ...], gone: Iterable[T]) -> tuple[T, ...]:
    rest = list(these)
    for one in gone:
        rest.remove(one)
    return tuple(rest)
