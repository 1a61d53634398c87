"""Which sorted rank does a gang's member get, and what is it told of its seat?

Sorted ranks count the members of a role by seat, so that consecutive ones are neighbours. They are given out when the
first of them is bound, to all that hold room by then; a rank is free again when who had it is gone.
"""

from collections.abc import Mapping, Sequence
from itertools import count

from extender.decide.packing import LEADER_ROLES
from extender.decide.ranks import number_of, order_of_seats
from extender.model.claim import solo_pod
from extender.model.pod import Pod
from extender.state.cluster import Cluster, key_of
from extender.state.reservations import Slot
from extender.wire.seat_annotations import seat_annotations


def tell_seat(cluster: Cluster, pod: Pod, node: str) -> Mapping[str, str]:
    """Return what is written on a member that is bound to the node; nothing for other pods."""
    key, slot = key_of(pod), cluster.reservations.slot_of(pod.uid)
    if key is None or slot is None or slot.node != node or solo_pod(key):
        return {}
    slots = [each for each in cluster.reservations.slots_of(key) if each.holder in cluster.pods]
    gang = cluster.gangs.get(key)
    _give_ranks(pod.role, slots, gang.bound if gang else (), cluster)
    return seat_annotations(slot.sorted_rank or 0, cluster.network.topology.whereabouts(node))


def _give_ranks(role: str, slots: Sequence[Slot], bound: Sequence[Pod], cluster: Cluster) -> None:
    seats = [(pod.role, pod.node_name) for pod in bound] + [(slot.role, slot.node) for slot in slots]
    leaders = [node for role, node in seats if role in LEADER_ROLES]
    order = order_of_seats([node for _, node in seats], leaders, cluster.network.topology)
    mine = [slot for slot in slots if slot.role == role]
    taken = {slot.sorted_rank for slot in mine} | {pod.sorted_rank for pod in bound if pod.role == role}
    free = (rank for rank in count() if rank not in taken)
    without = [slot for slot in mine if slot.sorted_rank is None]
    without.sort(key=lambda slot: (order(slot.node), number_of(cluster.pods[slot.holder]), slot.holder))
    for slot, rank in zip(without, free, strict=False):
        slot.sorted_rank = rank
