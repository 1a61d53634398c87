"""What can be done for gangs that do not fit: whom may they preempt, or whose end do they wait for?

The answer is an earmark: where the members go, and who goes first. Preemption comes first; a gang that has waited long
enough gets the room of others as they end, so that smaller pods, of which one always fits, do not keep it waiting for
ever.
"""

from collections.abc import Collection, Iterable, Sequence

from msgspec import structs

from extender.decide.absent import expect_followers
from extender.decide.clearing import Clearance, Fits, clear_room, split_by_member
from extender.decide.preemption import leavers, victims_for
from extender.decide.room import nodes_with_room
from extender.decide.topology import is_torn
from extender.decide.trial import Trial
from extender.model.claim import GangKey, followers_key
from extender.model.gang import Gang
from extender.model.member import NOBODY
from extender.model.node import NodeRoom
from extender.model.pod import Pod, PodShape, PodUid, Seniority
from extender.model.snapshot import Snapshot
from extender.state.cluster import Cluster
from extender.state.earmarks import Earmark
from extender.state.membership import key_of

FIRST_NODES = 16
"""So many nodes, and one more for each member, are looked at first when nobody is to die: that nearly always does, and
a search over all pods of a large cluster takes a second."""


class Clearing:
    """Finds earmarks on one cluster state."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._bare: tuple[tuple[int, int], Snapshot] = (-1, -1), Snapshot(0, {})

    def find(self, gangs: Sequence[Gang], fits: Fits, until_s: float, *, may_wait: bool) -> Earmark | None:
        """Return where gangs that are bound together can go, and who must go for it; None where they cannot.

        With `may_wait` pods of any priority may be waited for.
        """
        needy = [gang for gang in gangs if not gang.satisfied]
        members = [pod for gang in needy for pod in gang.waiting]
        seniority = min(gang.seniority for gang in needy)
        keys = frozenset(gang.key for gang in gangs)
        someone_goes = may_wait or bool(self._cluster.occupants.terminating) or self._may_preempt(members)
        if not someone_goes and len(gangs) == 1:  # surplus members of one may have the room of another
            return None
        snapshot = self._once_terminated(self._cluster.snapshot_for(seniority, needy[0].key))
        shapes = [pod.shape for pod in members]
        shapes += [each.shape for gang in gangs for each in expect_followers(gang)]
        clearance = self._by_preemption(members, shapes, snapshot, fits, keys)
        parts = _parts(clearance, snapshot) if clearance else {}
        if NOBODY in parts:  # followers are not there to preempt for themselves
            clearance, parts = None, {}
        if clearance is None and may_wait:
            clearance = self._by_waiting(shapes, snapshot, fits, keys)
        if clearance is None:
            return None
        leaving = frozenset(pod.uid for pod in clearance.leaving)
        lacking = frozenset(gang.key for gang in needy)
        followers = frozenset(followers_key(gang.job) for gang in gangs if gang.followers)
        return Earmark(lacking, seniority, clearance.placements, leaving, until_s, parts, followers)

    def _may_preempt(self, members: Sequence[Pod]) -> bool:
        lowest = min(pod.priority for pod in members)
        return all(pod.preempts for pod in members) and self._cluster.occupants.has_below(lowest)

    def _by_preemption(
        self,
        members: Sequence[Pod],
        shapes: Sequence[PodShape],
        snapshot: Snapshot,
        fits: Fits,
        keys: Collection[GangKey],
    ) -> Clearance | None:
        """Look at nodes of the members only: nobody is killed for followers, who fit where there is room already."""
        useful = self._useful_nodes({pod.shape for pod in members}) if self._may_preempt(members) else ()
        others = self._others(useful, keys)
        victims = victims_for(members, others, self._cluster.budgets.values(), self._gangs_at_risk(others))
        return clear_room(fits, snapshot, victims, shapes)

    def _by_waiting(
        self, shapes: Sequence[PodShape], snapshot: Snapshot, fits: Fits, keys: Collection[GangKey]
    ) -> Clearance | None:
        """Look at the nodes with fewest pods first, and at all of them where these do not do."""
        nodes = sorted(self._useful_nodes(set(shapes)), key=lambda name: (self._cluster.occupants.count(name), name))
        for count in (FIRST_NODES + len(shapes), len(nodes)):
            others = self._others(nodes[:count], keys)
            clearance = clear_room(fits, snapshot, leavers(others, self._gangs_at_risk(others)), shapes)
            if clearance is not None or count >= len(nodes):
                return clearance
        return None

    def holds(self, earmark: Earmark, gangs: Sequence[Gang]) -> bool:
        """Whether enough members will still fit as it says, once those have gone that have not yet."""
        rooms = self._cluster.snapshot().rooms
        waiting = {pod.uid for gang in gangs for pod in gang.waiting}
        placed = {placement.uid for placement in earmark.placements if placement.uid != NOBODY}
        needy = {gang.key for gang in gangs if not gang.satisfied}
        if not needy <= earmark.keys <= {gang.key for gang in gangs} or not waiting >= placed:
            return False
        if not all(self._is_enough_for(gang, placed) and not self._is_torn(gang, earmark) for gang in gangs):
            return False
        trial = Trial(self.once_gone(earmark, gangs))
        for pod in [self._cluster.pods[uid] for uid in earmark.leaving if uid in self._cluster.pods]:
            if pod.occupies_node and not pod.terminating and pod.node_name in rooms:
                trial.evict(pod.occupant, pod.node_name)
        held = [self._cluster.reservations.slot_of(uid) for uid in placed]
        if any(slot and trial.room(slot.node).is_overcommitted for slot in held):  # by somebody whom we do not place
            return False
        for placement in self._cluster.reservations.without_room(earmark):
            if placement.node not in rooms or trial.fit(placement.occupant, placement.node):
                return False
            trial.seat(placement)
        return True

    def _is_enough_for(self, gang: Gang, placed: Collection[PodUid]) -> bool:
        """Whether the gang is whole once those are in place that are placed or hold room."""
        slot_of = self._cluster.reservations.slot_of
        return gang.satisfied or gang.is_enough([p.role for p in gang.waiting if p.uid in placed or slot_of(p.uid)])

    def _is_torn(self, gang: Gang, earmark: Earmark) -> bool:
        """Whether the gang would be in more domains of the network than it may be in."""
        slots = [self._cluster.reservations.slot_of(pod.uid) for pod in gang.waiting]
        nodes = {slot.node for slot in slots if slot is not None}
        moving = {pod.uid for pod, slot in zip(gang.waiting, slots, strict=True) if slot is None}
        nodes |= {placement.node for placement in earmark.placements if placement.uid in moving}
        return is_torn(gang, nodes, self._cluster.network.topology)

    def once_gone(self, earmark: Earmark, gangs: Sequence[Gang]) -> Snapshot:
        """Return the nodes as the gangs may use them once those pods have gone that are going already."""
        return self._once_terminated(self._cluster.snapshot_for(earmark.seniority, gangs[0].key))

    def bare(self) -> Snapshot:
        """Return the nodes with nothing on them but what is there as long as they are."""
        if self._bare[0] != self.bare_generation:
            rooms = {name: NodeRoom(room.node) for name, room in self._cluster.snapshot().rooms.items()}
            for pod in self._cluster.occupants.staying_on(rooms):
                rooms[pod.node_name] = rooms[pod.node_name].having(pod.occupant)
            self._bare = self.bare_generation, structs.replace(self._cluster.snapshot(), rooms=rooms)
        return self._bare[1]

    @property
    def bare_generation(self) -> tuple[int, int]:
        """What decides which room there is once everybody has gone who may: the nodes, and who stays on them."""
        return self._cluster.nodes_generation, self._cluster.occupants.staying_generation

    def once_all_gone(self, seniority: Seniority, key: GangKey) -> Snapshot:
        """Return the nodes as the gang may use them once everybody has gone who may, and nobody is on his way."""
        bare = self.bare()
        trial = Trial(bare)
        for earmark in self._cluster.earmarks.before(seniority, key):
            for placement in earmark.placements:
                if placement.node in bare.rooms:
                    trial.place(placement.occupant, placement.node)
        return trial.as_snapshot()

    def _once_terminated(self, snapshot: Snapshot) -> Snapshot:
        going = [pod for pod in self._cluster.occupants.terminating.values() if pod.node_name in snapshot.rooms]
        if not going:
            return snapshot
        trial = Trial(snapshot)
        for pod in going:
            trial.evict(pod.occupant, pod.node_name)
        return trial.as_snapshot()

    def _useful_nodes(self, shapes: Collection[PodShape]) -> set[str]:
        """Return the nodes that would take a pod of one of the shapes if it were alone there."""
        return set().union(*(nodes_with_room(shape, self.bare()) for shape in shapes))

    def _others(self, nodes: Iterable[str], keys: Collection[GangKey]) -> list[Pod]:
        """Return the pods of others on these nodes that may go."""
        return [pod for pod in self._cluster.occupants.on(nodes) if key_of(pod) not in keys]

    def _gangs_at_risk(self, pods: Sequence[Pod]) -> dict[PodUid, int]:
        """Return by pod, from 1, the gangs that run and would not without it; those with most of these pods first."""
        breaks: dict[tuple[GangKey, str], bool] = {}
        by_gang: dict[GangKey, list[PodUid]] = {}
        for pod in pods:
            key = key_of(pod)
            gang = self._cluster.gangs.get(key) if key is not None else None
            if key is not None and gang is not None:
                if (key, pod.role) not in breaks:
                    breaks[key, pod.role] = gang.breaks_without({pod.uid})
                if breaks[key, pod.role]:
                    by_gang.setdefault(key, []).append(pod.uid)
        ordered = sorted(by_gang, key=lambda key: (-len(by_gang[key]), key))
        return {uid: number for number, key in enumerate(ordered, start=1) for uid in by_gang[key]}


def _parts(clearance: Clearance, snapshot: Snapshot) -> dict[str, tuple[str, ...]]:
    return {
        placement.uid: tuple(pod.uid for pod in pods)
        for placement, pods in split_by_member(clearance, snapshot)
        if pods
    }
