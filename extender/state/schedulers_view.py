"""What does kube-scheduler know that we do not, and what do we know that it does not?"""

from extender.decide.fit import fit_node, fit_room
from extender.decide.trial import Trial
from extender.model.node import NodeRoom
from extender.model.pod import Pod, PodShape
from extender.model.verdict import Insufficient, PortsTaken, Reason
from extender.state.cluster import Cluster
from extender.state.reservations import Slot, Stage


def without_planned(cluster: Cluster) -> Trial:
    """Return the cluster as kube-scheduler knows it: it does not know of room that is only planned."""
    trial = Trial(cluster.snapshot())
    for reservation in cluster.reservations:
        for slot in reservation.slots:
            if slot.stage is Stage.PLANNED:
                trial.evict(slot.occupant, slot.node)
    return trial


def agrees_to(seen: Trial, pod: Pod, slot: Slot) -> bool:
    """Whether kube-scheduler, to which the cluster is as `seen`, can put the pod on its slot's node."""
    before = seen.mark()
    if slot.stage is not Stage.PLANNED:
        seen.evict(slot.occupant, slot.node)
    agrees = not seen.fit(pod.occupant, slot.node)
    seen.undo(before)
    return agrees


def waits_for_siblings(cluster: Cluster, pod: Pod, slot: Slot) -> bool:
    """Whether kube-scheduler cannot agree to the pod's planned node before it has placed other members."""
    return pod.shape.relations is not None and not agrees_to(without_planned(cluster), pod, slot)


def is_undisputed(cluster: Cluster, slot: Slot) -> bool:
    """Whether the slot's holder may be put there without asking kube-scheduler, which knows nothing that we do not.

    Not where its own filters know more (volumes, devices), where pods mean something to one another, which changes with
    each that is placed, or where it may just have put a pod of which we do not know yet.
    """
    pod, room = cluster.pods.get(slot.holder), cluster.room_of(slot.node)
    if pod is None or pod.claims or pod.shape.is_provisional or pod.shape.relations or cluster.repels:
        return False
    if room is None or cluster.undecided.may_matter_on(slot.node):
        return False
    return not fit_node(pod.shape, room.without(slot.occupant))  # it may ask for something else since it was planned


def find_overlap(cluster: Cluster, pod: Pod, node: str) -> tuple[Reason, ...]:
    """Return why there is no room on the node for a pod that kube-scheduler has put there, and that holds none of ours.

    Counted are those who are bound, being bound, or let through to the node: once kube-scheduler knows of them it tries
    the node no more, so nobody is turned away for good. Not so room that is only planned, of which it never knows.
    """
    room = cluster.room_of(node)
    if room is None or pod.node_name:
        return ()
    for uid, occupant in cluster.undecided.on_their_way_to(node):
        if uid != pod.uid and cluster.reservations.slot_of(uid) is None:
            room = room.having(occupant)
    if not _refused_by_kubelet(pod.shape, room):
        return ()
    for reservation in cluster.reservations:
        for slot in reservation.slots:
            if slot.node == node and slot.stage is Stage.PLANNED:
                room = room.without(slot.occupant)
    return _refused_by_kubelet(pod.shape, room)


def _refused_by_kubelet(shape: PodShape, room: NodeRoom) -> tuple[Reason, ...]:
    """Return which ports are taken, or of what the node has too little left.

    Not of what it has nothing: kube-scheduler may have been told to ignore it, or find it elsewhere (device claims).
    """
    reasons = fit_room(shape, room)
    has = room.node.allocatable
    return tuple(
        each
        for each in reasons
        if isinstance(each, PortsTaken) or (isinstance(each, Insufficient) and has.get(each.resource))
    )
