"""A node, and how much of it is taken by whom."""

from collections.abc import Iterable, Mapping
from typing import TypeVar

from msgspec import Struct, structs

from extender.model.pod import HostPort, Occupant
from extender.model.resources import Resources, add_up, take_off

T = TypeVar("T")


class Taint(Struct, frozen=True, gc=False):
    """One of `spec.taints`."""

    key: str
    value: str = ""
    effect: str = "NoSchedule"


class Node(Struct, frozen=True):
    """What a node offers; `allocatable` holds `pods`, too."""

    name: str
    allocatable: Resources = {}
    labels: Mapping[str, str] = {}
    taints: tuple[Taint, ...] = ()
    unschedulable: bool = False


class NodeRoom(Struct, frozen=True):
    """A node with what its pods and the gangs' reservations take of it.

    `repelling` are those of `pods` that have required anti-affinity.
    """

    node: Node
    taken: Resources = {}
    taken_ports: tuple[HostPort, ...] = ()
    pods: tuple[Occupant, ...] = ()
    repelling: tuple[Occupant, ...] = ()

    @property
    def is_overcommitted(self) -> bool:
        """Whether more is taken than the node has."""
        return any(amount > self.node.allocatable.get(name, 0) for name, amount in self.taken.items())

    def on(self, node: Node) -> "NodeRoom":
        """Return the same pods on another version of the node."""
        return structs.replace(self, node=node)

    def having(self, pod: Occupant, count: int = 1) -> "NodeRoom":
        """Return it with `count` such pods more."""
        added = (pod,) * count
        return NodeRoom(
            self.node,
            add_up([(name, amount * count) for name, amount in pod.shape.requests], self.taken),
            self.taken_ports + pod.shape.host_ports * count,
            self.pods + added,
            self.repelling + added if repels(pod) else self.repelling,
        )

    def without(self, pod: Occupant) -> "NodeRoom":
        """Return it without one such pod, which must be there."""
        return NodeRoom(
            self.node,
            take_off(pod.shape.requests, self.taken),
            _without(self.taken_ports, pod.shape.host_ports),
            _without(self.pods, (pod,)),
            _without(self.repelling, (pod,)) if repels(pod) else self.repelling,
        )


def repels(pod: Occupant) -> bool:
    """Whether it has required anti-affinity."""
    relations = pod.shape.relations
    return relations is not None and bool(relations.anti_affinity)


def _without(these: tuple[T, ...], gone: Iterable[T]) -> tuple[T, ...]:
    rest = list(these)
    for one in gone:
        rest.remove(one)
    return tuple(rest)
