"""Do gangs come whole, and nothing else, while everything fails? A seeded part of `make faults`.

With its start, last round and judgement it takes five minutes; two extenders that share a lease take one more.
"""

from collections.abc import Iterator

import pytest

from e2e.cluster import Cluster, start_cluster
from e2e.faults.__main__ import keep, summary
from e2e.faults.play import Goal, play
from e2e.faults.rules import ON_LINES, Kind

pytestmark = [pytest.mark.controlplane, pytest.mark.timeout(900)]

SEED = 20_261_122
MINUTES = 4.0
STILL_SEED = 54
"""In both of its rounds the leader stands still for twice as long as its lease lasts."""

RARE = {Kind.EXPIRED}
"""Only who opens a watch meets it."""
ALWAYS = set(Kind) - ON_LINES - RARE | {Kind.DUPLICATE, Kind.REORDER, Kind.SLOW_STREAM, Kind.STALL}
"""What each such part must have seen; the others end a watch and are rare."""


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    """Return a control plane of our own, which is of no use to others afterwards."""
    with start_cluster() as cluster:
        yield cluster


def test_no_invariant_is_violated_whatever_fails(cluster: Cluster) -> None:
    outcome = play(cluster, SEED, Goal(gangs=10**9, faults=10**9, within_s=MINUTES * 60), print)
    if outcome.violations:
        keep(cluster, SEED)
    assert outcome.violations == [], summary(outcome, SEED)
    kinds = {kind for _, kind in outcome.tally.by_kind()}
    assert kinds >= ALWAYS, "a part in which something never failed proves less than it says"
    assert outcome.tally.total > 500
    assert outcome.gangs >= 50
    assert outcome.checker.in_part.spells > 0, "the checker has seen gangs while they were being bound"
    assert outcome.checker.cards.given > 0


def test_no_invariant_is_violated_while_the_leader_of_two_extenders_stands_still(cluster: Cluster) -> None:
    outcome = play(cluster, STILL_SEED, Goal(gangs=50, faults=0, within_s=MINUTES * 60, fails_over=True), print)
    if outcome.violations:
        keep(cluster, STILL_SEED)
    assert outcome.violations == [], summary(outcome, STILL_SEED)
    assert outcome.lead_changes > 0
