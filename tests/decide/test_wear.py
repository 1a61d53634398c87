"""What pods cost a node in whole cards, and that gangs and single pods go where that is least."""

from random import Random

from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from extender.decide.devices import choose_cards, count_fitting
from extender.decide.leaders import NOWHERE, Homes
from extender.decide.wear import wear_of
from extender.model.device import CardDialect, CardManager, CardNeed, CardRequest, CardShare, CardTerms
from extender.model.member import Member
from extender.model.node import NodeRoom
from extender.model.pod import Occupant, PodShape
from extender.model.snapshot import Snapshot
from tests.builders import GIB, GPU, a_node, a_shape, a_share, some_cards
from tests.packing import pack

HALF = a_shape(gpu=0, cards=a_share(500))
WHOLE = a_shape(gpu=0, cards=a_share(1000))


def a_room(name: str, *taken_milli: int, cards: int = 4) -> NodeRoom:
    """Return a node of which so much is taken of the first cards; 0 leaves one as it is."""
    inventory = some_cards(cards, prefix=f"GPU-{name}")
    shares = tuple(
        CardShare(index, f"GPU-{name}-{index}", milli, 16 * GIB * milli // 1000)
        for index, milli in enumerate(taken_milli)
        if milli
    )
    room = NodeRoom(a_node(name, gpu=cards, inventory=inventory))
    return room.having(Occupant(a_shape(gpu=0), cards=shares)) if shares else room


def nodes_for(shape: PodShape, *rooms: NodeRoom, count: int = 1, homes: Homes = NOWHERE) -> list[str]:
    snapshot = Snapshot(1, {room.node.name: room for room in rooms})
    placements = pack([Member(shape)] * count, snapshot, required=count, homes=homes).placements
    return sorted(placement.node for placement in placements)


def test_a_share_rather_goes_beside_others_than_to_a_node_that_is_nearly_full_of_whole_cards() -> None:
    assert nodes_for(HALF, a_room("tight", 1000, 1000, 1000), a_room("shared", 500)) == ["shared"]


def test_of_cards_in_use_the_fullest_of_the_cluster_is_filled() -> None:
    third = a_shape(gpu=0, cards=a_share(300))
    assert nodes_for(third, a_room("a", 400, 400), a_room("b", 600), a_room("c", 800, 500)) == ["b"]


def test_where_a_card_must_be_opened_it_is_on_the_node_with_the_fewest_whole_ones() -> None:
    assert nodes_for(HALF, a_room("empty"), a_room("half", 1000, 1000), a_room("most", 1000)) == ["half"]


def test_whole_cards_are_taken_where_they_leave_the_most_to_large_requests() -> None:
    assert nodes_for(WHOLE, a_room("empty"), a_room("one", 800), a_room("two", 800, 800)) == ["two"]
    two = a_shape(gpu=0, cards=a_share(1000, count=2))
    assert nodes_for(two, a_room("empty"), a_room("one", 800), a_room("two", 800, 800)) == ["two"]


def test_so_are_whole_cards_that_the_kubelet_picks() -> None:
    four = a_shape(gpu=4, cards=a_share(1000, count=4, dialect=CardDialect.WHOLE))
    six, five = NodeRoom(a_node("a", gpu=6)), NodeRoom(a_node("b", gpu=5))
    assert nodes_for(four, six, five) == ["b"]


def test_a_gang_of_shares_is_rather_on_one_node_and_there_where_it_opens_fewer_cards() -> None:
    empty, shared, small = a_room("empty"), a_room("shared", 500, 500), a_room("small", 500, cards=1)
    assert nodes_for(HALF, empty, shared, small, count=4) == ["shared"] * 4


def test_siblings_matter_more_than_whole_cards() -> None:
    assert nodes_for(HALF, a_room("home"), a_room("shared", 500), homes={"home": False}) == ["home"]


def test_who_wants_to_be_spread_goes_where_most_cards_are_free() -> None:
    request = structs.replace(a_share(500), terms=CardTerms(spread=True))
    assert nodes_for(a_shape(gpu=0, cards=request), a_room("shared", 500), a_room("empty")) == ["empty"]


def test_a_gang_of_many_sizes_that_fills_all_cards_to_the_brim_finds_its_room() -> None:
    chance = Random("to the brim")  # noqa: S311 - chance that can be repeated
    for _ in range(40):
        tenths = [size for _ in range(4) for size in chance.choice([(10,), (7, 3), (5, 3, 2), (6, 4), (4, 3, 2, 1)])]
        chance.shuffle(tenths)
        members = [Member(a_shape(gpu=0, cards=a_share(100 * size)), uid=str(i)) for i, size in enumerate(tenths)]
        rooms = {room.node.name: room for room in (a_room("n1", cards=2), a_room("n2", cards=2))}
        assert not pack(members, Snapshot(1, rooms), required=len(members)).left_over, tenths


def test_pods_that_ask_for_no_cards_cost_none() -> None:
    assert wear_of(a_shape(gpu=0), a_room("n1"), 3) == 0


@given(
    st.lists(st.sampled_from([0, 0, 100, 300, 500, 700]), min_size=4, max_size=4),
    st.tuples(st.integers(1, 2), st.sampled_from([100, 300, 500, 1000]), st.integers(1, 2)),
    st.integers(1, 6),
)
def test_a_node_where_fewer_cards_are_opened_costs_less(
    taken: list[int], asked: tuple[int, int, int], count: int
) -> None:
    cards, milli, containers = asked
    needs = tuple(CardNeed(cards, milli, memory_milli=milli, container=number) for number in range(containers))
    request = CardRequest(CardDialect.KUBESHARE_2, needs, containers=containers)
    shape = a_shape(gpu=0, cards=request)
    room = a_room("n1", *taken)
    count = min(count, count_fitting(request, room))
    opened = len(placed(request, room, count).taken_cards) - len(room.taken_cards)
    assert wear_of(shape, room, count) // (1 << 36) == opened, "this is what its number says first"


def placed(request: CardRequest, room: NodeRoom, count: int) -> NodeRoom:
    for _ in range(count):
        room = room.having(Occupant(a_shape(gpu=0, cards=request), cards=choose_cards(request, room)))
    return room


def test_a_manager_that_heeds_us_has_its_whole_cards_counted_as_well() -> None:
    inventory = some_cards(4, manager=CardManager.HAMI)
    empty = NodeRoom(a_node("a", gpu=4, inventory=inventory))
    share = CardShare(0, "GPU-0", 300)
    used = NodeRoom(a_node("b", gpu=4, inventory=inventory)).having(Occupant(a_shape(gpu=0), cards=(share,)))
    whole = a_shape(requests={GPU: 1}, cards=a_share(1000, dialect=CardDialect.WHOLE))
    assert nodes_for(whole, empty, used) == ["b"]
