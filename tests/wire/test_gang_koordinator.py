"""Koordinator's annotations: a gang, none, or a sentence for the pod's owner."""

import pytest
from msgspec import convert

from extender.model.claim import BadGangClaim, GangClaim, GangKey
from extender.model.pod_group import KOORDINATOR
from extender.wire import core_v1
from extender.wire.gang_dialects import gang_of
from extender.wire.gang_koordinator import NAME
from extender.wire.gang_terms import MIN_AVAILABLE
from tests.builders import pod_json


def gang(annotations: dict[str, str]) -> GangClaim | BadGangClaim | None:
    return gang_of(convert(pod_json(namespace="dlrover", metadata={"annotations": annotations}), core_v1.Pod))


def a_claim(name: str, min_available: int | None) -> GangClaim:
    return GangClaim(GangKey(f"dlrover/{name}"), min_available, pod_group=KOORDINATOR)


@pytest.mark.parametrize(
    ("written", "min_available"), [("4", 4), ("1", 1), (" 4 ", 4), ("+4", 4), ("007", 7), ("999999999", 999_999_999)]
)
def test_name_and_min_available_make_a_gang(written: str, min_available: int) -> None:
    claim = gang({NAME: "torch-mnist-gang", MIN_AVAILABLE: written})
    assert claim == a_claim("torch-mnist-gang", min_available)


@pytest.mark.parametrize("annotations", [{}, {MIN_AVAILABLE: "4"}, {"gang.scheduling.koordinator.sh/mode": "Strict"}])
def test_without_a_name_there_is_no_gang(annotations: dict[str, str]) -> None:
    assert gang(annotations) is None


@pytest.mark.parametrize("written", ["", "0", "-1", "four", "4.0", "1_0", "\u0664", "1e1", "1" * 5000])
def test_a_min_available_that_is_no_positive_number_is_told_with_its_value(written: str) -> None:
    claim = gang({NAME: "g", MIN_AVAILABLE: written})

    assert isinstance(claim, BadGangClaim)
    assert claim.key == "dlrover/g"
    assert claim.problem == f"annotation {MIN_AVAILABLE} is {written[:63]!r}: it must be a whole number of 1 or more"


def test_a_min_available_that_is_not_there_is_left_to_others() -> None:
    assert gang({NAME: "g"}) == a_claim("g", None)


def test_min_available_is_told_under_the_whole_name_of_the_gang() -> None:
    claim = gang({NAME: "a" * 253, MIN_AVAILABLE: "0"})
    assert claim is not None
    assert claim.key == "dlrover/" + "a" * 253


@pytest.mark.parametrize("name", ["", " ", "a b", "a\nb", "-a", "a/b", "a" * 254])
def test_a_name_that_is_none_is_told_with_its_value(name: str) -> None:
    claim = gang({NAME: name, MIN_AVAILABLE: "4"})

    assert isinstance(claim, BadGangClaim)
    assert claim.problem.startswith(f"annotation {NAME} is {name[:63]!r}: it must be at most 253")


@pytest.mark.parametrize("name", ["a", "Job_1.gang-2", "a" * 253])
def test_a_name_is_taken_as_it_is(name: str) -> None:
    assert gang({NAME: name, MIN_AVAILABLE: "4"}) == a_claim(name, 4)
