"""Ranks and seats: consecutive ones are neighbours, low ones beside the leader, high ones where it is lonely."""

from typing import Any

from extender.decide.gang import admit_gang
from extender.model.claim import GangKey
from extender.model.gang import Gang
from extender.model.pod import Pod
from extender.model.snapshot import Snapshot
from extender.model.verdict import Placed
from tests.builders import a_pod
from tests.network import network_of, nodes_of


def workers(count: int, name: str = "w-{}", **fields: Any) -> list[Pod]:
    """Return workers of which the highest number is the oldest."""
    return [a_pod(name.format(i), created_at=100 - i, **fields) for i in range(count)]


def seats(network: Snapshot, *waiting: Pod, **fields: Any) -> dict[str, str]:
    gang = Gang(
        GangKey("default/g"), len(waiting), waiting=tuple(sorted(waiting, key=lambda p: p.created_at)), **fields
    )
    admission = admit_gang(gang, network)
    assert isinstance(admission, Placed)
    return {
        each.uid.removeprefix("uid-default-"): each.node for each in sorted(admission.placements, key=lambda p: p.uid)
    }


def test_consecutive_ranks_are_neighbours_and_the_last_ones_are_lonely() -> None:
    network = network_of(nodes_of({"s/a": [1], "t/b": [2, 1], "s/c": [2, 2]}))
    assert list(seats(network, *workers(8)).values()) == ["c-0"] * 2 + ["c-1"] * 2 + ["a-0"] + ["b-0"] * 2 + ["b-1"]


def test_low_ranks_are_beside_the_parameter_server() -> None:
    network = network_of(nodes_of({"s/a": [4], "t/b": [1, 2]}))
    ps = a_pod("ps-0", role="ps", gpu=0, node="b-0")
    assert list(seats(network, *workers(7), bound=(ps,)).values()) == ["b-0", "b-1", "b-1"] + ["a-0"] * 4


def test_without_a_network_ranks_go_from_full_nodes_to_lonely_ones() -> None:
    network = network_of(nodes_of({"": [1, 3]}), levels=())
    assert list(seats(network, *workers(4)).values()) == ["-1"] * 3 + ["-0"]


def test_members_of_another_shape_keep_their_own_seats() -> None:
    network = network_of(nodes_of({"a": [4], "b": [1, 1]}))
    big = a_pod("w-9", gpu=4, created_at=0)
    assert seats(network, big, *workers(2)) == {"w-0": "b-0", "w-1": "b-1", "w-9": "a-0"}
