"""Which sorted rank does a gang's member get, and what is it told of its seat?

Sorted ranks count the members of a role by seat, so that consecutive ones are neighbours. They are given out when the
first of them is bound, to all that hold room by then; who comes later gets the lowest that is free. A rank is free
again when the pod that had it is gone.
"""

from collections import Counter
from collections.abc import Mapping
from itertools import count

from cachetools import LRUCache

from extender.decide.leaders import LEADER_ROLES
from extender.decide.ranks import order_of_seats
from extender.model.claim import GangKey, solo_pod
from extender.model.gang import Gang
from extender.model.pod import Pod, PodUid
from extender.state.cluster import Cluster
from extender.state.membership import key_of
from extender.wire.seat_annotations import seat_annotations

UNDER_WAY = 1000
"""Gangs whose members are being bound at a time: afterwards, their ranks stand on the pods."""


class Seats:
    """Gives out the ranks, and remembers those that no watched pod has yet."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._given: LRUCache[GangKey, dict[PodUid, int]] = LRUCache(UNDER_WAY)

    def tell(self, pod: Pod, node: str) -> Mapping[str, str]:
        """Return what is written on a member that is bound to the node; nothing for other pods."""
        key = key_of(pod)
        gang = self._cluster.gangs.get(key) if key is not None else None
        if gang is None or solo_pod(gang.key):
            return {}
        known = self._given.get(gang.key, {})
        if pod.uid not in known:
            known = self._given[gang.key] = self._give(pod, node, gang, known)
        return seat_annotations(known[pod.uid], self._cluster.network.topology.whereabouts(node))

    def _give(self, pod: Pod, node: str, gang: Gang, known: Mapping[PodUid, int]) -> dict[PodUid, int]:
        """Return the ranks with those that this pod, and all of its role with room and without a rank, get now."""
        # 1. Where is everybody?
        pods, slots = self._cluster.pods, self._cluster.reservations.slots_of(gang.key)
        coming = {slot.holder: slot.node for slot in slots if slot.holder in pods} | {pod.uid: node}
        bound = [member for member in gang.bound if member.uid != pod.uid]
        seats = [(each.role, each.node_name) for each in bound]
        seats += [(pods[uid].role, at) for uid, at in coming.items()]
        leaders = [at for role, at in seats if role in LEADER_ROLES]
        on_node = Counter(at for _, at in seats)
        places = order_of_seats(on_node, leaders, self._cluster.network.topology)

        # 2. Which ranks are taken? Of a gang of which nobody runs yet, only by those who still have their seat.
        given = {uid: rank for uid, rank in known.items() if uid in coming or (bound and uid in pods)}
        taken = {each.sorted_rank for each in bound if each.role == pod.role}
        taken |= {rank for uid, rank in given.items() if pods[uid].role == pod.role}
        free = (rank for rank in count() if rank not in taken)

        # 3. Who gets the others?
        mine = [pods[uid] for uid in coming if uid not in given and pods[uid].role == pod.role]
        mine.sort(key=lambda each: (places[coming[each.uid]], each.number, each.name))
        return given | {each.uid: rank for each, rank in zip(mine, free, strict=False)}
