"""A lease and its candidates, each with a clock of its own: never do two of them lead at once."""

from collections.abc import Callable
from functools import partial
from heapq import heappop, heappush
from itertools import count
from random import Random

import pytest

from extender.model.lease import LeaseRecord
from extender.state.leadership import Leadership

DURATION_S = 15.0
SURE_S = 10.0


def record(holder: str, renewal: int = 0, transitions: int = 0) -> LeaseRecord:
    return LeaseRecord(holder, DURATION_S, str(renewal), transitions)


@pytest.fixture
def leadership() -> Leadership:
    return Leadership(lambda holder: holder == "us")


def look(leadership: Leadership, at_s: float, found: LeaseRecord | None) -> None:
    leadership.see(found, at_s, at_s + 0.01)


def test_who_finds_the_lease_his_waits_for_a_renewal_since_it_may_be_about_to_run_out(leadership: Leadership) -> None:
    look(leadership, 100.0, record("us", 1))
    assert leadership.term
    assert not leadership.is_sure(100.1)
    look(leadership, 102.0, record("us", 2))
    assert leadership.is_sure(102.1)


def test_who_sees_the_lease_become_his_is_sure_from_before_it_did(leadership: Leadership) -> None:
    look(leadership, 100.0, record("them", 1))
    assert not leadership.term
    look(leadership, 101.0, record("us", 2, 1))
    assert leadership.is_sure(100.0 + SURE_S - 0.1), "it was written after the look at 100"
    assert not leadership.is_sure(100.0 + SURE_S)


def test_without_renewals_nobody_is_sure_and_with_the_next_one_he_is_again(leadership: Leadership) -> None:
    look(leadership, 100.0, None)
    look(leadership, 101.0, record("us", 1))
    term = leadership.term
    for at_s in (103.0, 108.0, 111.0):
        look(leadership, at_s, record("us", 1))
    assert not leadership.is_sure(111.0)
    look(leadership, 112.0, record("us", 2))
    assert leadership.is_sure(112.0)
    assert leadership.term == term, "nobody else led meanwhile"


def test_an_answer_that_took_long_or_a_process_that_was_stopped_proves_nothing_new(leadership: Leadership) -> None:
    look(leadership, 100.0, record("them", 1))
    leadership.see(record("us", 2, 1), 101.0, 170.0)
    assert leadership.term
    assert not leadership.is_sure(170.0)


def test_the_record_before_counts_from_when_it_was_asked_for_not_from_when_it_came(leadership: Leadership) -> None:
    leadership.see(record("them", 1), 100.0, 160.0)
    look(leadership, 161.0, record("us", 2, 1))
    assert not leadership.is_sure(161.0)


def test_whoever_led_in_between_ends_the_term_though_we_never_saw_him(leadership: Leadership) -> None:
    look(leadership, 100.0, record("them", 1))
    look(leadership, 101.0, record("us", 2, transitions=1))
    term = leadership.term
    look(leadership, 160.0, record("us", 3, transitions=3))
    assert leadership.term not in {term, ""}


@pytest.mark.parametrize("found", [record("them", 3, 2), record("", 3, 1), None])
def test_a_lease_that_is_another_ones_given_up_or_gone_ends_the_term(
    leadership: Leadership, found: LeaseRecord | None
) -> None:
    look(leadership, 100.0, record("them", 1))
    look(leadership, 101.0, record("us", 2, 1))
    look(leadership, 102.0, found)
    assert not leadership.term
    assert not leadership.is_sure(102.0)


@pytest.mark.parametrize(("found", "free_at_s"), [(record(""), 100.01), (None, 100.01), (record("them"), 115.01)])
def test_a_lease_is_free_when_it_was_given_up_and_else_after_its_duration_since_it_came(
    leadership: Leadership, found: LeaseRecord | None, free_at_s: float
) -> None:
    look(leadership, 100.0, found)
    look(leadership, 104.0, found)
    assert leadership.is_free(max(free_at_s, 104.02))
    assert leadership.is_free(free_at_s - 0.1) is (free_at_s < 100.0)


def test_a_change_that_is_no_renewal_proves_nothing(leadership: Leadership) -> None:
    """Somebody annotates the lease: its version changes, and what counts of it does not."""
    look(leadership, 100.0, record("us", 1))
    look(leadership, 102.0, record("us", 1))
    assert not leadership.is_sure(102.0)


class World:
    """A lease, three candidates that want it, and whatever is slow between them, in a time of its own."""

    def __init__(self, seed: int) -> None:
        self.chance = Random(seed)  # noqa: S311 - a seed replays it
        self.lease: LeaseRecord | None = None
        self.writes = 0
        self.leads = {name: Leadership(name.__eq__) for name in "abc"}
        self.due: list[tuple[float, int, Callable[[float], None]]] = []
        self.numbers = count()
        self.terms: set[str] = set()

    def run(self, until_s: float) -> None:
        for name in self.leads:
            self.later(0.0, partial(self.ask, name))
        while self.due and self.due[0][0] < until_s:
            at_s, _, happen = heappop(self.due)
            happen(at_s)
            sure = {name: lead.term for name, lead in self.leads.items() if lead.is_sure(at_s)}
            assert len(sure) <= 1
            self.terms.update(sure.values())

    def later(self, at_s: float, happen: Callable[[float], None]) -> None:
        heappush(self.due, (at_s, next(self.numbers), happen))

    def delay_s(self) -> float:
        return self.chance.choice((0.01, 0.01, 0.01, 1.0, 6.0, 14.0, 40.0)) * self.chance.random()

    def ask(self, name: str, asked_s: float) -> None:
        def serve(at_s: float) -> None:
            found = self.lease
            self.later(at_s + self.delay_s(), lambda came_s: self.hear(name, found, asked_s, came_s))

        self.later(asked_s + self.delay_s(), serve)

    def hear(self, name: str, found: LeaseRecord | None, asked_s: float, came_s: float) -> None:
        lead = self.leads[name]
        lead.see(found, asked_s, came_s)
        if lead.term or lead.is_free(came_s):
            self.later(came_s + self.delay_s(), lambda at_s: self.write(name, found, came_s, at_s))
        else:
            self.later(came_s + 2.0, partial(self.ask, name))

    def write(self, name: str, found: LeaseRecord | None, sent_s: float, at_s: float) -> None:
        answered_s = at_s + self.delay_s()
        if found == self.lease:
            self.writes += 1
            transitions = found.transitions + (found.holder != name) if found else 0
            written = self.lease = LeaseRecord(name, DURATION_S, str(self.writes), transitions)
            if self.chance.random() < 0.8:  # else the answer is lost
                self.later(answered_s, lambda came_s: self.leads[name].wrote(written, sent_s, came_s))
        self.later(answered_s + 2.0, partial(self.ask, name))


@pytest.mark.parametrize("seed", range(40))
def test_never_do_two_lead_at_once_whatever_is_slow_and_one_mostly_does(seed: int) -> None:
    world = World(seed)
    world.run(until_s=3600.0)
    assert len(world.terms) > 10
