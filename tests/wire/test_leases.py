"""A Lease as client-go reads and writes it."""

import json
from typing import Any

import pytest

from extender.model.lease import LeaseRecord
from extender.wire.leases import given_up_spec, held_spec, read_lease
from extender.wire.malformed import MalformedBody

AT_S = 1_767_323_045.123456
AT = "2026-01-02T03:04:05.123456Z"


def test_a_new_lease_has_no_transitions() -> None:
    assert held_spec({}, "us", 15, AT_S) == {
        "holderIdentity": "us",
        "leaseDurationSeconds": 15,
        "acquireTime": AT,
        "renewTime": AT,
        "leaseTransitions": 0,
    }


def test_a_renewal_keeps_when_it_was_acquired_and_what_others_wrote() -> None:
    before = held_spec({}, "us", 15, AT_S) | {"strategy": "OldestEmulationVersion"}
    after = held_spec(before, "us", 15, AT_S + 2)
    assert after == before | {"renewTime": "2026-01-02T03:04:07.123456Z"}


@pytest.mark.parametrize("holder", ["them", ""])
def test_who_takes_it_from_another_or_after_one_who_gave_it_up_counts_one_transition(holder: str) -> None:
    before = {"holderIdentity": holder, "leaseTransitions": 3, "acquireTime": "2020-01-02T03:04:05.000000Z"}
    after = held_spec(before, "us", 15, AT_S)
    assert (after["leaseTransitions"], after["acquireTime"]) == (4, AT)


def test_who_gives_it_up_leaves_nobody_and_a_second() -> None:
    after = given_up_spec(held_spec({}, "us", 15, AT_S), AT_S + 2)
    assert (after["holderIdentity"], after["leaseDurationSeconds"], after["leaseTransitions"]) == ("", 1, 0)


@pytest.mark.parametrize(
    ("spec", "record"),
    [
        ({}, LeaseRecord("", 0.0, "", 0)),
        ({"holderIdentity": None, "leaseTransitions": None}, LeaseRecord("", 0.0, "", 0)),
        (held_spec({}, "us", 15, AT_S), LeaseRecord("us", 15.0, AT, 0)),
    ],
)
def test_what_is_read(spec: dict[str, Any], record: LeaseRecord) -> None:
    assert read_lease(json.dumps({"metadata": {"name": "x"}, "spec": spec}).encode()) == record


def test_what_is_no_lease_is_said() -> None:
    with pytest.raises(MalformedBody, match="no Lease"):
        read_lease(b'{"spec": {"leaseDurationSeconds": "long"}}')
