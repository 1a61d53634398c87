"""What if these pods were placed: an overlay on a snapshot, with undo.

Nothing here touches the live state; a trial that is not wanted is simply dropped.
"""

from collections.abc import Collection, Iterator

from msgspec import structs

from extender.decide.columns import columns_of
from extender.decide.devices import choose_cards
from extender.decide.fit import fit_node
from extender.decide.neighbourhood import Neighbourhood
from extender.decide.room import capacity, capacity_on, wear_on
from extender.decide.wear import wear_of
from extender.model.node import NodeRoom, repels
from extender.model.pod import Occupant, PodShape
from extender.model.snapshot import Snapshot
from extender.model.topology import Topology
from extender.model.verdict import Placement, Reason


class Trial:
    """A snapshot on which pods can be placed and taken off again; `repels` says that some have anti-affinity."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self._changed: dict[str, NodeRoom] = {}
        self._undo: list[tuple[NodeRoom, Occupant, int]] = []
        self._neighbourhoods: dict[tuple[object, ...], Neighbourhood] = {}
        self.repels = bool(columns_of(snapshot).repelling)

    @property
    def topology(self) -> Topology:
        """Which nodes are near one another."""
        return self.snapshot.topology

    @property
    def touched(self) -> Collection[str]:
        """The nodes on which pods were placed, or from which some were taken, now or until it was undone."""
        return self._changed.keys()

    def room(self, node_name: str) -> NodeRoom:
        """Return the node with everything placed on it so far."""
        return self._changed.get(node_name) or self.snapshot.rooms[node_name]

    def fit(self, pod: Occupant, node_name: str) -> tuple[Reason, ...]:
        """Return why the pod does not fit on the node now; empty if it does."""
        room = self.room(node_name)
        reasons = fit_node(pod.shape, room)
        neighbourhood = None if reasons else self.neighbourhood(pod)
        relation = neighbourhood.why_not(room.node) if neighbourhood else None
        return (relation,) if relation else reasons

    def neighbourhood(self, pod: Occupant) -> Neighbourhood | None:
        """Return what other pods mean for the pod, kept up to date from now on; None where that is nothing."""
        if pod.shape.relations is None and not self.repels:
            return None
        key = pod.shape, pod.tags.namespace, frozenset(pod.tags.labels.items())
        known = self._neighbourhoods.get(key)
        if known is None:
            known = Neighbourhood(pod, self._rooms(), self.repelling(), self.snapshot.namespaces)
            self._neighbourhoods[key] = known
        return known

    def repelling(self) -> Iterator[NodeRoom]:
        """Yield the nodes that hold pods with required anti-affinity now."""
        return (room for room in self._rooms() if room.repelling) if self.repels else iter(())

    def capacity(self, shape: PodShape, node_name: str) -> int:
        """Return how many pods of the shape find room on the node; nothing but room is looked at."""
        changed = self._changed.get(node_name)
        return capacity(shape, changed) if changed else capacity_on(node_name, shape, self.snapshot)

    def wear(self, shape: PodShape, node_name: str, count: int) -> int:
        """Return what so many pods of the shape cost the node in whole cards; less is better."""
        if count == 1 and node_name not in self._changed:  # a single pod looks at every node
            return wear_on(node_name, shape, self.snapshot)
        return wear_of(shape, self.room(node_name), count)

    def place(self, pod: Occupant, node_name: str, count: int = 1) -> None:
        """Put `count` such pods on the node; whether they fit is the caller's question to `capacity` and `fit`.

        Cards are chosen for each that asks for some and has none, where they are ours to choose.
        """
        for done in range(count):
            room = self.room(node_name)
            cards = choose_cards(pod.shape.cards, room) if pod.shape.cards is not None and not pod.cards else ()
            if not cards:
                self._replace(room.having(pod, count - done), pod, count - done)
                return
            chosen = structs.replace(pod, cards=cards)
            self._replace(room.having(chosen), chosen, 1)

    def seat(self, placement: Placement) -> Placement:
        """Put a member where it is planned, on cards that are free now; return it with these."""
        self.place(structs.replace(placement.occupant, cards=()), placement.node)
        return structs.replace(placement, cards=self.room(placement.node).pods[-1].cards)

    def put_back(self, pod: Occupant, node_name: str) -> None:
        """Put a pod where it was, as it was: where nobody knows its cards, nobody does now."""
        self._replace(self.room(node_name).having(pod), pod, 1)

    def evict(self, pod: Occupant, node_name: str) -> None:
        """Take one such pod off the node, as a preemption would."""
        self._replace(self.room(node_name).without(pod), pod, -1)

    def as_snapshot(self) -> Snapshot:
        """Return the nodes with everything placed so far, for another trial to go on from."""
        rooms = {**self.snapshot.rooms, **self._changed}
        edition = self.snapshot.rooms_edition.after_trial(rooms, self._changed)
        return structs.replace(self.snapshot, rooms=rooms, edition=edition)

    def mark(self) -> int:
        """Return a point to which `undo` can go back."""
        return len(self._undo)

    def undo(self, mark: int) -> None:
        """Take back everything that was done after `mark`."""
        while len(self._undo) > mark:
            before, pod, count = self._undo.pop()
            self._changed[before.node.name] = before
            self._tell_neighbours(pod, before, -count)

    def _rooms(self) -> Iterator[NodeRoom]:
        return (self.room(name) for name in self.snapshot.rooms)

    def _replace(self, room: NodeRoom, pod: Occupant, count: int) -> None:
        name = room.node.name
        self._undo.append((self.room(name), pod, count))
        self._changed[name] = room
        self.repels = self.repels or repels(pod)
        self._tell_neighbours(pod, room, count)

    def _tell_neighbours(self, pod: Occupant, room: NodeRoom, count: int) -> None:
        for neighbourhood in self._neighbourhoods.values():
            neighbourhood.count(pod, room.node, count)
