"""Whose held room has been waited for long enough?

Every slot is looked at now and then rather than after each change: times are seconds, and changes come by thousands.
"""

import math
from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from extender.model.claim import GangKey
from extender.state.cluster import Cluster
from extender.state.reservations import Reservation, Slot, Stage

LOOK_S: Final = 0.1
"""So late may room be given back: a fiftieth of the shortest time that it is held."""

FOLLOWERS_S: Final = 600.0
"""How long room is held for pods that their operator makes once others run: these pull their image first, which takes
minutes. Koordinator's default waiting-time is the same."""


class Deadlines(Struct, frozen=True):
    """How long room is held for members that do not exist yet, and for members on their way to bind, in seconds.

    A gang's own waiting-time may be shorter. `patience_s` is how long a gang waits before room is kept for it as others
    end.
    """

    gathering_s: float
    binding_s: float
    patience_s: float


class Expiry:
    """The ends of all slots' times, on the event loop's clock."""

    def __init__(self, cluster: Cluster, deadlines: Deadlines) -> None:
        self._cluster = cluster
        self._deadlines = deadlines
        self._next_look_s = -math.inf

    @property
    def next_look_s(self) -> float:
        """When `over` is to be asked next."""
        return self._next_look_s if any(True for _ in self._cluster.reservations) else math.inf

    def over(self, now_s: float) -> Iterator[tuple[GangKey, list[Slot]]]:
        """Yield the slots whose time is over, by gang; nothing where it was asked just before."""
        if now_s < self._next_look_s:
            return
        self._next_look_s = now_s + LOOK_S
        for reservation in self._cluster.reservations:
            for slot in reservation.slots:
                slot.since_s = min(slot.since_s, now_s)
            over = [slot for slot in _limited(reservation) if self._end_s(reservation.key, slot) <= now_s]
            if over:
                yield reservation.key, over

    def _end_s(self, key: GangKey, slot: Slot) -> float:
        gang = self._cluster.gangs.get(key)
        if gang is None and not slot.holder:
            return slot.since_s + FOLLOWERS_S
        limit_s = self._deadlines.binding_s if slot.holder else self._deadlines.gathering_s
        if gang is not None:
            limit_s = gang.waiting_s if gang.stranded and not slot.holder else min(limit_s, gang.waiting_s)
        return slot.since_s + limit_s


def _limited(reservation: Reservation) -> list[Slot]:
    """Return the slots whose time is limited: a post that is under way has an end of its own."""
    return [slot for slot in reservation.slots if slot.stage < Stage.BINDING or slot.in_doubt]
