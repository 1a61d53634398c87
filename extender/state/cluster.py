"""The cluster as the API server tells it: nodes, pods, what declares gangs, and what is taken of each node.

One writer, the event loop: the watches and the verbs call in, nobody waits, nothing is locked. Everything here but
the reservations is rebuilt from the API server alone. A pod, left to right (deletion ends it anywhere):

    unknown --ADDED, or filter asks first--> unbound --nodeName--> bound --deletionTimestamp--> terminating --> gone
                                                                     |                             ^
                                                                     +--Succeeded, Failed--> finished

Bound and terminating pods occupy their node, finished ones do not.
"""

from collections.abc import Collection, Iterable, Mapping

from cachetools import LRUCache
from msgspec import structs

from extender.decide.devices import overdrawn_cards, still_holds
from extender.decide.fit import fit_static
from extender.decide.trial import Trial
from extender.model.claim import GangClaim, GangKey, JobKey, followers_key
from extender.model.device import amounts_of
from extender.model.job import TrainingJob
from extender.model.namespace import Namespace
from extender.model.node import Node, NodeRoom
from extender.model.pod import Occupant, Pod, PodUid, Seniority
from extender.model.pod_group import PodGroup
from extender.model.snapshot import Snapshot
from extender.model.topology import Level
from extender.model.volume import PersistentVolume, VolumeClaim
from extender.state.budgets import Budgets
from extender.state.changes import Changes
from extender.state.devices import Devices
from extender.state.earmarks import Earmark, Earmarks
from extender.state.gangs import GangIndex
from extender.state.ledger import Ledger
from extender.state.membership import as_member, key_of
from extender.state.network import Network
from extender.state.occupants import Occupants
from extender.state.reservations import Reservations, Slot, Stage
from extender.state.undecided import Undecided
from extender.state.volumes import VolumeIndex

REMEMBERED_DELETIONS = 100_000
"""A filter call may come after its pod's deletion was watched; a pod in this many is never taken for a new one. About
20 MB when full, and hours of deletions in a large cluster, where minutes would do."""

REMEMBERED_TABLES = 64
"""What was worked out for the shapes that are asked about again and again, four for one that asks for cards. Each takes
1 MB on 5,000 nodes."""


class Cluster:
    """The state; see the module. Methods named after watch events may be called again with the same object."""

    def __init__(
        self, scheduler_names: Collection[str], *, derive_gangs: bool = True, levels: tuple[Level, ...] = ()
    ) -> None:
        self._derives_for = frozenset(scheduler_names if derive_gangs else ())
        self.changes = Changes()
        self.gangs = GangIndex(scheduler_names, levels)
        self.pods: dict[PodUid, Pod] = {}
        self.budgets = Budgets()
        self._ledger = Ledger()
        self.network = Network(levels, self._ledger)
        self.reservations = Reservations(self._ledger, self.changes)
        self.earmarks = Earmarks()
        self.occupants = Occupants()
        self.undecided = Undecided()
        self._deleted: LRUCache[PodUid, bool] = LRUCache(REMEMBERED_DELETIONS)
        self._seeking: set[PodUid] = set()
        """Unbound members that ask something of other pods: a pod more may let them in."""
        self.devices = Devices(self.upsert_node)
        self._volumes = VolumeIndex()
        self._namespaces: dict[str, Mapping[str, str]] = {}
        self._snapshot = Snapshot(0, {}, remembered=LRUCache(REMEMBERED_TABLES))
        self._reduced: tuple[tuple[object, ...], Snapshot] = (), self._snapshot

    def snapshot(self) -> Snapshot:
        """Return the nodes with what is taken now; it stays as it is while the state goes on."""
        if self._snapshot.generation != self._ledger.generation:
            edition, known, topology = self._ledger.edition(), self._snapshot.remembered, self.network.topology
            self._snapshot = Snapshot(edition.generation, edition.rooms, self._namespaces, known, topology, edition)
        return self._snapshot

    def snapshot_for(self, seniority: Seniority, key: GangKey | None = None) -> Snapshot:
        """Return the nodes as a pod, or the gang `key`, may use them: without what is kept for those before it."""
        earmarks = self.earmarks.before(seniority, key)
        if not earmarks:
            return self.snapshot()
        wanted = (self._ledger.generation, self.earmarks.generation, *(min(each.keys) for each in earmarks))
        if self._reduced[0] != wanted:
            trial = Trial(self.snapshot())
            for placement in [placement for each in earmarks for placement in self.reservations.without_room(each)]:
                if placement.node in self._ledger.rooms:
                    trial.place(placement.occupant, placement.node)
            self._reduced = wanted, trial.as_snapshot()
        return self._reduced[1]

    @property
    def generation(self) -> int:
        """The generation of the snapshot, which is not made for it."""
        return self._ledger.generation

    @property
    def node_count(self) -> int:
        """How many nodes there are."""
        return len(self._ledger.rooms)

    @property
    def repels(self) -> bool:
        """Whether any node holds pods with required anti-affinity."""
        return self._ledger.repels

    def room_of(self, node_name: str) -> NodeRoom | None:
        """Return a node with what is taken now."""
        return self._ledger.rooms.get(node_name)

    @property
    def nodes_generation(self) -> int:
        """Grows with each change of a node itself, whoever is on it."""
        return self._ledger.nodes_generation

    def earmark_of(self, pod: Pod) -> Earmark | None:
        """Return what is kept for the pod's gang."""
        key = key_of(pod)
        return self.earmarks.get(key) if key is not None else None

    def victims_of(self, pod: Pod) -> list[Pod]:
        """Return those who are still to be killed for a gang's member, as its gang's plan has it."""
        earmark = self.earmark_of(pod)
        victims = [self.pods.get(uid) for uid in (earmark.parts.get(pod.uid, ()) if earmark else ())]
        return [each for each in victims if each is not None and each.occupies_node and not each.terminating]

    def node_to_try(self, pod: Pod) -> str:
        """Return where kube-scheduler is to try a pod that it does not know to have room there; empty for nowhere."""
        slot = self.reservations.slot_of(pod.uid)
        if slot is not None:
            return slot.node if slot.stage is Stage.PLANNED else ""
        victims = self.victims_of(pod)
        return victims[0].node_name if victims else ""

    def replace_nodes(self, nodes: Iterable[Node]) -> None:
        """Take a full list of nodes: those that are not in it are gone."""
        listed = {node.name: node for node in nodes}
        for name in [name for name in self._ledger.rooms if name not in listed]:
            self.remove_node(name)
        for node in listed.values():
            self.upsert_node(node)

    def upsert_node(self, node: Node) -> None:
        """Add or change a node; room that was planned there is planned anew where it may not be used any more."""
        node = self.devices.put_node(node)
        is_moved = self.network.is_moved(node)
        if self._ledger.put_node(node):
            self.reservations.end_on_node(node.name, lambda slot: _is_kept_off(slot, node, is_moved=is_moved))
            room = self._ledger.rooms[node.name]
            self.reservations.end_on_node(node.name, lambda slot: not still_holds(slot.shape, slot.cards, room))
            self.changes.free_room()

    def remove_node(self, name: str) -> None:
        """Forget a node; room that was planned there is planned anew."""
        self.devices.drop_node(name)
        self._ledger.drop_node(name)
        self.reservations.end_on_node(name, lambda _: True)

    def replace_namespaces(self, namespaces: Iterable[Namespace]) -> None:
        """Take a full list of namespaces."""
        self._relabel({namespace.name: namespace.labels for namespace in namespaces})

    def upsert_namespace(self, namespace: Namespace) -> None:
        """Add or change a namespace."""
        self._relabel(self._namespaces | {namespace.name: namespace.labels})

    def remove_namespace(self, name: str) -> None:
        """Forget a namespace."""
        self._relabel({known: labels for known, labels in self._namespaces.items() if known != name})

    def replace_pods(self, pods: Iterable[Pod]) -> None:
        """Take a full list of pods: those that are not in it are gone."""
        listed = {pod.uid: pod for pod in pods}
        for uid in [uid for uid in self.pods if uid not in listed]:
            self.remove_pod(uid)
        for pod in listed.values():
            self.upsert_pod(pod)

    def upsert_pod(self, pod: Pod) -> None:
        """Add or change a pod."""
        pod = as_member(pod, self.gangs, self._derives_for)
        before = self.pods.get(pod.uid)
        pod = structs.replace(pod, shape=self._volumes.shape_of(pod, before)) if pod.claims else pod
        if before == pod:
            return
        self._volumes.put(pod)
        slot = self.reservations.slot_of(pod.uid)
        if pod.node_name or pod.finished:
            self.undecided.settle(pod.uid)
        elif slot is None or not pod.nominated_node:
            self.undecided.nominated(pod.uid, pod.nominated_node)
        self._charge(before, pod)
        if slot is not None and before is not None and before.shape != pod.shape:
            self._end_where_it_may_not_go(pod, slot)
        self.occupants.change(before, pod)
        self.pods[pod.uid] = pod
        self._note_company(before, pod)
        if before is not None and key_of(before) != key_of(pod):
            self._change_gang(before, pod, slot)
        self.gangs.put(pod)
        if pod.shape.cards is not None:
            self.changes.wake()  # it may be another one's turn
        if (key := key_of(pod)) is not None:
            self.changes.touch(key)
            if before is None or _planning_view(before) != _planning_view(pod):
                self._note_member(pod, key, slot)
        elif pod.held:
            self.changes.stray(pod.uid)

    def learn_pod(self, pod: Pod) -> Pod:
        """Return the pod that kube-scheduler asks about as it is known here; it may be ahead of our watch.

        A pod that was deleted already is returned as it is asked about, and not taken up.
        """
        if pod.uid not in self.pods and pod.uid not in self._deleted:
            self.upsert_pod(pod)
        return self.pods.get(pod.uid) or as_member(pod, self.gangs, self._derives_for)

    def was_deleted(self, uid: PodUid) -> bool:
        """Whether the pod was here and is gone."""
        return uid in self._deleted

    def remove_pod(self, uid: PodUid) -> None:
        """Forget a pod that is gone."""
        self._deleted[uid] = True
        self.undecided.settle(uid)
        pod = self.pods.pop(uid, None)
        if pod is None:
            return
        self.occupants.change(pod, None)
        self.changes.lose(uid)
        self._seeking.discard(uid)
        slot = self.reservations.leave(uid)
        if pod.occupies_node:
            self._ledger.discharge(pod.node_name, pod.occupant)
        if pod.occupies_node or slot is not None:
            self.changes.free_room()
        self.gangs.drop(pod)
        self._volumes.drop(pod)
        if (key := key_of(pod)) is not None:
            self.changes.plan(key)

    def replace_pod_groups(self, api: str, groups: Iterable[PodGroup]) -> None:
        """Take a full list of one API group's PodGroups: those that are not in it are gone."""
        listed = {group.key: group for group in groups}
        for key in self.gangs.pod_group_keys(api):
            if key not in listed:
                self.remove_pod_group(api, key)
        for group in listed.values():
            self.upsert_pod_group(group)

    def upsert_pod_group(self, group: PodGroup) -> None:
        """Add or change a PodGroup."""
        self._declared_anew(self.gangs.put_pod_group(group))
        self.changes.touch(group.key)  # it may need a status, with and without members

    def remove_pod_group(self, api: str, key: GangKey) -> None:
        """Forget a PodGroup that is gone."""
        self._declared_anew(self.gangs.drop_pod_group(api, key))

    def replace_jobs(self, kind: str, jobs: Iterable[TrainingJob]) -> None:
        """Take a full list of one kind's jobs: those that are not in it are gone."""
        listed = {job.key: job for job in jobs}
        for key in self.gangs.job_keys(kind.lower()):
            if key not in listed:
                self.remove_job(key)
        for job in listed.values():
            self.upsert_job(job)

    def upsert_job(self, job: TrainingJob) -> None:
        """Add or change a job."""
        self._declared_anew(self.gangs.put_job(job))
        for key in self.gangs.pod_groups_of_job(job.key):
            self.changes.touch(key)

    def remove_job(self, key: JobKey) -> None:
        """Forget a job that is gone, and the room for what it would have made."""
        self.reservations.end_up_to(followers_key(key), Stage.PLANNED)
        self._declared_anew(self.gangs.drop_job(key))

    def replace_claims(self, claims: Iterable[VolumeClaim]) -> None:
        """Take a full list of PersistentVolumeClaims."""
        self._bound_anew(self._volumes.replace_claims(claims))

    def upsert_claim(self, claim: VolumeClaim) -> None:
        """Add or change a PersistentVolumeClaim."""
        self._bound_anew(self._volumes.put_claim(claim))

    def remove_claim(self, key: str) -> None:
        """Forget a PersistentVolumeClaim."""
        self._bound_anew(self._volumes.drop_claim(key))

    def replace_volumes(self, volumes: Iterable[PersistentVolume]) -> None:
        """Take a full list of PersistentVolumes."""
        self._bound_anew(self._volumes.replace_volumes(volumes))

    def upsert_volume(self, volume: PersistentVolume) -> None:
        """Add or change a PersistentVolume."""
        self._bound_anew(self._volumes.put_volume(volume))

    def remove_volume(self, name: str) -> None:
        """Forget a PersistentVolume."""
        self._bound_anew(self._volumes.drop_volume(name))

    def _bound_anew(self, uids: Iterable[PodUid]) -> None:
        """Look again at what these pods' volumes ask."""
        for uid in uids:
            self.upsert_pod(self.pods[uid])

    def _end_where_it_may_not_go(self, pod: Pod, slot: Slot) -> None:
        """Give back room of a pod that asks for something else now, which the node is not for.

        Only what is planned: later, kube-scheduler has chosen the node itself, and may be having volumes made there.
        """
        room = self._ledger.rooms.get(slot.node)
        if slot.stage is Stage.PLANNED and room is not None and fit_static(pod.shape, room.node):
            self.reservations.leave(pod.uid)
            self.changes.free_room()

    def _declared_anew(self, keys: Iterable[GangKey]) -> None:
        for key in keys:
            self.changes.plan(key)

    def _relabel(self, namespaces: dict[str, Mapping[str, str]]) -> None:
        """Take new labels; a change may let pods in that select pods by their namespace."""
        if namespaces != self._namespaces:
            self._namespaces = namespaces
            self._ledger.generation += 1
            self.changes.free_room()

    def _charge(self, before: Pod | None, pod: Pod) -> None:
        """Pass room from the slot to the bound pod, and from a finished pod back to its node."""
        held: tuple[str, Occupant] | None = None
        if before is not None and before.occupies_node:
            held = before.node_name, before.occupant
            self._ledger.discharge(*held)
        if pod.node_name or pod.terminating or pod.finished:
            slot = self.reservations.leave(pod.uid)
            held = (slot.node, slot.occupant) if slot else held
        if pod.occupies_node:
            self._ledger.charge(pod.node_name, pod.occupant)
            self._end_on_overdrawn_cards(pod.node_name)
        now = pod.node_name, pod.shape, amounts_of(pod.cards)
        stays = held is not None and pod.occupies_node and (held[0], held[1].shape, amounts_of(held[1].cards)) == now
        if held is not None and not (stays and (before is None or before.labels == pod.labels)):
            self.changes.free_room()

    def _end_on_overdrawn_cards(self, node_name: str) -> None:
        """Give back what is held on cards that somebody took whom we did not place."""
        room = self._ledger.rooms.get(node_name)
        if room is not None and room.taken_cards and (room.unknown_cards or overdrawn_cards(room)):
            self.reservations.end_on_node(node_name, lambda slot: not still_holds(slot.shape, slot.cards, room))

    def _note_company(self, before: Pod | None, pod: Pod) -> None:
        if pod.shape.relations and isinstance(pod.gang, GangClaim) and not pod.node_name:
            self._seeking.add(pod.uid)
        else:
            self._seeking.discard(pod.uid)
        if self._seeking and pod.occupies_node and not (before and before.occupies_node):
            self.changes.free_room()

    def _change_gang(self, before: Pod, pod: Pod, slot: Slot | None) -> None:
        """Take a pod out of its former gang; a Binding that is being posted keeps its room until that has ended."""
        if slot is not None and slot.stage < Stage.BINDING:
            self.reservations.leave(pod.uid)
            self.changes.free_room()
        elif (key := key_of(pod)) is not None:
            self.reservations.pass_on(pod.uid, key)
        self.gangs.drop(before)
        if (former := key_of(before)) is not None:
            self.changes.plan(former)

    def _note_member(self, pod: Pod, key: GangKey, slot: Slot | None) -> None:
        """Let a new member into the room that waits for it; whatever else may change the gang's fate is planned."""
        for replaced in self.gangs.replaced_by(pod):
            self.reservations.vacate(replaced.uid)
        if self.gangs.is_waiting(pod) and self.reservations.let_in(pod, key):
            return
        if slot is None or not pod.occupies_node:  # from slot to node is what was planned
            self.changes.plan(key)


def _is_kept_off(slot: Slot, node: Node, *, is_moved: bool) -> bool:
    """Whether the slot's holder may not go to the node; from ACCEPTED on kube-scheduler has let it there itself."""
    return slot.stage is Stage.PLANNED and (is_moved or bool(fit_static(slot.shape, node)))


def _planning_view(pod: Pod) -> tuple[object, ...]:
    """Return what of a member may make its gang fit, or no longer whole."""
    return pod.gang, pod.gated, pod.shape, pod.node_name, pod.terminating, pod.finished, pod.scheduler_name
