"""Which cards of a node does a pod get, and is there room on them?

Fractions go to the fullest card that takes them, so that whole cards stay free; whole cards are taken where they are
near one another, and so that those which stay free are near one another, too. A pod may ask for the contrary, to be
spread. A node's cards are either all chosen by us or all picked by its kubelet: neither knows what the other one took.

A card whose cores are all taken takes nobody more, and who asks for all cores wants the card for himself: HAMi's rules
(its scheduler's fitInDevices), which agree with the other systems'.
"""

from collections.abc import Mapping, Sequence
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
from extender.model.pod import Occupant, PodShape
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

PPM: Final = 1_000_000
ANY_CARD: Final = CardTerms()
UNUSED: Final = CardUse()


def fit_cards(request: CardRequest | BadCardRequest, room: NodeRoom) -> tuple[CardReason, ...]:
    """Return why the node's cards do not do for such a pod; empty if they do."""
    if isinstance(request, BadCardRequest):
        return (CardRequestBad(request.problem),)
    inventory = inventory_for(request, room)
    if inventory is None:
        if request.dialect is not CardDialect.WHOLE:
            return (CardsNotServed(request.dialect),)
        return (CardsChosen(),) if room.taken_cards else ()
    if inventory.problem:
        return (CardsUnreadable(inventory.problem),)
    if room.unknown_cards:
        return (CardsHandedOutWhole(),)
    if _is_enough(request, inventory, room.taken_cards):
        return ()
    return (TooLittleOfCards(),) if _is_enough(request, inventory, {}) else (NoCardMatches(),)


def choose_cards(request: CardRequest | BadCardRequest, room: NodeRoom) -> tuple[CardShare, ...]:
    """Return the cards that such a pod gets on the node; none where it does not fit, or the kubelet picks them."""
    inventory = inventory_for(request, room)
    if inventory is None or isinstance(request, BadCardRequest) or room.unknown_cards:
        return ()
    return tuple(take_cards(request, free_cards(request.terms, inventory, room.taken_cards), inventory) or ())


def count_fitting(request: CardRequest | BadCardRequest, room: NodeRoom) -> int:
    """Return how many such pods the node's cards take beside one another."""
    if isinstance(request, BadCardRequest):
        return 0
    inventory = inventory_for(request, room)
    if inventory is None:
        return MOST_PODS if request.dialect is CardDialect.WHOLE and not room.taken_cards else 0
    if room.unknown_cards or inventory.problem:
        return 0
    if len(request.needs) == 1:
        return _count_alone(request.needs[0], request.terms, inventory, room.taken_cards)
    free = free_cards(request.terms, inventory, room.taken_cards)
    return next((count for count in range(MOST_PODS) if take_cards(request, free, inventory) is None), MOST_PODS)


def overdrawn_cards(room: NodeRoom) -> frozenset[str]:
    """Return the keys of the cards of which more is taken than there is; all of those that are gone or unhealthy."""
    cards = {card.key: card for card in (room.node.inventory.cards if room.node.inventory else ())}
    return frozenset(key for key, use in room.taken_cards.items() if key not in cards or not _holds(cards[key], use))


def are_still_free(pod: Occupant, room: NodeRoom) -> bool:
    """Whether the cards of a pod that ran there are as it had them; nobody else gets one that is gone or unhealthy."""
    inventory, after = room.node.inventory, room.having(pod)
    if inventory is None:
        return True
    if not pod.cards:
        return after.unknown_cards == room.unknown_cards or not room.taken_cards
    if room.unknown_cards:
        return False
    cards = {card.key: card for card in inventory.cards if card.healthy}
    shared = [(cards[key], share, key) for share in pod.cards if (key := inventory.key_of(share)) in cards]
    return all(
        _holds(card, after.taken_cards[key]) and not _is_for_one(card, share, room.taken_cards.get(key, UNUSED))
        for card, share, key in shared
    )


def _is_for_one(card: Card, share: CardShare, others: CardUse) -> bool:
    """Whether the pod or one of the others has all cores of the card, and so must be alone there."""
    return bool(others.shares) and max(share.core_milli, others.core_milli) >= card.core_milli


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
        return not room.taken_cards
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
    uses = [taken.get(card.key, UNUSED) for card in inventory.cards]
    return inventory.manager, inventory.spread, room.unknown_cards, *zip(cards, uses, strict=True)


def inventory_for(request: CardRequest | BadCardRequest, room: NodeRoom) -> CardInventory | None:
    """Return the node's cards where those of such a pod are ours to choose."""
    inventory = room.node.inventory
    if inventory is None or isinstance(request, BadCardRequest):
        return None
    return inventory if request.dialect in CHOICES[inventory.manager] else None


def _is_enough(request: CardRequest, inventory: CardInventory, taken: Mapping[str, CardUse]) -> bool:
    if len(request.needs) > 1:
        return take_cards(request, free_cards(request.terms, inventory, taken), inventory) is not None
    return _count_alone(request.needs[0], request.terms, inventory, taken, most=1) > 0


def _count_alone(
    need: CardNeed, terms: CardTerms, inventory: CardInventory, taken: Mapping[str, CardUse], most: int = MOST_PODS
) -> int:
    """Return how many pods of one container that asks for cards find them; it is told up to `most`."""
    any_will_do = terms == ANY_CARD
    by_numa: dict[int, list[int]] = {}
    for card in inventory.cards:
        if card.healthy and (any_will_do or is_wanted(card, terms)):
            times = times_on(card, taken.get(card.key, UNUSED), need)
            if times:
                by_numa.setdefault(card.numa if terms.one_numa else 0, []).append(times)
    return sum(_times(times, need.count, most) for times in by_numa.values())


def times_on(card: Card, use: CardUse, need: CardNeed) -> int:
    """Return how many such needs fit on the card one after the other."""
    core_milli = card.core_milli - use.core_milli
    if core_milli <= 0 or (use.shares and (need.idle or need.core_milli >= card.core_milli)):
        return 0
    times = 1 if need.idle else card.slots - use.shares if card.slots else MOST_PODS
    if need.core_milli:
        times = min(times, core_milli // need.core_milli)
    memory_bytes = need.memory_bytes or (need.memory_milli and _memory_on(card, need))
    if memory_bytes:
        times = min(times, (card.memory_bytes - use.memory_bytes) // memory_bytes)
    return max(0, times)


def fullness_of(card: Card, use: CardUse) -> int:
    """Return how much of the card is taken, in millionths, of what is taken most of."""
    of_core = PPM * use.core_milli // card.core_milli
    return max(of_core, PPM * use.memory_bytes // card.memory_bytes) if card.memory_bytes else of_core


def _memory_on(card: Card, need: CardNeed) -> int:
    """Return how much memory of the card the need comes to."""
    part = card.memory_bytes * need.memory_milli // 1000
    return need.memory_bytes or part - part % need.memory_unit


class FreeCard:
    """A card that will do, with what is taken of it while cards are chosen."""

    __slots__ = ("card", "use")

    def __init__(self, card: Card, use: CardUse) -> None:
        self.card = card
        self.use = use

    def take(self, need: CardNeed) -> CardShare:
        """Give it to a container."""
        card = self.card
        share = CardShare(card.index, card.uuid, need.core_milli, _memory_on(card, need), container=need.container)
        self.use = self.use.plus(share, 1)
        return share

    def nearness(self, other: "FreeCard") -> int:
        """Return how near the cards are, as far as the inventory says it."""
        if self.card.links:
            return next((near for key, near in self.card.links if key == other.card.key), 0)
        return int(self.card.numa == other.card.numa >= 0)


def free_cards(terms: CardTerms, inventory: CardInventory, taken: Mapping[str, CardUse]) -> list[FreeCard]:
    """Return the healthy cards that will do."""
    any_will_do = terms == ANY_CARD
    return [
        FreeCard(card, taken.get(card.key, UNUSED))
        for card in inventory.cards
        if card.healthy and (any_will_do or is_wanted(card, terms))
    ]


def is_wanted(card: Card, terms: CardTerms) -> bool:
    """Whether the card is one of those that will do."""
    if terms.uuids and card.uuid not in terms.uuids:
        return False
    if (card.uuid and card.uuid in terms.not_uuids) or (terms.mode and card.mode not in terms.mode):
        return False
    model = card.model.lower()
    if terms.exact_model and terms.exact_model.lower() != model:
        return False
    if terms.models and not any(wanted.lower() in model for wanted in terms.models):
        return False
    return not any(model and unwanted.lower() in model for unwanted in terms.not_models)


def is_spread(request: CardRequest, inventory: CardInventory) -> bool:
    """Whether the pod's shares go to the emptiest cards."""
    return inventory.spread if request.terms.spread is None else request.terms.spread


def take_cards(request: CardRequest, free: Sequence[FreeCard], inventory: CardInventory) -> list[CardShare] | None:
    """Take the cards for one pod, the largest container first; None where there are too few."""
    needs = request.needs
    if len(needs) > 1:
        needs = tuple(
            sorted(needs, key=lambda each: (each.core_milli, each.memory_bytes, each.memory_milli), reverse=True)
        )
    spread = is_spread(request, inventory)
    shares: list[CardShare] = []
    for need in needs:
        takers = [each for each in free if times_on(each.card, each.use, need)]
        picked = _pick(need, takers, request.terms, spread=spread)
        if picked is None:
            return None
        shares += [each.take(need) for each in picked]
    return sorted(shares, key=lambda share: share.container) if len(needs) > 1 else shares


def _pick(need: CardNeed, takers: Sequence[FreeCard], terms: CardTerms, *, spread: bool) -> Sequence[FreeCard] | None:
    """Return the cards for one container among those that take it."""
    if terms.one_numa and need.count > 1:
        by_numa = _by_numa(takers).values()
        enough = [cards for cards in by_numa if len(cards) >= need.count]
        takers = min(enough, key=lambda cards: (len(cards), cards[0].card.numa), default=[])
    if len(takers) <= need.count:
        return takers if len(takers) == need.count else None
    used = [each for each in takers if each.use.shares]
    if need.count == 1 and used and not spread:
        return [max(used, key=lambda each: (fullness_of(each.card, each.use), -each.card.index))]
    best = _by_fullness(takers, spread=spread) if used else _nearest_first(takers, need.count)
    if need.count == 1 or _costs_one(best, need):
        return best[: need.count]
    return sorted(best, key=lambda each: -times_on(each.card, each.use, need))[: need.count]


def _by_fullness(takers: Sequence[FreeCard], *, spread: bool) -> list[FreeCard]:
    sign = 1 if spread else -1
    return sorted(
        takers,
        key=lambda each: (sign * bool(each.use.shares), sign * fullness_of(each.card, each.use), each.card.index),
    )


def _nearest_first(takers: Sequence[FreeCard], count: int) -> list[FreeCard]:
    near = _nearest(takers, count)
    return [*near, *(each for each in takers if each not in near)]


def _costs_one(ordered: Sequence[FreeCard], need: CardNeed) -> bool:
    """Whether the first of these cards, once taken, leave room for all but one of the pods that fit now."""
    times = [times_on(each.card, each.use, need) for each in ordered]
    after = [count - (place < need.count) for place, count in enumerate(times)]
    return _times(after, need.count) >= _times(times, need.count) - 1


def _times(times: Sequence[int], count: int, most: int = MOST_PODS) -> int:
    """Return how many pods fit, up to `most`, of which each takes `count` different cards that take so many."""
    if count == 1:
        return min(most, sum(times))
    pods = min(most, sum(times) // count)
    while pods:
        in_turn = sum(min(each, pods) for each in times) // count  # none takes a pod twice, so that more never fit
        if in_turn >= pods:
            break
        pods = in_turn
    return pods


def _by_numa(cards: Sequence[FreeCard]) -> dict[int, list[FreeCard]]:
    groups: dict[int, list[FreeCard]] = {}
    for each in cards:
        groups.setdefault(each.card.numa, []).append(each)
    return groups


def _nearest(takers: Sequence[FreeCard], count: int) -> Sequence[FreeCard]:
    """Return cards near one another, and rather those that are far from the ones that stay free."""
    groups = _by_numa(takers)
    if not any(each.card.links for each in takers) and (len(groups) == 1 or -1 not in groups):
        enough = [cards for cards in groups.values() if len(cards) >= count]
        if enough:
            return min(enough, key=len)[:count]
    return min((_around(seed, takers, count) for seed in takers), key=lambda found: _apartness(found, takers))


def _around(seed: FreeCard, takers: Sequence[FreeCard], count: int) -> list[FreeCard]:
    found = [seed]
    while len(found) < count:
        rest = [each for each in takers if each not in found]
        found.append(max(rest, key=lambda each: (sum(each.nearness(other) for other in found), -each.card.index)))
    return found


def _apartness(found: Sequence[FreeCard], takers: Sequence[FreeCard]) -> tuple[int, int, list[int]]:
    inside = sum(each.nearness(other) for each in found for other in found if other is not each)
    outside = sum(each.nearness(other) for each in found for other in takers if other not in found)
    return -inside, outside, [each.card.index for each in found]
