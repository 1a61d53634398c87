"""A node, and how much of it is taken."""

from collections.abc import Mapping

from msgspec import Struct

from extender.model.pod import HostPort
from extender.model.resources import Resources


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
    """A node with what its pods and the gangs' reservations take of it."""

    node: Node
    taken: Resources = {}
    taken_ports: tuple[HostPort, ...] = ()
