"""Whole-gang placement: what lands where, and whether a placement is found whenever there is one."""

from collections import Counter
from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from extender.decide.devices import overdrawn_cards
from extender.decide.fit import fit_node
from extender.decide.packing import Packing
from extender.decide.trial import Trial
from extender.model.device import CardDialect, CardManager
from extender.model.member import Member
from extender.model.node import Node, NodeRoom
from extender.model.pod import HostPort, Occupant
from extender.model.snapshot import Snapshot
from tests.builders import GIB, a_node, a_pod, a_room, a_shape, a_share, some_cards
from tests.packing import pack


def snapshot_of(*rooms: NodeRoom | Node) -> Snapshot:
    given_rooms = [room if isinstance(room, NodeRoom) else NodeRoom(room) for room in rooms]
    return Snapshot(1, {room.node.name: room for room in given_rooms})


def workers(count: int, gpu: int = 1, role: str = "worker") -> list[Member]:
    return [Member(a_shape(gpu=gpu), role, f"{role}{i}", f"{role}-{i}") for i in range(count)]


def nodes_of(packing: Packing) -> Counter[str]:
    return Counter(placement.node for placement in packing.placements)


def test_a_gang_lands_whole_on_the_tightest_node_that_takes_it() -> None:
    snapshot = snapshot_of(a_node("small", gpu=3), a_node("large", gpu=8), a_node("right", gpu=4))
    assert nodes_of(pack(workers(4), snapshot, required=4)) == {"right": 4}


def test_a_gang_too_large_for_one_node_spans_the_fewest() -> None:
    snapshot = snapshot_of(*[a_node(f"n{i}", gpu=2) for i in range(3)], a_node("big", gpu=4))
    assert nodes_of(pack(workers(6), snapshot, required=6)) == {"big": 4, "n0": 2}


def test_workers_land_beside_their_parameter_server() -> None:
    snapshot = snapshot_of(a_node("a", gpu=2), a_node("b", gpu=4), a_node("cpu", gpu=0))
    members = [*workers(4), Member(a_shape(gpu=0), "ps", "ps0", "ps-0")]
    packing = pack(members, snapshot, required=5)
    assert nodes_of(packing) == {"b": 5}


def test_nodes_with_siblings_come_first() -> None:
    snapshot = snapshot_of(a_node("home", gpu=1), a_node("large", gpu=8))
    assert nodes_of(pack(workers(1), snapshot, required=1, homes={"home": False})) == {"home": 1}


def test_members_of_one_class_are_placed_in_their_order_and_the_rest_is_left_over() -> None:
    packing = pack(workers(4), snapshot_of(a_node("n1", gpu=1), a_node("n2", gpu=1)), required=4)
    assert [placement.uid for placement in packing.placements] == ["worker0", "worker1"]
    assert [member.name for member in packing.left_over] == ["worker-2", "worker-3"]


def test_where_filling_nodes_strands_a_mixed_gang_the_hardest_members_go_first() -> None:
    roomy, picky = a_shape(gpu=1), a_shape(gpu=1, node_selector={"link": "nvlink"})
    snapshot = snapshot_of(a_node("plain", gpu=1), a_node("linked", gpu=2, labels={"link": "nvlink"}))
    members = [Member(roomy, "worker", f"r{i}") for i in range(1)] + [
        Member(picky, "worker", f"p{i}") for i in range(2)
    ]
    assert len(pack(members, snapshot, required=3).placements) == 3


def test_a_refused_node_is_not_used_for_that_shape() -> None:
    (member,) = workers(1)
    packing = pack([member], snapshot_of(a_node("n1")), required=1, avoid={("n1", member.shape)})
    assert packing.placements == []


def test_a_host_port_takes_one_member_a_node() -> None:
    member = Member(a_shape(gpu=0, host_ports=(HostPort(2222),)), "worker")
    packing = pack([member] * 3, snapshot_of(a_node("n1"), a_node("n2")), required=3)
    assert nodes_of(packing) == {"n1": 1, "n2": 1}


def test_a_trial_undone_is_as_before() -> None:
    snapshot = snapshot_of(a_room(a_node("n1", gpu=4), a_pod("p")))
    trial = Trial(snapshot)
    mark = trial.mark()
    trial.place(Occupant(a_shape(gpu=2)), "n1")
    assert trial.capacity(a_shape(gpu=1), "n1") == 1
    trial.undo(mark)
    assert trial.room("n1") == snapshot.rooms["n1"]


_nodes = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 400)), min_size=1, max_size=4)
_member = st.tuples(st.integers(0, 2), st.integers(1, 200), st.sampled_from(["worker", "ps"]))


@given(_nodes, _member, st.integers(1, 6))
def test_for_one_shape_a_placement_is_found_exactly_when_brute_force_finds_one(
    nodes: list[tuple[int, int]], member: tuple[int, int, str], count: int
) -> None:
    members = [_a_member(member, i) for i in range(count)]
    snapshot = snapshot_of(*_some_nodes(nodes))
    found = len(pack(members, snapshot, required=count).placements) == count
    assert found == _brute_force(members, snapshot)


@given(_nodes, st.lists(_member, min_size=1, max_size=5))
def test_a_placement_never_puts_more_on_a_node_than_fits(
    nodes: list[tuple[int, int]], wanted: list[tuple[int, int, str]]
) -> None:
    members = [_a_member(member, i) for i, member in enumerate(wanted)]
    snapshot = snapshot_of(*_some_nodes(nodes))
    packing = pack(members, snapshot, required=len(members))
    trial = Trial(snapshot)
    for placement in packing.placements:
        assert not fit_node(placement.shape, trial.room(placement.node))
        trial.place(Occupant(placement.shape), placement.node)
    assert {p.uid for p in packing.placements} | {m.uid for m in packing.left_over} == {m.uid for m in members}


def _a_member(member: tuple[int, int, str], number: int) -> Member:
    gpu, cpu_milli, role = member
    return Member(a_shape(gpu=gpu, cpu_milli=cpu_milli), role, f"uid{number}", f"m{number}")


def _some_nodes(nodes: list[tuple[int, int]]) -> list[Node]:
    return [a_node(f"n{i}", gpu=gpu, cpu_milli=cpu_milli) for i, (gpu, cpu_milli) in enumerate(nodes)]


def _brute_force(members: list[Member], snapshot: Snapshot) -> bool:
    """Try every way to put the members on nodes."""
    for nodes in product(snapshot.rooms, repeat=len(members)):
        trial = Trial(snapshot)
        for member, node in zip(members, nodes, strict=True):
            if fit_node(member.shape, trial.room(node)):
                break
            trial.place(Occupant(member.shape, member.tags), node)
        else:
            return True
    return False


def test_large_shares_of_a_card_are_placed_before_the_small_ones_where_these_would_be_in_their_way() -> None:
    six, ten = (
        a_shape(gpu=0, cards=a_share(0, memory_bytes=size * GIB, dialect=CardDialect.GPUSHARE)) for size in (6, 10)
    )
    node = a_node("n1", inventory=some_cards(2, manager=CardManager.GPUSHARE))
    members = [Member(shape, uid=str(number)) for number, shape in enumerate([six, six, ten, ten])]
    packing = pack(members, Snapshot(1, {"n1": NodeRoom(node)}), required=4)
    assert not packing.left_over
    assert not overdrawn_cards(packing.trial.room("n1"))
