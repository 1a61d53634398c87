"""Koordinator's annotation, as its scheduler writes it."""

import json

import pytest

from extender.model.device import CardDialect, CardManager, CardShare
from extender.wire.cards.koordinator_handshake import annotations, awaits_plugin, given
from tests.builders import GIB
from tests.wire.cards.given_pods import UUIDS, a_choice, bound_pod

ALLOCATED = "scheduling.koordinator.sh/device-allocated"


def written(*shares: CardShare) -> dict[str, str]:
    return dict(annotations(a_choice(CardManager.KOORDINATOR, CardDialect.KOORDINATOR, *shares)))


def test_half_a_card() -> None:
    assert json.loads(written(CardShare(1, UUIDS[1], 500, 8 * GIB))[ALLOCATED]) == {
        "gpu": [
            {
                "minor": 1,
                "id": "GPU-bbbb",
                "resources": {
                    "koordinator.sh/gpu-core": "50",
                    "koordinator.sh/gpu-memory": "8589934592",
                    "koordinator.sh/gpu-memory-ratio": "50",
                },
            }
        ]
    }


def test_containers_of_a_pod_that_share_a_card_are_one_entry() -> None:
    shares = (CardShare(1, UUIDS[1], 250, GIB), CardShare(1, UUIDS[1], 250, GIB, container=1))
    (entry,) = json.loads(written(*shares)[ALLOCATED])["gpu"]
    assert entry["resources"]["koordinator.sh/gpu-core"] == "50"


def test_part_of_a_percent_is_kept() -> None:
    share = CardShare(1, UUIDS[1], 335, GIB)
    assert given(bound_pod(written(share))) == (share,)


def test_what_koordinator_wrote_is_read() -> None:
    entry = {
        "minor": 2,
        "resources": {
            "koordinator.sh/gpu-core": "100",
            "koordinator.sh/gpu-memory": "16Gi",
            "koordinator.sh/gpu-memory-ratio": "100",
        },
        "extension": {"vfs": []},
    }
    pod = bound_pod({ALLOCATED: json.dumps({"gpu": [entry], "rdma": [{"minor": 0, "resources": {}}]})})
    assert given(pod) == (CardShare(2, "", 1000, 16 * GIB),)
    assert not awaits_plugin(pod)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        '{"gpu": 1}',
        '{"gpu": [{"minor": -1}]}',
        '{"gpu": [{"minor": 0, "resources": {"koordinator.sh/gpu-core": "all"}}]}',
        '{"gpu": [{"minor": 0, "resources": {"koordinator.sh/gpu-core": -5}}]}',
    ],
)
def test_what_is_malformed_gives_nothing(text: str) -> None:
    assert given(bound_pod({ALLOCATED: text})) == ()
