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
kube-scheduler counts the member on its node, so the slot stays there until the member is bound or has failed. Before
BINDING a slot's time is limited; a post has its own end. A post of which nobody knows whether it bound the member
leaves the slot in doubt: it stays BINDING, for a limited time, until the watch or another post tells.
"""

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from enum import IntEnum

from extender.decide.devices import still_holds
from extender.model.claim import GangKey
from extender.model.device import CardShare
from extender.model.member import Member
from extender.model.pod import Occupant, Pod, PodShape, PodUid, Tags
from extender.model.verdict import Placement
from extender.state.changes import Changes
from extender.state.earmarks import Earmark
from extender.state.ledger import Ledger


class Stage(IntEnum):
    """How far a slot's holder has come."""

    PLANNED = 1
    ACCEPTED = 2
    HELD = 3
    BINDING = 4


@dataclass(slots=True, eq=False)
class Slot:
    """Room for one member, held since `since_s` on the event loop's clock; `holder` is empty while nobody has come.

    A member that comes for room that was held for it has time from the next look at the times on: until then `since_s`
    is infinite. A slot is `named` once kube-scheduler was told of its node without having looked at it.
    """

    node: str
    shape: PodShape
    role: str
    since_s: float
    holder: PodUid = ""
    stage: Stage = Stage.PLANNED
    tags: Tags = field(default_factory=Tags)
    cards: tuple[CardShare, ...] = ()
    in_doubt: bool = False
    named: bool = False

    @property
    def occupant(self) -> Occupant:
        """What is charged to the node; its tags are those it was planned with, whoever holds it."""
        return Occupant(self.shape, self.tags, cards=self.cards)

    def as_placement(self) -> Placement:
        """Return it in the terms of decisions."""
        return Placement(self.node, Member(self.shape, self.role, self.holder, tags=self.tags), self.cards)


@dataclass(slots=True, eq=False)
class Reservation:
    """The slots of one gang."""

    key: GangKey
    slots: list[Slot] = field(default_factory=list)

    def vacant_slot_for(self, pod: Pod) -> Slot | None:
        """Return a slot that was made for a member like this and that nobody holds."""
        same = (pod.shape, pod.role)
        return next((slot for slot in self.slots if not slot.holder and (slot.shape, slot.role) == same), None)


class Reservations:
    """All reservations; every slot is charged to the ledger as long as it is here."""

    def __init__(self, ledger: Ledger, changes: Changes) -> None:
        self._ledger = ledger
        self._changes = changes
        self._by_gang: dict[GangKey, Reservation] = {}
        self._by_holder: dict[PodUid, tuple[Reservation, Slot]] = {}

    def __iter__(self) -> Iterator[Reservation]:
        """Yield every reservation."""
        return iter(tuple(self._by_gang.values()))

    def get(self, key: GangKey) -> Reservation | None:
        """Return the gang's reservation."""
        return self._by_gang.get(key)

    def slots_of(self, key: GangKey) -> tuple[Slot, ...]:
        """Return the gang's slots."""
        reservation = self._by_gang.get(key)
        return tuple(reservation.slots) if reservation else ()

    def slot_of(self, uid: PodUid) -> Slot | None:
        """Return the slot that the pod holds."""
        held = self._by_holder.get(uid)
        return held[1] if held else None

    def nodes(self) -> set[str]:
        """Return the nodes on which room is held."""
        return {slot.node for reservation in self for slot in reservation.slots}

    def without_room(self, earmark: Earmark) -> list[Placement]:
        """Return what of an earmark no room is held for yet; that of followers is held under their job's key."""
        slots = [slot for key in earmark.followers for slot in self.slots_of(key)]
        held = Counter((slot.node, slot.shape, slot.role) for slot in slots)
        lacking = []
        for placement in earmark.placements:
            seat = None if placement.uid else (placement.node, placement.shape, placement.role)
            if seat and held[seat]:
                held[seat] -= 1
            elif placement.uid not in self._by_holder:
                lacking.append(placement)
        return lacking

    def reserve(self, key: GangKey, placements: Iterable[Placement], now_s: float) -> None:
        """Take room for the placements, beside what the gang holds already."""
        for placement in placements:
            reservation = self._by_gang.setdefault(key, Reservation(key))
            slot = Slot(
                placement.node, placement.shape, placement.role, now_s, tags=placement.tags, cards=placement.cards
            )
            self._ledger.charge(slot.node, slot.occupant)
            reservation.slots.append(slot)
            self._seat(reservation, slot, placement.uid)
        self._changes.touch(key)

    def let_in(self, pod: Pod, key: GangKey) -> bool:
        """Give a member the room that was reserved for it before it existed; whether it holds room now."""
        reservation = self._by_gang.get(key)
        if reservation is None or pod.uid in self._by_holder:
            return pod.uid in self._by_holder
        slot = reservation.vacant_slot_for(pod)
        if slot is not None:
            self._seat(reservation, slot, pod.uid)
            slot.since_s = math.inf
        return slot is not None

    def vacate(self, uid: PodUid) -> None:
        """Free the room of a member that is replaced for the one that replaces it."""
        slot = self.slot_of(uid)
        if slot is not None and slot.stage < Stage.BINDING:
            del self._by_holder[uid]
            slot.holder, slot.stage = "", Stage.PLANNED

    def pass_on(self, uid: PodUid, key: GangKey) -> None:
        """Hold the room of a pod that changed its gang for the new one."""
        reservation, slot = self._by_holder.get(uid, (None, None))
        if reservation is not None and slot is not None:
            self._take_out(reservation, slot)
            new = self._by_gang.setdefault(key, Reservation(key))
            new.slots.append(slot)
            self._seat(new, slot, uid)

    def exchange(self, uid: PodUid, offered: Collection[str]) -> Slot | None:
        """Trade the member's PLANNED slot for an equal one on an offered node whose holder was not told yet."""
        if uid not in self._by_holder:
            return None
        reservation, mine = self._by_holder[uid]
        for other in reservation.slots:
            equal = (other.shape, other.role, other.stage) == (mine.shape, mine.role, Stage.PLANNED)
            if equal and mine.stage is Stage.PLANNED and other.node in offered:
                self._seat(reservation, mine, other.holder)
                self._seat(reservation, other, uid)
                return other
        return None

    def advance(self, key: GangKey, slot: Slot, stage: Stage) -> None:
        """Note how far a slot's holder has come, or that it fell back."""
        slot.stage = stage
        self._changes.touch(key)

    def begin_post(self, uid: PodUid) -> None:
        """Note that a Binding is on its way for the pod."""
        slot = self.slot_of(uid)
        if slot is not None:
            slot.in_doubt = False

    def doubt(self, uid: PodUid, node: str, now_s: float) -> None:
        """Keep the room of a pod that may be bound to this node by now."""
        slot = self.slot_of(uid)
        if slot is not None and slot.node == node and slot.stage is Stage.BINDING:
            slot.in_doubt, slot.since_s = True, now_s

    def fall_back(self, uid: PodUid, node: str, now_s: float) -> None:
        """Keep the room of a member whose post failed on this node: it comes again, or its time ends."""
        reservation, slot = self._by_holder.get(uid, (None, None))
        if reservation is None or slot is None or slot.node != node or slot.stage is not Stage.BINDING:
            return
        slot.since_s = now_s
        self.advance(reservation.key, slot, Stage.PLANNED)
        room = self._ledger.rooms.get(node)
        if room is None or not still_holds(slot.shape, slot.cards, room):
            self._end(reservation, [slot])
            self._changes.plan(reservation.key)

    def restart(self, uid: PodUid, now_s: float) -> None:
        """Let the time of the pod's room begin anew: only now can it come. A bind call that is held has its own end."""
        slot = self.slot_of(uid)
        if slot is not None and slot.stage <= Stage.ACCEPTED:
            slot.since_s = now_s

    def open_barrier(self, key: GangKey) -> None:
        """Let every held bind call of the gang post its Binding."""
        for slot in self.slots_of(key):
            if slot.stage is Stage.HELD:
                self.advance(key, slot, Stage.BINDING)

    def leave(self, uid: PodUid) -> Slot | None:
        """End the slot of a member that is bound, gone or refused there; return it."""
        reservation, slot = self._by_holder.get(uid, (None, None))
        if reservation is not None and slot is not None:
            self._end(reservation, [slot])
        return slot

    def end(self, key: GangKey, slots: Iterable[Slot]) -> None:
        """Give back these slots of the gang."""
        reservation = self._by_gang.get(key)
        if reservation is not None:
            self._end(reservation, list(slots))

    def end_up_to(self, key: GangKey, stage: Stage) -> None:
        """Give back the gang's slots that have come no further than the stage."""
        self.end(key, [slot for slot in self.slots_of(key) if slot.stage <= stage])

    def end_on_node(self, node_name: str, ends: Callable[[Slot], bool]) -> None:
        """Give back what ends of what is held on a node, and have those gangs planned anew; a post is waited for."""
        for reservation in self:
            here = [slot for slot in reservation.slots if slot.node == node_name and slot.stage < Stage.BINDING]
            slots = [slot for slot in here if ends(slot)]
            if slots:
                self._end(reservation, slots)
                self._changes.plan(reservation.key)

    def _seat(self, reservation: Reservation, slot: Slot, holder: PodUid) -> None:
        slot.holder = holder
        if holder:
            self._by_holder[holder] = (reservation, slot)

    def _end(self, reservation: Reservation, slots: list[Slot]) -> None:
        for slot in slots:
            self._take_out(reservation, slot)
            self._ledger.discharge(slot.node, slot.occupant)

    def _take_out(self, reservation: Reservation, slot: Slot) -> None:
        reservation.slots.remove(slot)
        self._by_holder.pop(slot.holder, None)
        if not reservation.slots:
            self._by_gang.pop(reservation.key, None)
        self._changes.touch(reservation.key)
