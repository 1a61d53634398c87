"""The annotations of Volcano's older GPU sharing."""

import pytest
from msgspec import convert

from extender.model.device import CardDialect, CardManager, CardNeed, CardRequest, CardShare
from extender.wire import core_v1
from extender.wire.cards.volcano_gpu_handshake import annotations, awaits_plugin, given, turn
from tests.builders import GIB, pod_json
from tests.wire.cards.given_pods import a_choice, bound_pod

INDEX = "volcano.sh/gpu-index"


def test_part_of_a_card() -> None:
    share = CardShare(2, memory_bytes=3 * GIB)
    written = dict(annotations(a_choice(CardManager.VOLCANO_GPU, CardDialect.VOLCANO_GPU, share, uuids=False)))
    assert given(bound_pod(written)) == (share,)
    assert "gang-extender.io/devices" in written
    del written["gang-extender.io/devices"]
    assert written == {
        INDEX: "2",
        "volcano.sh/predicate-time": "1700000000250000000",
        "volcano.sh/gpu-assigned": "false",
    }


def test_two_whole_cards() -> None:
    shares = (CardShare(0, "", 1000, 16 * GIB), CardShare(3, "", 1000, 16 * GIB))
    written = annotations(a_choice(CardManager.VOLCANO_GPU, CardDialect.VOLCANO_GPU, *shares, uuids=False))
    assert written[INDEX] == "0,3"
    assert given(bound_pod(written)) == shares


def volcanos_own(index: str, **limits: str) -> core_v1.Pod:
    resources = {f"volcano.sh/{name.replace('_', '-')}": amount for name, amount in limits.items()}
    containers = [{"name": "main", "resources": {"requests": resources, "limits": resources}}]
    return convert(
        pod_json(metadata={"annotations": {INDEX: index}}, spec={"nodeName": "n1", "containers": containers}),
        core_v1.Pod,
    )


def test_what_volcanos_scheduler_wrote_is_read_with_what_the_pod_asks_for() -> None:
    assert given(volcanos_own("1", gpu_memory="2048")) == (CardShare(1, memory_bytes=2 * GIB),)
    assert given(volcanos_own("0,1", gpu_number="2")) == (CardShare(0, "", 1000), CardShare(1, "", 1000))


@pytest.mark.parametrize("index", ["", "-1", "a", "0,", "9" * 5000])
def test_what_is_malformed_gives_nothing(index: str) -> None:
    assert given(volcanos_own(index, gpu_memory="2048")) == ()


@pytest.mark.parametrize(("assigned", "awaits"), [(None, True), ("false", True), ("true", False)])
def test_the_plugin_says_that_it_has_taken_the_pod_up(assigned: str | None, awaits: bool) -> None:
    written = {"volcano.sh/predicate-time": "1"} | ({} if assigned is None else {"volcano.sh/gpu-assigned": assigned})
    assert awaits_plugin(bound_pod(written)) is awaits


def test_pods_that_ask_for_as_much_are_in_one_queue() -> None:
    sizes = [CardRequest(CardDialect.VOLCANO_GPU, (CardNeed(memory_bytes=size * GIB),)) for size in (3, 3, 4)]
    queues = [turn(request) for request in sizes]
    assert queues[0] == queues[1] != queues[2]
