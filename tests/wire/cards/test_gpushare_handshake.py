"""gpushare's annotations, as its extender writes and its plugin changes them."""

import pytest

from extender.model.device import CardDialect, CardManager, CardNeed, CardRequest, CardShare
from extender.wire.cards.gpushare_handshake import annotations, awaits_plugin, given, turn
from tests.builders import GIB
from tests.wire.cards.given_pods import a_choice, bound_pod


def test_a_pod_that_gets_three_units_of_a_card_of_sixteen() -> None:
    share = CardShare(2, memory_bytes=3 * GIB)
    assert annotations(a_choice(CardManager.GPUSHARE, CardDialect.GPUSHARE, share, uuids=False)) == {
        "ALIYUN_COM_GPU_MEM_IDX": "2",
        "ALIYUN_COM_GPU_MEM_POD": "3",
        "ALIYUN_COM_GPU_MEM_DEV": "16",
        "ALIYUN_COM_GPU_MEM_ASSIGNED": "false",
        "ALIYUN_COM_GPU_MEM_ASSUME_TIME": "1700000000250000000",
    }


def test_what_gpushares_own_extender_wrote_is_read() -> None:
    written = {"ALIYUN_COM_GPU_MEM_IDX": "1", "ALIYUN_COM_GPU_MEM_POD": "8", "ALIYUN_COM_GPU_MEM_DEV": "16"}
    assert given(bound_pod(written)) == (CardShare(1, memory_bytes=8 * GIB),)


@pytest.mark.parametrize(("index", "units"), [("", "3"), ("0", ""), ("-1", "3"), ("0", "3GiB"), ("0", "9" * 5000)])
def test_what_is_malformed_gives_nothing(index: str, units: str) -> None:
    assert given(bound_pod({"ALIYUN_COM_GPU_MEM_IDX": index, "ALIYUN_COM_GPU_MEM_POD": units})) == ()


@pytest.mark.parametrize(("assigned", "awaits"), [("false", True), ("true", False)])
def test_the_plugin_says_that_it_has_taken_the_pod_up(assigned: str, awaits: bool) -> None:
    written = {"ALIYUN_COM_GPU_MEM_ASSUME_TIME": "1", "ALIYUN_COM_GPU_MEM_ASSIGNED": assigned}
    assert awaits_plugin(bound_pod(written)) is awaits


def test_a_pod_without_an_assume_time_is_none_that_the_plugin_takes() -> None:
    assert not awaits_plugin(bound_pod({"ALIYUN_COM_GPU_MEM_ASSIGNED": "false"}))


def test_pods_of_one_size_are_in_one_queue() -> None:
    sizes = [CardRequest(CardDialect.GPUSHARE, (CardNeed(memory_bytes=size * GIB),)) for size in (3, 3, 4)]
    queues = [turn(request) for request in sizes]
    assert queues[0] == queues[1] != queues[2]
