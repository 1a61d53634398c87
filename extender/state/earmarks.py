"""Whose is the room that gets free?

An earmark says where a gang goes once others have gone: it charges the gang's planned nodes, on which pods still
stand, to every gang and pod that comes after it. So what gets free there stays free for the gang, piece by piece, and
what it cannot use is anybody's. It takes no room that is free of it today: on no node do live pods and held slots
exceed what is there.
"""

from collections.abc import Iterator, Mapping

from msgspec import Struct

from extender.model.claim import GangKey
from extender.model.pod import PodUid, Seniority
from extender.model.verdict import Placement


class Earmark(Struct, frozen=True):
    """Where gangs that are bound together go once `leaving` are gone; it ends at `until_s`.

    `keys` are those that need the room: a gang that runs may be bound together with any number of others.
    `parts` are the pods that each member may have killed for it; there are none where the gangs just wait for them to
    end. `seniority` is that of the gangs. Room for members that do not exist yet is held under the keys in `followers`.
    """

    keys: frozenset[GangKey]
    seniority: Seniority
    placements: tuple[Placement, ...]
    leaving: frozenset[PodUid]
    until_s: float
    parts: Mapping[PodUid, tuple[PodUid, ...]] = {}
    followers: frozenset[GangKey] = frozenset()


class Earmarks:
    """The earmarks by gang; `generation` grows with each change."""

    def __init__(self) -> None:
        self.generation = 0
        self._by_gang: dict[GangKey, Earmark] = {}

    def __iter__(self) -> Iterator[Earmark]:
        """Yield each earmark once."""
        return iter({min(earmark.keys): earmark for earmark in self._by_gang.values()}.values())

    def get(self, key: GangKey) -> Earmark | None:
        """Return the gang's earmark."""
        return self._by_gang.get(key)

    def put(self, earmark: Earmark) -> None:
        """Keep what gets free for these gangs, none of which may have an earmark."""
        self.generation += 1
        self._by_gang.update(dict.fromkeys(earmark.keys, earmark))

    def drop(self, key: GangKey) -> bool:
        """End the earmark of a gang and those that it is bound together with; whether there was one."""
        earmark = self._by_gang.get(key)
        for each in earmark.keys if earmark else ():
            self.generation += 1
            del self._by_gang[each]
        return earmark is not None

    def before(self, seniority: Seniority, key: GangKey | None = None) -> list[Earmark]:
        """Return those that come before a pod, or the gang `key`, of this seniority.

        Of gangs of the same second one comes first, too, by its name: else both are promised the same room.
        """
        if key is None:
            return [each for each in self if each.seniority < seniority]
        own = self._by_gang.get(key)
        rank = seniority, min(own.keys) if own else key
        return [each for each in self if (each.seniority, min(each.keys)) < rank and key not in each.keys]

    def nodes(self) -> set[str]:
        """Return the nodes on which something is kept."""
        return {placement.node for earmark in self for placement in earmark.placements}
