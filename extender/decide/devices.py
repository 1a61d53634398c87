"""Which cards of a node does a pod get, and is there room on them?

Fractions go to the fullest card that takes them, so that whole cards stay free; whole cards are taken where they are
near one another, and so that those which stay free are near one another, too. A pod may ask for the contrary, to be
spread. A node's cards are either all chosen by us or all picked by its kubelet: neither knows what the other one took.

A card whose cores are all taken takes nobody more, and who asks for all cores wants the card for himself: HAMi's rules
(its scheduler's fitInDevices), which agree with the other systems'.
"""

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Final

from msgspec import structs

from extender.model.device import (
    CHOICES,
    BadCardRequest,
    Card,
    CardDialect,
    CardInventory,
    CardNeed,
    CardRequest,
    CardShare,
    CardTerms,
    CardUse,
)
from extender.model.node import NodeRoom
from extender.model.pod import PodShape
from extender.model.verdict import (
    CardReason,
    CardRequestBad,
    CardsChosen,
    CardsHandedOutWhole,
    CardsNotServed,
    CardsUnreadable,
    NoCardMatches,
    TooLittleOfCards,
)

MOST_PODS: Final = 4096
"""How many pods that take nothing measurable fit a card: more than any node runs."""

_PPM: Final = 1_000_000


def fit_cards(request: CardRequest | BadCardRequest, room: NodeRoom) -> tuple[CardReason, ...]:
    """Return why the node's cards do not do for such a pod; empty if they do."""
    if isinstance(request, BadCardRequest):
        return (CardRequestBad(request.problem),)
    inventory = _inventory_for(request, room)
    if inventory is None:
        if request.dialect is not CardDialect.WHOLE:
            return (CardsNotServed(request.dialect),)
        return (CardsChosen(),) if room.taken_cards else ()
    if inventory.problem:
        return (CardsUnreadable(inventory.problem),)
    if room.unknown_cards:
        return (CardsHandedOutWhole(),)
    if _choose(request, inventory, room.taken_cards) is not None:
        return ()
    return (TooLittleOfCards(),) if _choose(request, inventory, {}) is not None else (NoCardMatches(),)


def choose_cards(request: CardRequest | BadCardRequest, room: NodeRoom) -> tuple[CardShare, ...]:
    """Return the cards that such a pod gets on the node; none where it does not fit, or the kubelet picks them."""
    inventory = _inventory_for(request, room)
    if inventory is None or isinstance(request, BadCardRequest) or room.unknown_cards:
        return ()
    return tuple(_choose(request, inventory, room.taken_cards) or ())


def count_fitting(request: CardRequest | BadCardRequest, room: NodeRoom) -> int:
    """Return how many such pods the node's cards take beside one another."""
    if isinstance(request, BadCardRequest):
        return 0
    inventory = _inventory_for(request, room)
    if inventory is None:
        return MOST_PODS if request.dialect is CardDialect.WHOLE and not room.taken_cards else 0
    if room.unknown_cards:
        return 0
    free = _free_cards(request.terms, inventory, room.taken_cards)
    if len(request.needs) == 1 and not (request.terms.one_numa and request.needs[0].count > 1):
        need = request.needs[0]
        return _times([each.times(need) for each in free], need.count)
    for count in range(MOST_PODS):
        if _take(request, free, spread=inventory.spread) is None:
            return count
    return MOST_PODS


def overdrawn_cards(room: NodeRoom) -> frozenset[str]:
    """Return the keys of the cards of which more is taken than there is; all of those that are gone or unhealthy."""
    cards = {card.key: card for card in (room.node.inventory.cards if room.node.inventory else ())}
    return frozenset(key for key, use in room.taken_cards.items() if key not in cards or not _holds(cards[key], use))


def still_holds(shape: PodShape, shares: Sequence[CardShare], room: NodeRoom) -> bool:
    """Whether a choice made before is still one: the cards are there, with all that is taken of them.

    `shares` are empty where the kubelet was to pick, which must still be so.
    """
    if shape.cards is None:
        return True
    bare = NodeRoom(room.node)
    if fit_cards(shape.cards, bare) or bool(choose_cards(shape.cards, bare)) != bool(shares):
        return False
    inventory = room.node.inventory
    if inventory is None or not shares:
        return True
    return not room.unknown_cards and overdrawn_cards(room).isdisjoint(inventory.key_of(share) for share in shares)


def _holds(card: Card, use: CardUse) -> bool:
    return card.healthy and use.core_milli <= card.core_milli and use.memory_bytes <= card.memory_bytes


def alike_cards(room: NodeRoom) -> tuple[object, ...]:
    """Return what tells the cards of two nodes apart for pods that do not ask for a card by its UUID."""
    inventory = room.node.inventory
    if inventory is None:
        return ()
    taken = room.taken_cards
    cards = [structs.replace(card, uuid="", links=()) for card in inventory.cards]
    uses = [taken.get(card.key, CardUse()) for card in inventory.cards]
    return inventory.manager, inventory.spread, room.unknown_cards, *zip(cards, uses, strict=True)


def opened_cards(before: NodeRoom, after: NodeRoom) -> int:
    """Return how many cards that nobody used are in use after some pods were placed."""
    return len(after.taken_cards) - len(before.taken_cards)


def _inventory_for(request: CardRequest | BadCardRequest, room: NodeRoom) -> CardInventory | None:
    """Return the node's cards where those of such a pod are ours to choose."""
    inventory = room.node.inventory
    if inventory is None or isinstance(request, BadCardRequest):
        return None
    return inventory if request.dialect in CHOICES[inventory.manager] else None


class _FreeCard:
    """What is left of a card while cards are chosen."""

    def __init__(self, card: Card, use: CardUse) -> None:
        self.card = card
        self.core_milli = card.core_milli - use.core_milli
        self.memory_bytes = card.memory_bytes - use.memory_bytes
        self.shares = use.shares

    def memory_for(self, need: CardNeed) -> int:
        """Return how much memory of this card the need comes to."""
        part = self.card.memory_bytes * need.memory_milli // 1000
        return need.memory_bytes or part - part % need.memory_unit

    def times(self, need: CardNeed) -> int:
        """Return how many such needs fit one after the other."""
        card, memory_bytes = self.card, self.memory_for(need)
        if self.core_milli <= 0 or (need.core_milli >= card.core_milli and self.shares):
            return 0
        most = [MOST_PODS if not card.slots else card.slots - self.shares]
        if need.core_milli:
            most.append(self.core_milli // need.core_milli)
        if memory_bytes:
            most.append(self.memory_bytes // memory_bytes)
        return max(0, min(most))

    def take(self, need: CardNeed) -> CardShare:
        """Give it to a container."""
        share = CardShare(
            self.card.index, self.card.uuid, need.core_milli, self.memory_for(need), container=need.container
        )
        self.core_milli -= share.core_milli
        self.memory_bytes -= share.memory_bytes
        self.shares += 1
        return share

    @property
    def fullness(self) -> int:
        """How much of it is taken, in millionths, of what is taken most of."""
        memory = self.card.memory_bytes
        of_memory = _PPM - _PPM * self.memory_bytes // memory if memory else 0
        return max(_PPM - _PPM * self.core_milli // self.card.core_milli, of_memory)

    def nearness(self, other: "_FreeCard") -> int:
        """Return how near the cards are, as far as the inventory says it."""
        if self.card.links:
            return next((near for key, near in self.card.links if key == other.card.key), 0)
        return int(self.card.numa == other.card.numa >= 0)


def _free_cards(terms: CardTerms, inventory: CardInventory, taken: Mapping[str, CardUse]) -> list[_FreeCard]:
    return [
        _FreeCard(card, taken.get(card.key, CardUse()))
        for card in inventory.cards
        if card.healthy and _matches(card, terms)
    ]


def _matches(card: Card, terms: CardTerms) -> bool:
    if terms.uuids and card.uuid not in terms.uuids:
        return False
    if card.uuid and card.uuid in terms.not_uuids:
        return False
    model = card.model.lower()
    if terms.models and not any(wanted.lower() in model for wanted in terms.models):
        return False
    return not any(model and unwanted.lower() in model for unwanted in terms.not_models)


def _choose(request: CardRequest, inventory: CardInventory, taken: Mapping[str, CardUse]) -> list[CardShare] | None:
    return _take(request, _free_cards(request.terms, inventory, taken), spread=inventory.spread)


def _take(request: CardRequest, free: Sequence[_FreeCard], *, spread: bool) -> list[CardShare] | None:
    """Take the cards for one pod, container after container; None where there are too few."""
    spread = spread if request.terms.spread is None else request.terms.spread
    shares: list[CardShare] = []
    for need in request.needs:
        picked = _pick(need, [each for each in free if each.times(need)], request.terms, spread=spread)
        if picked is None:
            return None
        shares += [each.take(need) for each in picked]
    return shares


def _pick(need: CardNeed, takers: Sequence[_FreeCard], terms: CardTerms, *, spread: bool) -> Sequence[_FreeCard] | None:
    """Return the cards for one container among those that take it."""
    if terms.one_numa and need.count > 1:
        by_numa = [[each for each in takers if each.card.numa == numa] for numa in {t.card.numa for t in takers}]
        enough = [cards for cards in by_numa if len(cards) >= need.count]
        takers = min(enough, key=lambda cards: (len(cards), cards[0].card.numa), default=[])
    if len(takers) < need.count:
        return None
    if all(not each.shares for each in takers):
        return _nearest(takers, need.count)
    sign = 1 if spread else -1
    fullest = sorted(takers, key=lambda each: (sign * bool(each.shares), sign * each.fullness, each.card.index))
    if need.count == 1 or _costs_one(fullest, need):
        return fullest[: need.count]
    return sorted(fullest, key=lambda each: -each.times(need))[: need.count]


def _costs_one(ordered: Sequence[_FreeCard], need: CardNeed) -> bool:
    """Whether the first of these cards, once taken, leave room for all but one of the pods that fit now."""
    times = [each.times(need) for each in ordered]
    after = [count - (place < need.count) for place, count in enumerate(times)]
    return _times(after, need.count) >= _times(times, need.count) - 1


def _times(times: Sequence[int], count: int) -> int:
    """Return how many pods fit of which each takes `count` different cards that take so many."""
    if count == 1:
        return sum(times)
    pods = sum(times) // count
    while pods and sum(min(most, pods) for most in times) < count * pods:
        pods -= 1
    return pods


def _nearest(takers: Sequence[_FreeCard], count: int) -> list[_FreeCard]:
    """Return cards near one another, and rather those that are far from the ones that stay free."""
    if all(each.card.numa == takers[0].card.numa and not each.card.links for each in takers):
        return list(islice(takers, count))
    return min((_around(seed, takers, count) for seed in takers), key=lambda found: _apartness(found, takers))


def _around(seed: _FreeCard, takers: Sequence[_FreeCard], count: int) -> list[_FreeCard]:
    found = [seed]
    while len(found) < count:
        rest = [each for each in takers if each not in found]
        found.append(max(rest, key=lambda each: (sum(each.nearness(other) for other in found), -each.card.index)))
    return found


def _apartness(found: Sequence[_FreeCard], takers: Sequence[_FreeCard]) -> tuple[int, int, list[int]]:
    inside = sum(each.nearness(other) for each in found for other in found if other is not each)
    outside = sum(each.nearness(other) for each in found for other in takers if other not in found)
    return -inside, outside, [each.card.index for each in found]
