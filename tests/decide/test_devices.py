"""Which cards of a node a pod gets, and whether there is room on them: scenarios, and brute force on small nodes."""

from collections.abc import Iterator, Sequence
from itertools import combinations

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from extender.decide.devices import choose_cards, count_fitting, fit_cards
from extender.model.device import (
    BadCardRequest,
    Card,
    CardDialect,
    CardInventory,
    CardManager,
    CardNeed,
    CardRequest,
    CardShare,
    CardTerms,
    CardUse,
)
from extender.model.node import NodeRoom
from extender.model.pod import Occupant
from extender.model.verdict import (
    CardRequestBad,
    CardsChosen,
    CardsHandedOutWhole,
    CardsNotServed,
    NoCardMatches,
    TooLittleOfCards,
)
from tests.builders import GIB, a_node, a_shape, a_share, some_cards

HALF = a_share(500)
WHOLE = a_share(1000)
SPREAD = CardTerms(spread=True)


def room_of(*cards: Card, manager: CardManager = CardManager.OWN, spread: bool = False) -> NodeRoom:
    inventory = CardInventory(manager, cards, frozenset({"nvidia.com/gpu"}), spread)
    return NodeRoom(a_node("n1", inventory=inventory))


def eight(**changes: object) -> NodeRoom:
    """Return a node of eight cards, four at each NUMA node."""
    return room_of(*[structs.replace(Card(i, f"GPU-{i}", 16 * GIB, numa=i // 4), **changes) for i in range(8)])


def used(room: NodeRoom, **taken: int) -> NodeRoom:
    """Return it with so many milli-GPU taken of cards, by `GPU_0` and so on; of their memory likewise."""
    for name, milli in taken.items():
        share = CardShare(0, name.replace("_", "-"), milli, 16 * GIB * milli // 1000)
        room = room.having(Occupant(a_shape(gpu=0), cards=(share,)))
    return room


def on(room: NodeRoom, *requests: CardRequest) -> list[list[int]]:
    """Place pods one after the other; return the indices of the cards that each got."""
    got = []
    for request in requests:
        shares = choose_cards(request, room)
        assert bool(shares) == (not fit_cards(request, room))
        room = room.having(Occupant(a_shape(gpu=0, cards=request), cards=shares)) if shares else room
        got.append([share.index for share in shares])
    return got


# --- a share of one card


def test_a_share_goes_to_the_fullest_card_that_takes_it() -> None:
    assert on(used(eight(), GPU_1=300, GPU_2=600, GPU_3=700), a_share(400)) == [[2]]


def test_shares_fill_one_card_before_the_next_is_opened() -> None:
    assert on(eight(), *[a_share(300)] * 4) == [[0], [0], [0], [1]]


def test_the_fullest_is_told_by_what_is_taken_most_of() -> None:
    room = room_of(*[Card(i, f"GPU-{i}", 16 * GIB) for i in range(2)])
    first, second = CardShare(0, "GPU-0", 400, 4 * GIB), CardShare(1, "GPU-1", 100, 8 * GIB)
    room = room.having(Occupant(a_shape(gpu=0), cards=(first, second)))
    assert on(room, a_share(100, memory_bytes=GIB)) == [[1]]


def test_memory_alone_can_fill_a_card() -> None:
    room = room_of(Card(0, "GPU-0", 16 * GIB))
    memory_only = CardRequest(CardDialect.KUBESHARE_1, (CardNeed(memory_bytes=6 * GIB),))
    assert count_fitting(memory_only, room) == 2
    assert on(room, *[memory_only] * 3) == [[0], [0], []]


def test_of_unequal_cards_those_far_apart_are_taken_where_the_near_ones_would_strand_the_rest() -> None:
    large, *small = (Card(i, f"GPU-{i}", 16 * GIB, 800 if i else 1000, numa=min(i, 1)) for i in range(3))
    two_halves = a_share(500, count=2)
    assert count_fitting(two_halves, room_of(large, *small)) == 2
    assert on(room_of(large, *small), two_halves, two_halves, two_halves) == [[0, 1], [0, 2], []]


def test_a_part_of_the_memory_is_rounded_down_as_the_managers_do() -> None:
    need = CardNeed(core_milli=100, memory_milli=333, memory_unit=GIB)
    (share,) = choose_cards(CardRequest(CardDialect.KUBESHARE_1, (need,)), room_of(Card(0, "a", 16 * GIB)))
    assert share == CardShare(0, "a", 100, 5 * GIB)


def test_so_many_share_a_card_as_it_has_slots() -> None:
    room = room_of(Card(0, "a", 16 * GIB, slots=2), Card(1, "b", 16 * GIB, slots=2))
    assert count_fitting(a_share(10), room) == 4
    assert on(room, *[a_share(10)] * 5) == [[0], [0], [1], [1], []]


def test_a_card_whose_cores_are_all_taken_takes_nobody_more() -> None:
    room = used(room_of(Card(0, "GPU-0", 16 * GIB)), GPU_0=1000)
    memory_only = CardRequest(CardDialect.KUBESHARE_1, (CardNeed(memory_bytes=0),))
    assert fit_cards(memory_only, room) == (TooLittleOfCards(),)


def test_who_asks_for_all_cores_wants_the_card_for_himself() -> None:
    room = room_of(Card(0, "GPU-0", 16 * GIB), Card(1, "GPU-1", 16 * GIB))
    idle = CardShare(0, "GPU-0", 0, GIB)
    room = room.having(Occupant(a_shape(gpu=0), cards=(idle,)))
    all_cores = a_share(1000, memory_bytes=GIB)
    assert on(room, all_cores, all_cores) == [[1], []]


def test_spread_goes_to_the_emptiest_card() -> None:
    room = used(eight(), GPU_0=300, GPU_1=100)
    spread = structs.replace(HALF, terms=SPREAD)
    assert on(room, *[spread] * 6, spread) == [[2], [3], [4], [5], [6], [7], [1]]


def test_a_node_whose_manager_spreads_does_unless_the_pod_says_otherwise() -> None:
    room = used(room_of(*[Card(i, f"GPU-{i}", 16 * GIB) for i in range(3)], spread=True), GPU_1=200)
    assert on(room, HALF) == [[0]]
    assert on(room, structs.replace(HALF, terms=CardTerms(spread=False))) == [[1]]


# --- whole cards, and several


def test_whole_cards_are_taken_at_the_numa_node_where_they_are_fewest() -> None:
    assert on(used(eight(), GPU_0=100), a_share(1000, count=2), a_share(1000, count=4)) == [[1, 2], [4, 5, 6, 7]]


def test_whole_cards_are_taken_where_their_links_are_best() -> None:
    pairs = {0: 2, 2: 0, 1: 3, 3: 1}
    cards = [
        Card(i, f"GPU-{i}", links=tuple((f"GPU-{j}", 4 if pairs[i] == j else 1) for j in range(4) if j != i))
        for i in range(4)
    ]
    two = a_share(1000, count=2)
    assert on(room_of(*cards), two, two) == [[0, 2], [1, 3]]
    assert on(room_of(*cards), WHOLE, two) == [[0], [1, 3]]


def test_a_single_card_leaves_those_together_that_are_near_one_another() -> None:
    assert on(used(eight(), GPU_0=1000, GPU_1=1000), HALF, WHOLE) == [[2], [3]]


def test_several_shares_of_one_container_are_on_different_cards() -> None:
    room = room_of(*[Card(i, f"GPU-{i}", 16 * GIB) for i in range(3)])
    two = a_share(400, count=2)
    assert count_fitting(two, room) == 3
    assert on(room, two, two, two, two)[3] == []


def test_the_fullest_cards_are_not_taken_together_where_that_strands_the_next_pod() -> None:
    room = used(room_of(*[Card(i, f"GPU-{i}", 16 * GIB) for i in range(3)]), GPU_0=600, GPU_1=600)
    two = a_share(400, count=2)
    assert count_fitting(two, room) == 2
    assert [len(cards) for cards in on(room, two, two)] == [2, 2]


def test_cards_that_together_must_be_at_one_numa_node_are() -> None:
    room = used(eight(), GPU_0=600, GPU_4=600, GPU_5=600)
    three = structs.replace(a_share(1000, count=3), terms=CardTerms(one_numa=True))
    assert count_fitting(three, room) == 1
    assert on(room, three, three) == [[1, 2, 3], []]


def test_containers_of_a_pod_may_share_a_card_and_each_is_told_its_own() -> None:
    needs = (CardNeed(core_milli=300, container=1), CardNeed(core_milli=600, container=2))
    shares = choose_cards(CardRequest(CardDialect.KUBESHARE_1, needs, containers=3), eight())
    assert [(share.index, share.core_milli, share.container) for share in shares] == [(0, 300, 1), (0, 600, 2)]


def test_a_small_container_does_not_take_the_place_of_a_larger_one() -> None:
    room = used(room_of(*[Card(i, f"GPU-{i}") for i in range(2)]), GPU_0=500, GPU_1=600)
    needs = tuple(CardNeed(core_milli=milli, container=i) for i, milli in enumerate((200, 400, 300)))
    shares = choose_cards(CardRequest(CardDialect.KUBESHARE_1, needs, containers=3), room)
    assert [(share.container, share.index) for share in shares] == [(0, 0), (1, 1), (2, 0)]


# --- which cards will do


def test_models_and_uuids_are_wanted_or_not() -> None:
    cards = [Card(0, "a", model="NVIDIA A100-SXM4"), Card(1, "b", model="Tesla T4"), Card(2, "c", model="NVIDIA A100")]
    room = room_of(*cards)

    def placed(terms: CardTerms) -> list[int]:
        return on(room, structs.replace(HALF, terms=terms))[0]

    assert placed(CardTerms(models=("t4",))) == [1]
    assert placed(CardTerms(not_models=("a100",))) == [1]
    assert placed(CardTerms(uuids=("c", "x"))) == [2]
    assert placed(CardTerms(not_uuids=("a", "b"))) == [2]
    assert placed(CardTerms(models=("A100",), not_uuids=("a",))) == [2]
    assert placed(CardTerms(models=("H100",))) == []
    assert placed(CardTerms(exact_model="nvidia a100")) == [2]
    assert placed(CardTerms(exact_model="A100")) == []


def test_a_card_that_is_shared_in_another_way_than_is_wanted_will_not_do() -> None:
    room = room_of(Card(0, "a", mode="mps"), Card(1, "b", mode="hami-core"), Card(2, "c"))
    for mode, indices in (("hami-core", [1, 2]), ("mps", [0, 2]), ("mig", [2]), ("", [0, 1, 2])):
        got = on(room, *[structs.replace(WHOLE, terms=CardTerms(mode=mode))] * 3)
        assert sorted(index for each in got for index in each) == indices


def test_who_wants_an_idle_card_gets_one_that_nobody_uses_and_each_container_its_own() -> None:
    room = used(room_of(Card(0, "GPU-0"), Card(1, "GPU-1"), Card(2, "GPU-2")), GPU_0=100)
    one = CardNeed(core_milli=100, idle=True)
    single, both = (CardRequest(CardDialect.KUBESHARE_1, needs) for needs in ((one,), (one, one)))
    assert (count_fitting(single, room), on(room, single, single)) == (2, [[1], [2]])
    assert on(room, both) == [[1, 2]]
    assert fit_cards(single, used(room_of(Card(0, "GPU-0")), GPU_0=100)) == (TooLittleOfCards(),)


def test_an_unhealthy_card_gets_nothing_new() -> None:
    room = room_of(Card(0, "a", healthy=False), Card(1, "b"))
    assert (count_fitting(HALF, room), on(room, HALF)) == (2, [[1]])


def test_too_little_is_told_from_none_that_would_ever_do() -> None:
    room = used(room_of(Card(0, "GPU-0", 16 * GIB)), GPU_0=700)
    assert fit_cards(HALF, room) == (TooLittleOfCards(),)
    assert fit_cards(a_share(500, count=2), room) == (NoCardMatches(),)
    assert fit_cards(structs.replace(HALF, terms=CardTerms(models=("H100",))), room) == (NoCardMatches(),)
    assert fit_cards(BadCardRequest("it is odd"), room) == (CardRequestBad("it is odd"),)


# --- the kubelet's choice and ours


def test_whole_cards_that_the_kubelet_picks_and_chosen_ones_are_never_on_one_node() -> None:
    room = room_of(Card(0, "a"), Card(1, "b"))
    plain = a_share(1000, dialect=CardDialect.WHOLE)
    assert (fit_cards(plain, room), choose_cards(plain, room)) == ((), ())
    picked = room.having(Occupant(a_shape(gpu=1, cards=plain)))
    assert (fit_cards(HALF, picked), count_fitting(HALF, picked)) == ((CardsHandedOutWhole(),), 0)
    assert fit_cards(plain, picked) == ()
    chosen = room.having(Occupant(a_shape(gpu=0, cards=HALF), cards=choose_cards(HALF, room)))
    assert (fit_cards(plain, chosen), count_fitting(plain, chosen)) == ((CardsChosen(),), 0)


def test_a_node_gives_cards_in_its_managers_terms_only() -> None:
    hami = NodeRoom(a_node("n1", inventory=some_cards(manager=CardManager.HAMI)))
    assert fit_cards(HALF, hami) == (CardsNotServed(CardDialect.KUBESHARE_1),)
    assert on(hami, a_share(1000, dialect=CardDialect.WHOLE), a_share(400, dialect=CardDialect.HAMI)) == [[0], [1]]
    assert fit_cards(HALF, NodeRoom(a_node("n1"))) == (CardsNotServed(CardDialect.KUBESHARE_1),)


# --- brute force

_amounts = st.sampled_from([0, 200, 300, 500, 700, 1000])
_cards = st.lists(
    st.builds(
        lambda *parts: parts,
        st.sampled_from([4 * GIB, 8 * GIB]),
        st.integers(-1, 1),
        st.sampled_from([0, 0, 1, 2]),
        st.sampled_from([True, True, True, False]),
        st.sampled_from(["", "A100", "T4"]),
        st.sampled_from([1000, 1000, 800]),
    ),
    min_size=1,
    max_size=3,
)
_need = st.builds(
    lambda count, core, memory, milli: CardNeed(count, core, memory * GIB, 0 if memory else milli),
    st.integers(1, 3),
    _amounts,
    st.sampled_from([0, 0, 1, 3]),
    _amounts,
).filter(lambda need: bool(need.core_milli or need.memory_bytes or need.memory_milli))
_terms = st.builds(
    CardTerms,
    models=st.sampled_from([(), (), ("a100",)]),
    not_models=st.sampled_from([(), (), ("t4",)]),
    uuids=st.sampled_from([(), (), ("GPU-0", "GPU-2")]),
    not_uuids=st.sampled_from([(), (), ("GPU-1",)]),
    one_numa=st.booleans(),
    spread=st.sampled_from([None, True, False]),
)
_taken = st.dictionaries(
    st.sampled_from(["GPU-0", "GPU-1", "GPU-2"]),
    st.builds(lambda core, memory, n: CardUse(core, memory * GIB, n), _amounts, st.integers(0, 8), st.integers(1, 2)),
    max_size=2,
)


def a_drawn_room(cards: Sequence[tuple[int, int, int, bool, str, int]], taken: dict[str, CardUse]) -> NodeRoom:
    known = [
        Card(i, f"GPU-{i}", memory, core, model, healthy, numa, slots)
        for i, (memory, numa, slots, healthy, model, core) in enumerate(cards)
    ]
    return structs.replace(room_of(*known), taken_cards=taken)


def does_it_take(card: Card, use: CardUse, need: CardNeed, terms: CardTerms) -> CardUse | None:
    """Say what is taken of the card with the need on it; None where it does not go there. The rules, as plain ones."""
    memory = need.memory_bytes or card.memory_bytes * need.memory_milli // 1000
    model = card.model.lower()
    allowed = [
        card.healthy,
        not terms.models or any(each in model for each in terms.models),
        not any(each in model for each in terms.not_models if model),
        not terms.uuids or card.uuid in terms.uuids,
        card.uuid not in terms.not_uuids,
        use.core_milli < card.core_milli,
        use.core_milli + need.core_milli <= card.core_milli,
        not memory or use.memory_bytes + memory <= card.memory_bytes,
        not card.slots or use.shares < card.slots,
        need.core_milli < card.core_milli or not use.shares,
    ]
    return (
        CardUse(use.core_milli + need.core_milli, use.memory_bytes + memory, use.shares + 1) if all(allowed) else None
    )


def ways(room: NodeRoom, needs: Sequence[CardNeed], terms: CardTerms) -> Iterator[NodeRoom]:
    """Yield every way to give these containers their cards."""
    if not needs:
        yield room
        return
    inventory = room.node.inventory
    assert inventory is not None
    for cards in combinations(inventory.cards, needs[0].count):
        if terms.one_numa and len({card.numa for card in cards}) > 1:
            continue
        after = {c.key: does_it_take(c, room.taken_cards.get(c.key, CardUse()), needs[0], terms) for c in cards}
        if all(after.values()):
            taken = {**room.taken_cards, **after}
            yield from ways(structs.replace(room, taken_cards=taken), needs[1:], terms)


def most_that_fit(request: CardRequest, room: NodeRoom, limit: int = 6) -> int:
    """Return how many such pods could be there in the best of all ways."""
    rooms = [room]
    for count in range(limit):
        by_use = {
            tuple(sorted(after.taken_cards.items(), key=lambda item: item[0])): after
            for each in rooms
            for after in ways(each, request.needs, request.terms)
        }
        if not by_use:
            return count
        rooms = list(by_use.values())
    return limit


@settings(max_examples=300, deadline=None)
@given(_cards, _taken, _need, _terms)
def test_of_one_container_exactly_as_many_fit_as_can_and_placing_them_reaches_it(
    cards: list[tuple[int, int, int, bool, str, int]], taken: dict[str, CardUse], need: CardNeed, terms: CardTerms
) -> None:
    request = CardRequest(CardDialect.KUBESHARE_1, (need,), terms)
    room = a_drawn_room(cards, taken)
    counted = min(6, count_fitting(request, room))
    assert counted == most_that_fit(request, room)
    assert counted == len(placed_one_by_one(request, room, 6))


@settings(max_examples=300, deadline=None)
@given(_cards, _taken, st.lists(_need, min_size=2, max_size=3), _terms)
def test_of_several_containers_never_more_fit_than_can(
    cards: list[tuple[int, int, int, bool, str, int]],
    taken: dict[str, CardUse],
    needs: list[CardNeed],
    terms: CardTerms,
) -> None:
    numbered = tuple(structs.replace(need, container=i) for i, need in enumerate(needs))
    request = CardRequest(CardDialect.KUBESHARE_1, numbered, terms, containers=len(needs))
    room = a_drawn_room(cards, taken)
    counted = min(6, count_fitting(request, room))
    assert counted <= most_that_fit(request, room)
    assert counted == len(placed_one_by_one(request, room, 6))


def placed_one_by_one(request: CardRequest, room: NodeRoom, most: int) -> list[tuple[CardShare, ...]]:
    """Place such pods until none fits, and check each: it is one of all the ways that there are."""
    got: list[tuple[CardShare, ...]] = []
    while len(got) < most:
        shares = choose_cards(request, room)
        assert bool(shares) == (not fit_cards(request, room))
        if not shares:
            break
        assert [share.container for share in shares] == [n.container for n in request.needs for _ in range(n.count)]
        after = room.having(Occupant(a_shape(gpu=0, cards=request), cards=shares))
        assert any(dict(way.taken_cards) == after.taken_cards for way in ways(room, request.needs, request.terms))
        room = after
        got.append(shares)
    return got
