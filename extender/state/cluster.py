"""The cluster as the API server tells it: nodes, pods, gangs, and what is taken of each node.

One writer, the event loop: the watches and the verbs call in, nobody waits, nothing is locked. Everything here but
the reservations is rebuilt from the API server alone. A pod, left to right (deletion ends it anywhere):

    unknown --ADDED, or filter asks first--> unbound --nodeName--> bound --deletionTimestamp--> terminating --> gone
                                                                     |                             ^
                                                                     +--Succeeded, Failed--> finished

Bound and terminating pods occupy their node, finished ones do not.
"""

from collections.abc import Collection, Iterable, Mapping

from cachetools import LRUCache

from extender.decide.trial import Trial
from extender.model.claim import GangClaim, GangKey
from extender.model.namespace import Namespace
from extender.model.node import Node
from extender.model.pod import Pod, PodUid
from extender.model.snapshot import Snapshot
from extender.state.changes import Changes
from extender.state.gangs import GangIndex
from extender.state.ledger import Ledger
from extender.state.reservations import Reservations, Slot, Stage

REMEMBERED_DELETIONS = 100_000
"""A filter call may come after its pod's deletion was watched; a pod in this many is never taken for a new one. About
20 MB when full, and hours of deletions in a large cluster, where minutes would do."""


class Cluster:
    """The state; see the module. Methods named after watch events may be called again with the same object."""

    def __init__(self, scheduler_names: Collection[str]) -> None:
        self.changes = Changes()
        self.gangs = GangIndex(scheduler_names)
        self.pods: dict[PodUid, Pod] = {}
        self._ledger = Ledger()
        self.reservations = Reservations(self._ledger, self.changes)
        self._deleted: LRUCache[PodUid, bool] = LRUCache(REMEMBERED_DELETIONS)
        self._seeking: set[PodUid] = set()
        """Unbound members that ask something of other pods: a pod more may let them in."""
        self._namespaces: dict[str, Mapping[str, str]] = {}
        self._snapshot = Snapshot(0, {})

    def snapshot(self) -> Snapshot:
        """Return the nodes with what is taken now; it stays as it is while the state goes on."""
        if self._snapshot.generation != self._ledger.generation:
            self._snapshot = Snapshot(self._ledger.generation, dict(self._ledger.rooms), self._namespaces)
        return self._snapshot

    def waits_for_siblings(self, pod: Pod, slot: Slot) -> bool:
        """Whether kube-scheduler cannot agree to the pod's planned node before it has placed other members.

        It does not know of room that is only planned, nor of the pod that it asks about.
        """
        if pod.shape.relations is None:
            return False
        trial = Trial(self.snapshot())
        for reservation in self.reservations:
            for held in reservation.slots:
                if held is slot or held.stage is Stage.PLANNED:
                    trial.evict(held.occupant, held.node)
        return bool(trial.fit(pod.occupant, slot.node))

    def replace_nodes(self, nodes: Iterable[Node]) -> None:
        """Take a full list of nodes: those that are not in it are gone."""
        listed = {node.name: node for node in nodes}
        for name in [name for name in self._ledger.rooms if name not in listed]:
            self.remove_node(name)
        for node in listed.values():
            self.upsert_node(node)

    def upsert_node(self, node: Node) -> None:
        """Add or change a node."""
        if self._ledger.put_node(node):
            self.changes.free_room()

    def remove_node(self, name: str) -> None:
        """Forget a node; room that was planned there is planned anew."""
        self._ledger.drop_node(name)
        self.reservations.end_on_node(name)

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
        before = self.pods.get(pod.uid)
        if before == pod:
            return
        if before is not None:
            self._settle(before, pod)
        elif pod.occupies_node:
            self._ledger.charge(pod.node_name, pod.occupant)
        self.pods[pod.uid] = pod
        self._note_company(before, pod)
        self._note_member(before, pod)

    def learn_pod(self, pod: Pod) -> Pod:
        """Return what is known of a pod that kube-scheduler asks about; it may be ahead of our watch."""
        if pod.uid not in self.pods and pod.uid not in self._deleted:
            self.upsert_pod(pod)
        return self.pods.get(pod.uid, pod)

    def remove_pod(self, uid: PodUid) -> None:
        """Forget a pod that is gone."""
        self._deleted[uid] = True
        pod = self.pods.pop(uid, None)
        if pod is None:
            return
        self.changes.lose(uid)
        self._seeking.discard(uid)
        slot = self.reservations.leave(pod)
        if pod.occupies_node:
            self._ledger.discharge(pod.node_name, pod.occupant)
        if pod.occupies_node or slot is not None:
            self.changes.free_room()
        self.gangs.drop(pod)
        if isinstance(pod.gang, GangClaim):
            self.changes.plan(pod.gang.key)

    def _relabel(self, namespaces: dict[str, Mapping[str, str]]) -> None:
        """Take new labels; a change may let pods in that select pods by their namespace."""
        if namespaces != self._namespaces:
            self._namespaces = namespaces
            self._ledger.generation += 1
            self.changes.free_room()

    def _settle(self, before: Pod, pod: Pod) -> None:
        """Pass room from the slot to the bound pod, and from a finished pod back to its node."""
        held_on = before.node_name if before.occupies_node else ""
        if before.occupies_node:
            self._ledger.discharge(before.node_name, before.occupant)
        if pod.node_name or pod.terminating or pod.finished:
            slot = self.reservations.leave(before)
            held_on = slot.node if slot else held_on
        if pod.occupies_node:
            self._ledger.charge(pod.node_name, pod.occupant)
        stays = (pod.occupies_node and held_on == pod.node_name) and before.shape == pod.shape
        if held_on and not (stays and before.labels == pod.labels):
            self.changes.free_room()

    def _note_company(self, before: Pod | None, pod: Pod) -> None:
        if pod.shape.relations and isinstance(pod.gang, GangClaim) and not pod.node_name:
            self._seeking.add(pod.uid)
        else:
            self._seeking.discard(pod.uid)
        if self._seeking and pod.occupies_node and not (before and before.occupies_node):
            self.changes.free_room()

    def _note_member(self, before: Pod | None, pod: Pod) -> None:
        if before is not None and before.gang != pod.gang:
            self.reservations.leave(before)
            self.gangs.drop(before)
        self.gangs.put(pod)
        if not isinstance(pod.gang, GangClaim):
            return
        self.changes.touch(pod.gang.key)
        if before is None or _planning_view(before) != _planning_view(pod):
            self._admit_member(pod, pod.gang.key)

    def _admit_member(self, pod: Pod, key: GangKey) -> None:
        joins = not (pod.node_name or pod.terminating or pod.finished)
        leaves = pod.terminating or pod.finished
        if leaves or (joins and self.reservations.let_in(pod) is None):
            self.changes.plan(key)


def _planning_view(pod: Pod) -> tuple[object, ...]:
    """Return what of a member may make its gang fit, or no longer whole."""
    return pod.gang, pod.gated, pod.shape, pod.terminating, pod.finished
