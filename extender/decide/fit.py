"""Whether a pod fits on a node as far as the node alone decides, and if not, why.

kube-scheduler's default filters in its order, NodeUnschedulable, TaintToleration, NodeAffinity, NodePorts,
NodeResourcesFit and those of volumes (`volumes`): the first that says no gives the reasons. Mirrors the plugins of
those names; NodeName needs none, since nobody asks for a pod that names its node. What depends on other pods is asked
afterwards, in `neighbourhood`. Not modelled are resources that a scheduler is told to ignore; what else is not, a pod's
shape says.

The planner asks this thousands of times per decision: nothing is allocated for a pod that fits.
"""

from msgspec import structs

from extender.decide.devices import are_still_free, fit_cards
from extender.decide.selectors import selects_node
from extender.decide.volumes import reach_volumes
from extender.model.node import Node, NodeRoom, Taint
from extender.model.pod import HostPort, Occupant, PodShape, Toleration
from extender.model.verdict import AffinityMismatch, Cordoned, Insufficient, PortsTaken, Reason, UntoleratedTaint

_UNSCHEDULABLE = Taint("node.kubernetes.io/unschedulable", "", "NoSchedule")
"""What a pod tolerates that may go to a cordoned node."""
MOST_SHORTFALLS = 32
"""So many resources that are short are told of a node: a pod may ask for thousands, on thousands of nodes."""
_KEEPS_OFF = ("NoSchedule", "NoExecute")
_ANY_IP = HostPort(0).ip


def fit_node(shape: PodShape, room: NodeRoom) -> tuple[Reason, ...]:
    """Return why a pod of this shape does not fit on the node; empty if it does."""
    return _fit_labels(shape, room.node) or fit_room(shape, room) or reach_volumes(shape.volumes, room.node)


def fit_static(shape: PodShape, node: Node) -> tuple[Reason, ...]:
    """Return why the node is not for such pods, however empty; empty if it is."""
    return _fit_labels(shape, node) or reach_volumes(shape.volumes, node)


def _fit_labels(shape: PodShape, node: Node) -> tuple[Reason, ...]:
    if node.unschedulable and not _is_tolerated(_UNSCHEDULABLE, shape.tolerations):
        return (Cordoned(),)
    taint = untolerated_taint(shape, node)
    if taint is not None:
        return (UntoleratedTaint(taint),)
    if (shape.node_selector or shape.required_terms is not None) and not selects_node(shape, node):
        return (AffinityMismatch(),)
    return ()


def untolerated_taint(shape: PodShape, node: Node) -> Taint | None:
    """Return the first taint that keeps such pods off the node."""
    for taint in node.taints:
        if taint.effect in _KEEPS_OFF and not _is_tolerated(taint, shape.tolerations):
            return taint
    return None


def fit_room(shape: PodShape, room: NodeRoom) -> tuple[Reason, ...]:
    """Return why what is free on the node does not do: the ports, the cards, or each resource that is short."""
    for port in shape.host_ports:
        for taken_port in room.taken_ports:
            if _conflict(port, taken_port):
                return (PortsTaken(),)
    allocatable, taken = room.node.allocatable, room.taken
    for resource, amount in shape.requests:
        if amount > allocatable.get(resource, 0) - taken.get(resource, 0):
            return _shortfalls(shape, room)
    return () if shape.cards is None else fit_cards(shape.cards, room)


def fits_back(pod: Occupant, room: NodeRoom) -> bool:
    """Whether a pod that ran there finds its room again, on the cards that it has."""
    return not fit_room(structs.replace(pod.shape, cards=None), room) and are_still_free(pod, room)


def _shortfalls(shape: PodShape, room: NodeRoom) -> tuple[Reason, ...]:
    shortfalls = []
    for resource, amount in shape.requests:
        free = room.node.allocatable.get(resource, 0) - room.taken.get(resource, 0)
        if amount > free:
            shortfalls.append(Insufficient(resource, amount, free))
            if len(shortfalls) == MOST_SHORTFALLS:
                break
    return tuple(shortfalls)


def _conflict(port: HostPort, other: HostPort) -> bool:
    if port.port != other.port or port.protocol != other.protocol:
        return False
    return port.ip == other.ip or _ANY_IP in (port.ip, other.ip)


def _is_tolerated(taint: Taint, tolerations: tuple[Toleration, ...]) -> bool:
    for toleration in tolerations:  # noqa: SIM110 - any() would make a generator per call
        if _tolerates(toleration, taint):
            return True
    return False


def _tolerates(toleration: Toleration, taint: Taint) -> bool:
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    match toleration.operator:
        case "Exists":
            return True
        case "Equal" | "":
            return toleration.value == taint.value
        case _:
            return False
