"""Which node and which of its cards does a request get: ours, and the simple rules that it is compared with.

Each answers with the node's name and the cards, or with None where it finds no room. All follow the same rules of what
fits; only their preferences differ.
"""

from collections.abc import Callable, Mapping
from typing import TypeAlias

from extender.decide.alike import group_alike
from extender.decide.devices import UNUSED, times_on
from extender.decide.packing import pack_gang
from extender.model.device import Card, CardNeed, CardRequest, CardShare
from extender.model.member import Member
from extender.model.node import NodeRoom
from extender.model.pod import PodShape
from extender.model.snapshot import Snapshot

Rooms: TypeAlias = Mapping[str, NodeRoom]
Choice: TypeAlias = tuple[str, tuple[CardShare, ...]] | None
Chooser: TypeAlias = Callable[[PodShape, Rooms], Choice]


def ours(shape: PodShape, rooms: Rooms) -> Choice:
    """Plan it as a gang of one, as the extender does."""
    snapshot = Snapshot(1, rooms)
    placements = pack_gang(group_alike([Member(shape)], snapshot), snapshot, required=1).placements
    return (placements[0].node, placements[0].cards) if placements else None


def first_fit(shape: PodShape, rooms: Rooms) -> Choice:
    """Take the first node that has room, and there the first cards."""
    fitting = ((name, cards) for name, room in rooms.items() if (cards := _takers(shape, room)))
    return _chosen(shape, next(fitting, None))


def best_fit_by_node(shape: PodShape, rooms: Rooms) -> Choice:
    """Take the node of which least is free altogether, and there the fullest cards."""
    fitting = [(free_milli(rooms[name]), name) for name in rooms if _takers(shape, rooms[name])]
    return _on(shape, rooms, min(fitting, default=None), 1)


def worst_fit(shape: PodShape, rooms: Rooms) -> Choice:
    """Take the node of which most is free altogether, and there the emptiest cards."""
    fitting = [(-free_milli(rooms[name]), name) for name in rooms if _takers(shape, rooms[name])]
    return _on(shape, rooms, min(fitting, default=None), -1)


def best_fit_by_card(shape: PodShape, rooms: Rooms) -> Choice:
    """Take the fullest card of the whole cluster, whichever node it is on."""
    fitting = [
        (min(_free_on(card, rooms[name]) for card in cards), name)
        for name in rooms
        if (cards := _takers(shape, rooms[name]))
    ]
    return _on(shape, rooms, min(fitting, default=None), 1)


CHOOSERS: Mapping[str, Chooser] = {
    "ours": ours,
    "first fit": first_fit,
    "best fit by node": best_fit_by_node,
    "best fit by card": best_fit_by_card,
    "worst fit": worst_fit,
}


def free_milli(room: NodeRoom) -> int:
    """Return how much of all cards of the node is free."""
    return sum(_free_on(card, room) for card in _cards(room))


def _cards(room: NodeRoom) -> tuple[Card, ...]:
    return room.node.inventory.cards if room.node.inventory else ()


def _free_on(card: Card, room: NodeRoom) -> int:
    return card.core_milli - room.taken_cards.get(card.key, UNUSED).core_milli


def _need(shape: PodShape) -> CardNeed:
    assert isinstance(shape.cards, CardRequest)
    return shape.cards.needs[0]


def _takers(shape: PodShape, room: NodeRoom) -> list[Card]:
    """Return the cards that take a share; none where they are too few."""
    need = _need(shape)
    cards = [card for card in _cards(room) if times_on(card, room.taken_cards.get(card.key, UNUSED), need)]
    return cards if len(cards) >= need.count else []


def _on(shape: PodShape, rooms: Rooms, best: tuple[int, str] | None, sign: int) -> Choice:
    if best is None:
        return None
    room = rooms[best[1]]
    cards = sorted(_takers(shape, room), key=lambda card: (sign * _free_on(card, room), card.index))
    return _chosen(shape, (best[1], cards))


def _chosen(shape: PodShape, found: tuple[str, list[Card]] | None) -> Choice:
    if found is None:
        return None
    need = _need(shape)
    return found[0], tuple(
        CardShare(card.index, card.uuid, need.core_milli, card.memory_bytes * need.memory_milli // 1000)
        for card in found[1][: need.count]
    )
