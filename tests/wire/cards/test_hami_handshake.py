"""HAMi's annotations, as its scheduler writes and its plugin changes them."""

import pytest

from extender.model.device import CardDialect, CardManager, CardNeed, CardRequest, CardShare
from extender.wire.cards.hami_handshake import annotations, awaits_plugin, given, turn
from tests.builders import GIB
from tests.wire.cards.given_pods import UUIDS, a_choice, bound_pod

ALLOCATED = "hami.io/vgpu-devices-allocated"
HERE = {"hami.io/vgpu-node": "n1"}


def test_a_pod_with_an_init_container_a_container_with_two_cards_and_one_without() -> None:
    choice = a_choice(
        CardManager.HAMI,
        CardDialect.HAMI,
        CardShare(0, UUIDS[0], 300, 3000 * 2**20, container=1),
        CardShare(2, UUIDS[2], 300, 3000 * 2**20, container=1),
        containers=3,
        init_containers=1,
    )
    devices = ";GPU-aaaa,NVIDIA,3000,30:GPU-cccc,NVIDIA,3000,30:;;"
    assert annotations(choice) == {
        "hami.io/vgpu-node": "n1",
        "hami.io/vgpu-time": "1700000000",
        "hami.io/vgpu-devices-to-allocate": devices,
        "hami.io/vgpu-devices-allocated": devices,
        "hami.io/bind-phase": "allocating",
        "hami.io/bind-time": "1700000000",
    }


def test_what_is_allocated_is_read_by_container() -> None:
    text = ";GPU-aaaa,NVIDIA,3000,30:GPU-cccc,NVIDIA,16384,100:;GPU-aaaa,NVIDIA,1024,0:;"
    assert given(bound_pod(HERE | {ALLOCATED: text})) == (
        CardShare(-1, "GPU-aaaa", 300, 3000 * 2**20, container=1),
        CardShare(-1, "GPU-cccc", 1000, 16 * GIB, container=1),
        CardShare(-1, "GPU-aaaa", 0, GIB, container=2),
    )


def test_a_part_of_a_card_that_the_plugin_cut_is_the_cards() -> None:
    (share,) = given(bound_pod(HERE | {ALLOCATED: "GPU-aaaa[1g.10gb-0],NVIDIA,9856,14:;"}))
    assert share.uuid == "GPU-aaaa"


@pytest.mark.parametrize(
    "text",
    [
        "",
        ";;",
        "GPU-aaaa",
        "GPU-aaaa,NVIDIA,1024:;",
        "GPU-aaaa,NVIDIA,lots,30:;",
        "GPU-aaaa,NVIDIA,-5,30:;",
        "GPU-aaaa,NVIDIA,1024,30,9:;",
        ",NVIDIA,1024,30:;",
        "GPU-aaaa,NVIDIA,1024,30:GPU-bbbb:;",
        "GPU-aaaa,NVIDIA," + "9" * 5000 + ",30:;",
    ],
)
def test_what_is_malformed_gives_nothing(text: str) -> None:
    assert given(bound_pod(HERE | {ALLOCATED: text})) == ()


def test_what_was_copied_from_a_pod_on_another_node_is_not_believed() -> None:
    pod = bound_pod({"hami.io/vgpu-node": "n2", ALLOCATED: "GPU-aaaa,NVIDIA,1,1:;", "hami.io/bind-phase": "allocating"})
    assert given(pod) == ()
    assert not awaits_plugin(pod)


@pytest.mark.parametrize(("phase", "awaits"), [("allocating", True), ("success", False), ("failed", False)])
def test_the_plugin_says_how_it_went(phase: str, awaits: bool) -> None:
    assert awaits_plugin(bound_pod(HERE | {"hami.io/bind-phase": phase})) is awaits


def test_all_pods_of_a_node_are_in_one_queue() -> None:
    small, large = (CardRequest(CardDialect.HAMI, (CardNeed(memory_bytes=GIB * size),)) for size in (1, 2))
    assert turn(small) == turn(large) != ""
