"""One of two extenders ends while gangs keep coming: every gang is whole afterwards, and no node holds too much."""

from collections.abc import Iterator

import pytest

from e2e.availability.blows import BLOWS, strike
from e2e.availability.pairs import PairedCluster, start_pairs

GANGS = 12
"""`python -m e2e.availability` does it with 50, and in each way."""

pytestmark = [pytest.mark.controlplane, pytest.mark.timeout(180)]


@pytest.fixture(scope="module")
def pairs() -> Iterator[PairedCluster]:
    """Return a control plane with two pairs of an extender and a kube-scheduler."""
    with start_pairs() as cluster:
        yield cluster


@pytest.mark.parametrize("blow", ["pair killed", "rolling update"])
def test_when_one_of_two_ends_the_other_goes_on_and_every_gang_is_whole(pairs: PairedCluster, blow: str) -> None:
    assert blow in BLOWS
    outcome = strike(pairs, blow, GANGS)
    assert outcome.faults == [], outcome
