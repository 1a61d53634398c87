"""Volcano's vGPU annotations, as its scheduler writes and its plugin changes them."""

import pytest

from extender.model.device import CardDialect, CardManager, CardNeed, CardRequest, CardShare
from extender.wire.cards.volcano_vgpu_handshake import annotations, awaits_plugin, given, turn
from tests.builders import GIB
from tests.wire.cards.given_pods import UUIDS, a_choice, bound_pod

HERE = {"volcano.sh/vgpu-node": "n1"}


def test_a_pod_whose_second_container_gets_a_card() -> None:
    choice = a_choice(
        CardManager.VOLCANO_VGPU,
        CardDialect.VOLCANO_VGPU,
        CardShare(0, UUIDS[0], 500, 8 * GIB, container=1),
        containers=2,
    )
    assert annotations(choice) == {
        "volcano.sh/vgpu-node": "n1",
        "volcano.sh/vgpu-time": "1700000000",
        "volcano.sh/devices-to-allocate": ";GPU-aaaa,NVIDIA,8192,50:",
        "volcano.sh/vgpu-ids-new": ";GPU-aaaa,NVIDIA,8192,50:",
        "volcano.sh/bind-phase": "allocating",
        "volcano.sh/bind-time": "1700000000",
    }


def test_init_containers_have_no_place_there() -> None:
    choice = a_choice(
        CardManager.VOLCANO_VGPU,
        CardDialect.VOLCANO_VGPU,
        CardShare(0, UUIDS[0], 500, 8 * GIB, container=1),
        containers=2,
        init_containers=1,
    )
    assert annotations(choice)["volcano.sh/vgpu-ids-new"] == "GPU-aaaa,NVIDIA,8192,50:"


def test_what_volcano_wrote_is_read() -> None:
    text = "GPU-aaaa,NVIDIA,8192,50:GPU-bbbb,NVIDIA,8192,50:"
    assert given(bound_pod(HERE | {"volcano.sh/vgpu-ids-new": text})) == (
        CardShare(-1, "GPU-aaaa", 500, 8 * GIB),
        CardShare(-1, "GPU-bbbb", 500, 8 * GIB),
    )


@pytest.mark.parametrize(("phase", "awaits"), [("allocating", True), ("success", False), ("failed", False)])
def test_the_plugin_says_how_it_went(phase: str, awaits: bool) -> None:
    assert awaits_plugin(bound_pod(HERE | {"volcano.sh/bind-phase": phase})) is awaits


def test_pods_with_as_many_cards_are_in_one_queue() -> None:
    one, also_one, two = (
        CardRequest(CardDialect.VOLCANO_VGPU, (CardNeed(count=count, memory_bytes=gib * GIB),))
        for count, gib in ((1, 1), (1, 2), (2, 1))
    )
    assert turn(one) == turn(also_one) != turn(two)
