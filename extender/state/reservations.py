"""What room is held for which gang, and how far is each member?

A slot is room for one member on one node. Its life, left to right; every way out gives the room back or passes it to
the bound pod in the same step, so that nothing is counted twice or not at all:

                 filter answers         bind call            min-available
                 with the node          is held              calls are held
    PLANNED ------------------> ACCEPTED ---------> HELD -------------------> BINDING ----> (bound: the slot ends)
       ^                            |                 |                          |
       |                            +--- caller gone -+                          |
       +--------------------------------------------------- the post failed -----+

A slot without a holder waits for a member that does not exist yet. PLANNED slots are ours to move; from ACCEPTED on
kube-scheduler counts the member on its node, so the slot stays there until the member is bound or has failed.
"""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from enum import IntEnum

from extender.model.claim import GangClaim, GangKey
from extender.model.pod import Occupant, Pod, PodShape, PodUid, Tags
from extender.model.verdict import Placement
from extender.state.changes import Changes
from extender.state.ledger import Ledger


class Stage(IntEnum):
    """How far a slot's holder has come."""

    PLANNED = 1
    ACCEPTED = 2
    HELD = 3
    BINDING = 4


@dataclass(slots=True, eq=False)
class Slot:
    """Room for one member; `holder` is empty while nobody has come for it."""

    node: str
    shape: PodShape
    role: str
    holder: PodUid = ""
    stage: Stage = Stage.PLANNED
    tags: Tags = field(default_factory=Tags)

    @property
    def occupant(self) -> Occupant:
        """What is charged to the node; its tags are those it was planned with, whoever holds it."""
        return Occupant(self.shape, self.tags)

    def suits(self, pod: Pod) -> bool:
        """Whether the room was made for pods like this one."""
        return self.shape == pod.shape and self.role == pod.role

    def as_placement(self) -> Placement:
        """Return it in the terms of decisions."""
        return Placement(self.node, self.shape, self.role, self.holder, self.tags)


@dataclass(slots=True)
class Reservation:
    """The slots of one gang, held since `since_s` on the event loop's clock; see `Deadlines` for how long."""

    key: GangKey
    since_s: float
    slots: list[Slot] = field(default_factory=list)

    def slot_of(self, uid: PodUid) -> Slot | None:
        """Return the member's slot."""
        return next((slot for slot in self.slots if slot.holder == uid), None)

    def vacant_slot_for(self, pod: Pod) -> Slot | None:
        """Return a slot that was made for a member like this and that nobody holds."""
        return next((slot for slot in self.slots if not slot.holder and slot.suits(pod)), None)

    def exchange(self, mine: Slot, offered: Collection[str]) -> Slot | None:
        """Trade a PLANNED slot's holder with an equal slot on an offered node whose holder was not told yet."""
        for other in self.slots:
            equal = (other.shape, other.role, other.stage) == (mine.shape, mine.role, Stage.PLANNED)
            if equal and mine.stage is Stage.PLANNED and other.node in offered:
                mine.holder, other.holder = other.holder, mine.holder
                return other
        return None

    def count(self, *stages: Stage) -> int:
        """Return how many slots are at any of these stages."""
        return sum(slot.stage in stages for slot in self.slots)

    @property
    def vacant_count(self) -> int:
        """How many slots wait for members that do not exist."""
        return sum(not slot.holder for slot in self.slots)

    @property
    def expires(self) -> bool:
        """Whether its deadline matters: what is BINDING ends with its post."""
        return any(slot.stage < Stage.BINDING for slot in self.slots)


class Reservations:
    """All reservations; every slot is charged to the ledger as long as it is here."""

    def __init__(self, ledger: Ledger, changes: Changes) -> None:
        self._ledger = ledger
        self._changes = changes
        self._by_gang: dict[GangKey, Reservation] = {}

    def __iter__(self) -> Iterator[Reservation]:
        """Yield every reservation."""
        return iter(tuple(self._by_gang.values()))

    def get(self, key: GangKey) -> Reservation | None:
        """Return the gang's reservation."""
        return self._by_gang.get(key)

    def nodes(self) -> set[str]:
        """Return the nodes on which room is held."""
        return {slot.node for reservation in self for slot in reservation.slots}

    def by_holder(self, key: GangKey) -> dict[PodUid, Slot]:
        """Return the gang's slots by who holds them."""
        reservation = self._by_gang.get(key)
        return {slot.holder: slot for slot in reservation.slots if slot.holder} if reservation else {}

    def slot_of(self, pod: Pod) -> Slot | None:
        """Return the slot that the pod holds."""
        reservation = self._by_gang.get(pod.gang.key) if isinstance(pod.gang, GangClaim) else None
        return reservation.slot_of(pod.uid) if reservation else None

    def reserve(self, key: GangKey, placements: Iterable[Placement], now_s: float) -> None:
        """Take room for the placements, beside what the gang holds already.

        Its time starts anew only while no member was let through: a held bind call must end before kube-scheduler
        gives it up.
        """
        reservation = self._by_gang.setdefault(key, Reservation(key, now_s))
        if reservation.count(Stage.PLANNED) == len(reservation.slots):
            reservation.since_s = now_s
        for placement in placements:
            slot = Slot(placement.node, placement.shape, placement.role, placement.uid, tags=placement.tags)
            self._ledger.charge(slot.node, slot.occupant)
            reservation.slots.append(slot)
        self._changes.touch(key)

    def let_in(self, pod: Pod) -> Slot | None:
        """Give a new member the room that was reserved for it before it existed, if there is such room."""
        reservation = self._by_gang.get(pod.gang.key) if isinstance(pod.gang, GangClaim) else None
        if reservation is None:
            return None
        slot = reservation.slot_of(pod.uid) or reservation.vacant_slot_for(pod)
        if slot is not None:
            slot.holder = pod.uid
        return slot

    def advance(self, key: GangKey, slot: Slot, stage: Stage) -> None:
        """Note how far a slot's holder has come, or that it fell back."""
        slot.stage = stage
        self._changes.touch(key)

    def fall_back(self, pod: Pod, now_s: float) -> None:
        """Keep the room of a member that could not be bound: it comes again, or its time ends."""
        reservation = self._by_gang.get(pod.gang.key) if isinstance(pod.gang, GangClaim) else None
        slot = reservation.slot_of(pod.uid) if reservation else None
        if reservation is not None and slot is not None:
            reservation.since_s = now_s
            self.advance(reservation.key, slot, Stage.PLANNED)

    def open_barrier(self, reservation: Reservation) -> None:
        """Let every held bind call post its Binding."""
        for slot in reservation.slots:
            if slot.stage is Stage.HELD:
                slot.stage = Stage.BINDING
        self._changes.touch(reservation.key)

    def leave(self, pod: Pod) -> Slot | None:
        """End the slot of a member that is bound, gone or refused there; return it."""
        slot = self.slot_of(pod)
        if slot is not None and isinstance(pod.gang, GangClaim):
            self._end(self._by_gang[pod.gang.key], [slot])
        return slot

    def end_vacant(self, key: GangKey) -> None:
        """Give back the gang's slots that nobody holds."""
        reservation = self._by_gang.get(key)
        if reservation is not None:
            self._end(reservation, [slot for slot in reservation.slots if not slot.holder])

    def end_up_to(self, key: GangKey, stage: Stage) -> None:
        """Give back the gang's slots that have come no further than the stage."""
        reservation = self._by_gang.get(key)
        if reservation is not None:
            self._end(reservation, [slot for slot in reservation.slots if slot.stage <= stage])

    def end_on_node(self, node_name: str) -> None:
        """Give back every slot on a node that is gone, and have those gangs planned anew."""
        for reservation in self:
            slots = [slot for slot in reservation.slots if slot.node == node_name]
            if slots:
                self._end(reservation, slots)
                self._changes.plan(reservation.key)

    def _end(self, reservation: Reservation, slots: list[Slot]) -> None:
        for slot in slots:
            reservation.slots.remove(slot)
            self._ledger.discharge(slot.node, slot.occupant)
        if not reservation.slots:
            self._by_gang.pop(reservation.key, None)
        self._changes.touch(reservation.key)
