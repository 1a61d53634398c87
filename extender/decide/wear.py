"""What do pods cost a node in whole cards?

Whole cards that stay free are what large jobs need. So a share of a card rather goes to a node where a card is in use
already, to the fullest such card of the cluster, and whole cards are rather taken where few are left.
"""

from typing import Final

from extender.decide.devices import (
    ANY_CARD,
    PPM,
    UNUSED,
    free_cards,
    fullness_of,
    inventory_for,
    is_spread,
    is_wanted,
    take_cards,
    times_on,
)
from extender.model.device import CardInventory, CardRequest
from extender.model.node import NodeRoom
from extender.model.pod import PodShape

_MOST_SLACK: Final = 1 << 20
_MOST_CARDS: Final = 1 << 16
"""More than any node has of millionths of a card, and of cards."""


def wear_of(shape: PodShape, room: NodeRoom, count: int = 1) -> int:
    """Return what `count` such pods, which must fit there, cost the node: less is better.

    First by how many cards are used then that nobody used. Then by how little is left of the fullest card in use that
    takes such a pod, and at last by how few cards nobody uses even then.
    """
    request = shape.cards
    if not isinstance(request, CardRequest):
        return 0
    inventory = inventory_for(request, room)
    if inventory is None:
        return _rank(0, 0, _free_devices(shape, room, count))
    if len(request.needs) > 1:
        return _wear_tried(request, inventory, room, count)
    return _wear_of_one(request, inventory, room, count)


def _rank(opened: int, slack: int, whole: int) -> int:
    return (opened * _MOST_SLACK + slack) * _MOST_CARDS + whole


def _free_devices(shape: PodShape, room: NodeRoom, count: int) -> int:
    """Return how many devices are left of the kinds that such a pod asks the kubelet for."""
    left = 0
    for name, amount in shape.requests:
        if "/" in name:
            left += room.node.allocatable.get(name, 0) - room.taken.get(name, 0) - count * amount
    return left


def _wear_of_one(request: CardRequest, inventory: CardInventory, room: NodeRoom, count: int) -> int:
    need, any_will_do = request.needs[0], request.terms == ANY_CARD
    whole, on_used, fullest, emptiest = 0, 0, 0, PPM
    fresh: list[int] = []
    for card in inventory.cards:
        use = room.taken_cards.get(card.key, UNUSED)
        whole += card.healthy and not use.shares
        if not (card.healthy and (any_will_do or is_wanted(card, request.terms))):
            continue
        times = times_on(card, use, need)
        if times and not use.shares:
            fresh.append(times)
        elif times:
            on_used += times
            fullness = fullness_of(card, use)
            fullest, emptiest = max(fullest, fullness), min(emptiest, fullness)
    if not on_used and max(fresh, default=1) == 1:
        return _rank(need.count * count, 0, whole - need.count * count)
    if is_spread(request, inventory):
        return _rank(0, 0 if fresh else emptiest, -whole)
    slack = PPM - fullest if on_used else 0
    if need.count > 1:
        return _wear_tried(request, inventory, room, count) + _rank(0, slack, 0)
    opened = _count_opened(count - on_used, fresh)
    return _rank(opened, slack, whole - opened)


def _count_opened(rest: int, fresh: list[int]) -> int:
    """Return how many cards of which each takes so many it needs for the rest."""
    opened = 0
    while rest > 0 and opened < len(fresh):
        rest -= fresh[opened]
        opened += 1
    return opened


def _wear_tried(request: CardRequest, inventory: CardInventory, room: NodeRoom, count: int) -> int:
    """Take the cards to see it: several at a time hang together."""
    free = free_cards(request.terms, inventory, room.taken_cards)
    before = sum(bool(each.use.shares) for each in free)
    for _ in range(count):
        take_cards(request, free, inventory)
    opened = sum(bool(each.use.shares) for each in free) - before
    return _rank(opened, 0, _count_unused(inventory, room) - opened)


def _count_unused(inventory: CardInventory, room: NodeRoom) -> int:
    taken = room.taken_cards
    return sum(card.healthy and card.key not in taken for card in inventory.cards)
