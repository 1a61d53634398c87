"""How many whole cards stay free while shares of cards and whole ones come and go?

Requests arrive by chance and stay for a while; one that finds no room is refused and gone. Nodes and cards exist in
the model only, so that no control plane is needed.
"""

import heapq
from collections.abc import Iterator, Sequence
from random import Random

from msgspec import Struct

from e2e.bench.choosers import CHOOSERS, Chooser, ours
from e2e.bench.optimum import most_whole_cards
from e2e.bench.report import Row
from extender.decide.alike import group_alike
from extender.decide.packing import pack_gang
from extender.model.device import WHOLE_MILLI, Card, CardDialect, CardInventory, CardManager, CardNeed, CardRequest
from extender.model.member import Member
from extender.model.node import Node, NodeRoom
from extender.model.pod import Occupant, PodShape
from extender.model.resources import PODS
from extender.model.snapshot import Snapshot

CARD_BYTES = 80 * 2**30

SIZES = {
    (1, 100, 100): 3, (1, 200, 300): 3, (1, 250, 250): 3, (1, 300, 300): 3, (1, 400, 200): 2, (1, 500, 500): 4,
    (1, 600, 600): 2, (1, 700, 700): 1, (1, 1000, 1000): 4, (2, 1000, 1000): 2, (4, 1000, 1000): 1,
}  # fmt: skip
"""How often so many cards are asked for, this much of each, and of the memory of each, in thousandths."""

SMALL_NODES, SMALL_CARDS = 3, 4
"""What CP-SAT solves to the end in some milliseconds."""


class Arrival(Struct, frozen=True):
    """A request that comes at a time, and leaves if it was let in."""

    at: float
    until: float
    shape: PodShape


class Outcome(Struct, frozen=True):
    """What became of a stream. Shares are of 1; time is what each moment counts by."""

    whole_free: float
    """Of all cards, those that nobody used."""

    unbroken: float
    """Of all cards, those that nobody used or one request used whole. A rule that refuses large requests leaves their
    cards free, and is not the better for it."""

    of_possible: float
    """Of the cards that nobody would use if the same shares were packed without a gap, those that nobody used."""

    refused: float
    """Of the requests, those that found no room."""

    refused_gpus: float
    """The same by how many GPUs they asked for: a rule that refuses large ones only is no good."""


def measure_fragmentation(
    *, nodes: int, cards: int, arrivals: int, loads: Sequence[float], seeds: Sequence[int]
) -> Iterator[Row]:
    """Play the same streams by each rule; a load is the part of all cards that is asked for at a time."""
    for load in loads:
        streams = [draw_stream(Random(f"{seed}/{load}"), nodes * cards, arrivals, load) for seed in seeds]  # noqa: S311 - chance that can be repeated is what is wanted
        for name, chooser in CHOOSERS.items():
            outcomes = [play(stream, chooser, nodes, cards) for stream in streams]
            yield {"load": load, "rule": name, **_means(outcomes)}


def measure_against_optimum(*, cases: int, seed: int = 1) -> Iterator[Row]:
    """Place small sets by each rule, one after the other as they come, and known beforehand as CP-SAT knows them.

    Who knows the set places the largest first; we plan it as one gang.
    """
    sets = [draw_set(Random(f"{seed}/{number}")) for number in range(cases)]  # noqa: S311 - as above
    best = sum(most_whole_cards(shapes, SMALL_NODES, SMALL_CARDS) for shapes in sets)
    for name, chooser in CHOOSERS.items():
        as_they_come = sum(whole_cards_kept(shapes, chooser) for shapes in sets)
        knowing = sum(map(whole_cards_kept_by_gang, sets)) if chooser is ours else _kept_largest_first(sets, chooser)
        yield {
            "rule": name,
            "sets": cases,
            "whole cards at most": best,
            "as they come %": 100 * as_they_come / best,
            "known beforehand %": 100 * knowing / best,
        }


def draw_stream(chance: Random, cards: int, arrivals: int, load: float) -> list[Arrival]:
    """Return requests that stay for one unit of time on average."""
    asked = sum(count * max(milli, memory) * often for (count, milli, memory), often in SIZES.items())
    mean_cards = asked / 1000 / sum(SIZES.values())
    now, stream = 0.0, []
    for _ in range(arrivals):
        now += chance.expovariate(load * cards / mean_cards)
        stream.append(Arrival(now, now + chance.expovariate(1.0), _draw_shape(chance)))
    return stream


def draw_set(chance: Random) -> list[PodShape]:
    """Return requests that surely fit together, in any order."""
    shapes = []
    room = chance.uniform(0.3, 0.6) * SMALL_NODES * SMALL_CARDS * 1000
    while room > 0:
        shape = _draw_shape(chance)
        assert isinstance(shape.cards, CardRequest)
        need = shape.cards.needs[0]
        if need.count < SMALL_CARDS:
            shapes.append(shape)
            room -= need.count * max(need.core_milli, need.memory_milli)
    return shapes


def play(stream: Sequence[Arrival], chooser: Chooser, nodes: int, cards: int) -> Outcome:
    """Let the requests come and go; the first fifth fills the cluster and is not counted."""
    rooms = empty_rooms(nodes, cards)
    leaving: list[tuple[float, int, str, Occupant]] = []
    begin = stream[len(stream) // 5].at
    now, free, unbroken, possible = 0.0, 0.0, 0.0, 0.0
    refused: list[PodShape] = []
    counted = [arrival for arrival in stream if arrival.at >= begin]

    def pass_until(at: float) -> None:
        nonlocal now, free, unbroken, possible
        since = max(begin, now)
        if at > since:
            free += (at - since) * count_whole(rooms)
            unbroken += (at - since) * (nodes * cards - _count_broken(rooms))
            possible += (at - since) * _count_possible(rooms)
        now = at

    for number, arrival in enumerate(stream):
        while leaving and leaving[0][0] <= arrival.at:
            at, _, name, pod = heapq.heappop(leaving)
            pass_until(at)
            rooms[name] = rooms[name].without(pod)
        pass_until(arrival.at)
        choice = chooser(arrival.shape, rooms)
        if choice is not None:
            pod = Occupant(arrival.shape, cards=choice[1])
            rooms[choice[0]] = rooms[choice[0]].having(pod)
            heapq.heappush(leaving, (arrival.until, number, choice[0], pod))
        elif arrival.at >= begin:
            refused.append(arrival.shape)
    return Outcome(
        free / ((now - begin) * nodes * cards),
        unbroken / ((now - begin) * nodes * cards),
        free / possible,
        len(refused) / len(counted),
        sum(map(gpus_of, refused)) / sum(gpus_of(arrival.shape) for arrival in counted),
    )


def whole_cards_kept(shapes: Sequence[PodShape], chooser: Chooser) -> int:
    """Place a small set in its order; return how many cards nobody uses then."""
    rooms = empty_rooms(SMALL_NODES, SMALL_CARDS)
    for shape in shapes:
        choice = chooser(shape, rooms)
        if choice is None:  # fragments have taken its room: as bad as if it used all cards that it asked for
            return count_whole(rooms)
        rooms[choice[0]] = rooms[choice[0]].having(Occupant(shape, cards=choice[1]))
    return count_whole(rooms)


def whole_cards_kept_by_gang(shapes: Sequence[PodShape]) -> int:
    """Plan a small set as one gang; return how many cards nobody uses then, none where it was not placed whole."""
    rooms = empty_rooms(SMALL_NODES, SMALL_CARDS)
    members = [Member(shape, uid=str(number)) for number, shape in enumerate(shapes)]
    snapshot = Snapshot(1, rooms)
    packing = pack_gang(group_alike(members, snapshot), snapshot, required=len(members))
    return 0 if packing.left_over else count_whole({name: packing.trial.room(name) for name in rooms})


def _kept_largest_first(sets: Sequence[Sequence[PodShape]], chooser: Chooser) -> int:
    return sum(whole_cards_kept(sorted(shapes, key=gpus_of, reverse=True), chooser) for shapes in sets)


def empty_rooms(nodes: int, cards: int) -> dict[str, NodeRoom]:
    """Return so many nodes with so many cards each."""
    return {name: NodeRoom(_node(name, cards)) for name in (f"n{number:02}" for number in range(nodes))}


def count_whole(rooms: dict[str, NodeRoom]) -> int:
    """Return how many cards nobody uses."""
    return sum(len(room.node.inventory.cards) - len(room.taken_cards) for room in rooms.values() if room.node.inventory)


def _count_broken(rooms: dict[str, NodeRoom]) -> int:
    uses = [use for room in rooms.values() for use in room.taken_cards.values()]
    return sum(use.core_milli < WHOLE_MILLI or use.shares > 1 for use in uses)


def gpus_of(shape: PodShape) -> float:
    """Return how many GPUs it asks for."""
    assert isinstance(shape.cards, CardRequest)
    need = shape.cards.needs[0]
    return need.count * max(need.core_milli, need.memory_milli) / 1000


def _count_possible(rooms: dict[str, NodeRoom]) -> int:
    """Return how many cards nobody would use if all shares were packed without a gap."""
    uses = [use for room in rooms.values() for use in room.taken_cards.values()]
    cards = sum(len(room.node.inventory.cards) for room in rooms.values() if room.node.inventory)
    cores = -(-sum(use.core_milli for use in uses) // 1000)
    return cards - max(cores, -(-sum(use.memory_bytes for use in uses) // CARD_BYTES))


def _draw_shape(chance: Random) -> PodShape:
    count, milli, memory_milli = chance.choices(list(SIZES), weights=list(SIZES.values()))[0]
    need = CardNeed(count, milli, memory_milli=memory_milli)
    return PodShape(((PODS, 1),), cards=CardRequest(CardDialect.KUBESHARE_2, (need,)))


def _node(name: str, cards: int) -> Node:
    known = tuple(Card(index, f"GPU-{name}-{index}", CARD_BYTES) for index in range(cards))
    return Node(name, {PODS: 110}, inventory=CardInventory(CardManager.OWN, known))


def _means(outcomes: Sequence[Outcome]) -> dict[str, float]:
    def mean(values: Sequence[float]) -> float:
        return 100 * sum(values) / len(values)

    return {
        "whole cards free %": mean([each.whole_free for each in outcomes]),
        "unbroken %": mean([each.unbroken for each in outcomes]),
        "of possible %": mean([each.of_possible for each in outcomes]),
        "refused %": mean([each.refused for each in outcomes]),
        "GPUs refused %": mean([each.refused_gpus for each in outcomes]),
    }
