"""Which fault does whom befall? The same for the same seed, as often as the rules say."""

from collections import Counter

import pytest

from e2e.faults.calls import call_of
from e2e.faults.rules import Draws, Kind, Rule, Tally

BINDINGS = "api POST pods/binding"


def kinds(draws: Draws, of_class: str, count: int) -> list[Kind | None]:
    return [drawn.kind if drawn else None for drawn in (draws.next(of_class) for _ in range(count))]


def test_a_seed_says_the_same_again_whatever_came_in_between() -> None:
    rules = [Rule(Kind.CONFLICT, 0.2, "api POST *"), Rule(Kind.SLOW, 0.2, "verbs *")]
    alone, among = Draws(7, rules), Draws(7, rules)
    expected = kinds(alone, BINDINGS, 200)
    seen = []
    for _ in range(200):
        among.next("verbs POST filter")
        seen.append(kinds(among, BINDINGS, 1)[0])
    assert seen == expected
    assert kinds(Draws(8, rules), BINDINGS, 200) != expected


def test_each_kind_comes_as_often_as_its_rule_says_and_to_nobody_else() -> None:
    draws = Draws(1, [Rule(Kind.CONFLICT, 0.1, "api POST pods/*"), Rule(Kind.LOST, 0.3, "api POST *")])
    seen = Counter(kinds(draws, BINDINGS, 10_000))
    assert seen[Kind.CONFLICT] == pytest.approx(1000, rel=0.15)
    assert seen[Kind.LOST] == pytest.approx(3000, rel=0.15)
    assert Counter(kinds(draws, "api PATCH pods", 1000)) == {None: 1000}


@pytest.mark.parametrize(
    ("kind", "rate", "classes"),
    [(Kind.SLOW, 1.5, "api *"), (Kind.STALL, 0.1, "api WATCH pods"), (Kind.LOST, 0.1, "api LINE pods")],
)
def test_a_rule_that_means_nothing_is_refused(kind: Kind, rate: float, classes: str) -> None:
    with pytest.raises(ValueError, match=r"share|befall"):
        Rule(kind, rate, classes)


@pytest.mark.parametrize(
    ("method", "path", "watches", "expected"),
    [
        ("POST", "/api/v1/namespaces/a/pods/b/binding", False, BINDINGS),
        ("PATCH", "/api/v1/namespaces/a/pods/b/status", False, "api PATCH pods/status"),
        ("GET", "/api/v1/namespaces/a/pods/b", False, "api GET pods"),
        ("GET", "/api/v1/namespaces/a", False, "api GET namespaces"),
        ("GET", "/api/v1/pods", False, "api LIST pods"),
        ("GET", "/api/v1/nodes", True, "api WATCH nodes"),
        ("GET", "/apis/scheduling.k8s.io/v1alpha2/podgroups", True, "api WATCH podgroups"),
        ("POST", "/apis/events.k8s.io/v1/namespaces/a/events", False, "api POST events"),
    ],
)
def test_requests_are_told_apart_by_what_they_ask_for(method: str, path: str, watches: bool, expected: str) -> None:
    assert call_of("api", method, path, watches=watches).of_class == expected


def test_verbs_are_told_apart_by_their_names() -> None:
    assert call_of("verbs", "POST", "/v1/filter").of_class == "verbs POST filter"


def test_the_table_has_a_line_for_each_kind_and_the_sum() -> None:
    tally = Tally()
    for kind in (Kind.LOST, Kind.LOST, Kind.SLOW):
        tally.add("api", kind)
    tally.add("verbs", Kind.LOST)
    assert tally.total == 4
    assert [line.split()[-1] for line in tally.table().splitlines()] == ["2", "1", "1", "4"]
