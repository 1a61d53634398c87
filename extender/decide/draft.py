"""What is planned while nobody knows yet which member sits where?

So many of each squad on each node: members that may change places need no names until all is decided.
"""

from collections.abc import Collection, Iterable, Iterator
from functools import cached_property

from msgspec import Struct, structs

from extender.decide.trial import Trial
from extender.model.device import CardShare
from extender.model.member import Squad
from extender.model.pod import Occupant
from extender.model.verdict import Placement


class Batch(Struct, frozen=True, gc=False):
    """Room on a node for so many of a squad, with the cards of each where these are ours to choose."""

    node: str
    squad: Squad
    count: int
    cards: tuple[tuple[CardShare, ...], ...] = ()

    @property
    def occupant(self) -> Occupant:
        """What the first of them is to the node and its neighbours."""
        return structs.replace(self.squad.occupant, cards=self.cards[0]) if self.cards else self.squad.occupant

    def split(self, first: int) -> tuple["Batch", "Batch"]:
        """Return room for the first so many, and for the others."""
        some = structs.replace(self, count=first, cards=self.cards[:first])
        return some, structs.replace(self, count=self.count - first, cards=self.cards[first:])


class Draft(Struct, frozen=True, dict=True):
    """Room that was found; each squad's first members get it."""

    batches: tuple[Batch, ...]

    @cached_property
    def size(self) -> int:
        """How many members find room."""
        return sum([batch.count for batch in self.batches])

    @cached_property
    def nodes(self) -> set[str]:
        """The nodes that are used."""
        return {batch.node for batch in self.batches}

    @property
    def placements(self) -> list[Placement]:
        """The same room, given to the members in the order in which they came."""
        return list(_placements(self.batches))


def squads_of(batches: Iterable[Batch]) -> Collection[Squad]:
    """Return the squads of which these are."""
    return {id(batch.squad): batch.squad for batch in batches}.values()


def put(batches: Iterable[Batch], trial: Trial) -> None:
    """Place so many on the trial, on the cards that were chosen for them."""
    for batch in batches:
        pod = batch.squad.occupant
        if not batch.cards:
            trial.place(pod, batch.node, batch.count)
        for cards in batch.cards:
            trial.place(structs.replace(pod, cards=cards), batch.node)


def _placements(batches: Iterable[Batch]) -> Iterator[Placement]:
    members = {id(batch.squad): iter(batch.squad.members) for batch in batches}
    for node, squad, count, cards in map(structs.astuple, batches):
        for number in range(count):
            yield Placement(node, next(members[id(squad)]), cards[number] if cards else ())
