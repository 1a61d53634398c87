"""What does kube-scheduler know that we do not, and what do we know that it does not?"""

from extender.decide.fit import fit_node
from extender.decide.trial import Trial
from extender.model.pod import Pod
from extender.state.cluster import Cluster
from extender.state.reservations import Slot, Stage


def without_planned(cluster: Cluster, asked_for: Slot | None = None) -> Trial:
    """Return the cluster as kube-scheduler knows it, without the pod that it asks for."""
    trial = Trial(cluster.snapshot())
    for reservation in cluster.reservations:
        for slot in reservation.slots:
            if slot is asked_for or slot.stage is Stage.PLANNED:
                trial.evict(slot.occupant, slot.node)
    return trial


def waits_for_siblings(cluster: Cluster, pod: Pod, slot: Slot) -> bool:
    """Whether kube-scheduler cannot agree to the pod's planned node before it has placed other members.

    It does not know of room that is only planned, nor of the pod that it asks about.
    """
    return pod.shape.relations is not None and bool(without_planned(cluster, slot).fit(pod.occupant, slot.node))


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
