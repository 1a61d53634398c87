"""Gangs whose members ask something of each other: who lands where, and whether a placement is found."""

from collections import Counter
from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from extender.decide.packing import Packing
from extender.decide.trial import Trial
from extender.model.member import Member
from extender.model.node import NodeRoom
from extender.model.pod import AffinityTerm, Occupant, Relations, Requirement, SpreadConstraint, Tags
from extender.model.snapshot import Snapshot
from tests.builders import a_node, a_shape
from tests.decide.relations import relations, snapshots
from tests.packing import pack

JOB = (Requirement("job", "In", ("j",)),)
TAGS = Tags("default", {"job": "j"})


def beside(key: str, selector: tuple[Requirement, ...] = JOB) -> AffinityTerm:
    return AffinityTerm(key, selector, ("default",))


def members(count: int, asked: Relations | None, role: str = "worker") -> list[Member]:
    shape = a_shape(relations=asked)
    labels = [{"job": "j", "role": role, "index": str(index)} for index in range(count)]
    return [Member(shape, role, f"{role}{i}", f"{role}-{i}", Tags("default", each)) for i, each in enumerate(labels)]


def a_cluster(gpus_by_zone: dict[str, list[int]]) -> Snapshot:
    """Return nodes `a0`, `a1`, ... in zone a, and so on, with so many GPUs each."""
    nodes = [
        a_node(f"{zone}{index}", gpu=gpu, labels={"zone": zone, "host": f"{zone}{index}"})
        for zone, gpus in gpus_by_zone.items()
        for index, gpu in enumerate(gpus)
    ]
    return Snapshot(1, {node.name: NodeRoom(node) for node in nodes})


def placed(packing: Packing) -> Counter[str]:
    return Counter(placement.node for placement in packing.placements)


def test_members_that_keep_apart_take_a_node_each() -> None:
    apart = Relations(anti_affinity=(beside("host"),))
    packing = pack(members(3, apart), a_cluster({"a": [8, 8], "b": [1]}), required=3)
    assert placed(packing) == {"a0": 1, "a1": 1, "b0": 1}


def test_members_that_want_each_other_take_the_zone_where_all_find_room() -> None:
    together = Relations(affinity=(beside("zone"),))
    packing = pack(members(4, together), a_cluster({"a": [3], "b": [2, 2], "c": [3]}), required=4)
    assert placed(packing) == {"b0": 2, "b1": 2}


def test_spread_members_fill_the_zones_in_turns() -> None:
    spread = Relations(spread=(SpreadConstraint(1, "zone", JOB),))
    packing = pack(members(5, spread), a_cluster({"a": [8], "b": [1, 1], "c": [8]}), required=5)
    assert sorted(placed(packing).items()) in (
        [("a0", 2), ("b0", 1), ("b1", 1), ("c0", 1)],
        [("a0", 2), ("b0", 1), ("c0", 2)],
        [("a0", 1), ("b0", 1), ("b1", 1), ("c0", 2)],
    )


def test_workers_that_want_their_parameter_server_find_it_whoever_comes_first() -> None:
    ps = (Requirement("role", "In", ("ps",)),)
    workers = members(3, Relations(affinity=(beside("zone", ps),)))
    servers = members(1, Relations(anti_affinity=(beside("host"),)), "ps")
    for gang in (workers + servers, servers + workers):
        packing = pack(gang, a_cluster({"a": [1], "b": [1, 3]}), required=4)
        assert {node[0] for node in placed(packing)} == {"b"}
        assert len(packing.placements) == 4


def test_a_member_that_a_sibling_keeps_off_is_left_over() -> None:
    apart = Relations(anti_affinity=(beside("zone"),))
    packing = pack([*members(1, apart, "ps"), *members(2, None)], a_cluster({"a": [8]}), required=3)
    assert [member.name for member in packing.left_over] == ["worker-0", "worker-1"]


def test_a_label_that_nobody_selects_by_sets_no_members_apart() -> None:
    packing = pack(members(6, None), a_cluster({"a": [4], "b": [6]}), required=6)
    assert placed(packing) == {"b0": 6}


def test_a_thousand_members_a_node_each_on_five_thousand_nodes() -> None:
    apart = Relations(anti_affinity=(beside("host"),), spread=(SpreadConstraint(1, "host", JOB),))
    cluster = a_cluster({zone: [8] * 500 for zone in "abcdefghij"})
    assert set(placed(pack(members(1000, apart), cluster, required=1000)).values()) == {1}


_zones = st.dictionaries(st.sampled_from("abc"), st.lists(st.integers(0, 2), min_size=1, max_size=2), min_size=1)
_asked = st.one_of(
    st.sampled_from(["zone", "host"]).map(lambda key: Relations(affinity=(beside(key),))),
    st.sampled_from(["zone", "host"]).map(lambda key: Relations(anti_affinity=(beside(key),))),
    st.builds(
        lambda skew, key, least: Relations(spread=(SpreadConstraint(skew, key, JOB, least),)),
        st.integers(1, 2),
        st.sampled_from(["zone", "host"]),
        st.integers(1, 3),
    ),
)


@given(_zones, _asked, st.integers(1, 4))
def test_for_one_shape_with_one_wish_a_placement_is_found_exactly_when_brute_force_finds_one(
    zones: dict[str, list[int]], asked: Relations, count: int
) -> None:
    gang = members(count, asked)
    cluster = a_cluster(zones)
    found = len(pack(gang, cluster, required=count).placements) == count
    assert found == _brute_force(gang, cluster)


@given(snapshots(), st.lists(st.tuples(relations, st.sampled_from(["x", "y"])), min_size=1, max_size=5))
def test_each_member_may_go_to_its_node_once_those_before_it_are_there(
    snapshot: Snapshot, wanted: list[tuple[Relations | None, str]]
) -> None:
    gang = [
        Member(a_shape(relations=asked), "worker", f"u{i}", f"m{i}", Tags("a", {"app": app}))
        for i, (asked, app) in enumerate(wanted)
    ]
    packing = pack(gang, snapshot, required=len(gang))
    trial = Trial(snapshot)
    by_uid = {member.uid: Occupant(member.shape, member.tags) for member in gang}
    for placement in packing.placements:
        assert trial.fit(by_uid[placement.uid], placement.node) == ()
        trial.place(by_uid[placement.uid], placement.node)
    for name in snapshot.rooms:
        assert packing.trial.room(name).taken == trial.room(name).taken, "reasons are told from the trial"
    assert {p.uid for p in packing.placements} | {m.uid for m in packing.left_over} == set(by_uid)


def _brute_force(gang: list[Member], snapshot: Snapshot) -> bool:
    """Try every way to put the members on nodes, one after the other."""
    return any(_fits_all(gang, nodes, Trial(snapshot)) for nodes in product(snapshot.rooms, repeat=len(gang)))


def _fits_all(gang: list[Member], nodes: tuple[str, ...], trial: Trial) -> bool:
    for member, node in zip(gang, nodes, strict=True):
        if trial.fit(Occupant(member.shape, member.tags), node):
            return False
        trial.place(Occupant(member.shape, member.tags), node)
    return True
