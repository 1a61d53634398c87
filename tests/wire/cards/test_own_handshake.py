"""Our own annotations, and KubeShare's."""

import pytest

from extender.model.device import CardDialect, CardManager, CardShare
from extender.wire.cards.own_handshake import annotations, awaits_plugin, given
from tests.builders import GIB
from tests.wire.cards.given_pods import UUIDS, a_choice, bound_pod

HALF = CardShare(1, UUIDS[1], 500, 3 * GIB)


def test_half_a_card_for_a_pod_in_kubeshares_terms() -> None:
    assert annotations(a_choice(CardManager.OWN, CardDialect.KUBESHARE_1, HALF)) == {
        "gang-extender.io/visible-devices": "GPU-bbbb",
        "gang-extender.io/devices": (
            '{"node":"n1","cards":[{"index":1,"uuid":"GPU-bbbb","milli":500,"bytes":3221225472,"container":0}]}'
        ),
        "kubeshare/GPUID": "GPU-bbbb",
    }


def test_two_cards_for_a_pod_of_kubeshare_2() -> None:
    written = annotations(
        a_choice(
            CardManager.OWN,
            CardDialect.KUBESHARE_2,
            CardShare(0, UUIDS[0], 1000, 16 * GIB),
            CardShare(2, UUIDS[2], 1000, 16 * GIB),
        )
    )
    assert written["sharedgpu/gpu_uuid"] == "GPU-aaaa,GPU-cccc"
    assert "kubeshare/GPUID" not in written


def test_cards_whose_uuid_nobody_knows_are_shown_by_their_index() -> None:
    shares = [CardShare(3, "", 250), CardShare(1, UUIDS[1], 250)]
    written = annotations(a_choice(CardManager.OWN, CardDialect.KAI, *shares))
    assert written["gang-extender.io/visible-devices"] == "3,1"


def test_two_containers_on_one_card_see_it_once() -> None:
    shares = [CardShare(1, UUIDS[1], 250, container=0), CardShare(1, UUIDS[1], 250, container=1)]
    written = annotations(a_choice(CardManager.OWN, CardDialect.KAI, *shares))
    assert written["gang-extender.io/visible-devices"] == "GPU-bbbb"


def test_what_was_written_is_read_back() -> None:
    shares = (HALF, CardShare(3, "", 250, GIB, container=2))
    written = annotations(a_choice(CardManager.OWN, CardDialect.KAI, *shares))
    assert given(bound_pod(written)) == shares
    assert not awaits_plugin(bound_pod(written))


def test_what_was_copied_from_a_pod_on_another_node_is_not_believed() -> None:
    written = annotations(a_choice(CardManager.OWN, CardDialect.KAI, HALF))
    assert given(bound_pod(written, node="n2")) == ()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{",
        '{"node":"n1"}',
        '{"node":"n1","cards":[{"index":-1,"uuid":"","milli":1,"bytes":1,"container":0}]}',
        '{"node":"n1","cards":[{"index":0,"uuid":"","milli":"500","bytes":1,"container":0}]}',
        '{"node":"n1","cards":[{"index":0,"uuid":"","milli":1e99,"bytes":1,"container":0}]}',
    ],
)
def test_what_is_malformed_gives_nothing(text: str) -> None:
    assert given(bound_pod({"gang-extender.io/devices": text})) == ()


def test_a_pod_that_kubeshare_2_bound_itself() -> None:
    labels = {"sharedgpu/gpu_request": "0.5", "sharedgpu/gpu_limit": "1.0", "sharedgpu/gpu_mem": "1073741824"}
    pod = bound_pod({"sharedgpu/gpu_uuid": "GPU-cccc"}, labels=labels)
    assert given(pod) == (CardShare(-1, "GPU-cccc", 500, GIB),)


def test_several_cards_of_kubeshare_2_are_whole_ones() -> None:
    pod = bound_pod(
        {"sharedgpu/gpu_uuid": "GPU-aaaa,GPU-bbbb"}, labels={"sharedgpu/gpu_request": "2", "sharedgpu/gpu_limit": "2"}
    )
    assert given(pod) == (CardShare(-1, "GPU-aaaa", 1000), CardShare(-1, "GPU-bbbb", 1000))


@pytest.mark.parametrize("request_text", ["half", "nan", "-1", "1e999"])
def test_a_share_of_kubeshare_2_that_makes_no_sense_gives_nothing(request_text: str) -> None:
    labels = {"sharedgpu/gpu_request": request_text, "sharedgpu/gpu_limit": "1.0"}
    assert given(bound_pod({"sharedgpu/gpu_uuid": "GPU-aaaa"}, labels=labels)) == ()


def test_the_name_that_kubeshare_1_makes_up_for_a_card_is_none() -> None:
    assert given(bound_pod({"kubeshare/GPUID": "zxcvb", "kubeshare/gpu_request": "0.5"})) == ()
