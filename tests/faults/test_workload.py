"""What comes in a round, and what befalls it: the same for a seed, and never more than fits."""

from collections import Counter
from fractions import Fraction

import pytest

from e2e.faults import standard
from e2e.faults.reading import GPU, gang_of, offer_of, requests_of, wanted_cards
from e2e.faults.rules import ON_LINES, Kind
from e2e.faults.workload import replacement, round_of, staying

SEEDS = range(20)


def test_a_seed_makes_the_same_gangs_again() -> None:
    assert round_of(3, 1) == round_of(3, 1)
    assert round_of(3, 1) != round_of(4, 1)
    assert round_of(3, 1) != round_of(3, 2)


@pytest.mark.parametrize("seed", SEEDS)
def test_what_is_to_fit_does_with_all_of_the_round_before(seed: int) -> None:
    plans = [*staying(round_of(seed, 0)), *(plan for plan in round_of(seed, 1) if plan.fits)]
    pods = [pod for plan in plans for pod in plan.pods]
    nodes = list(standard.nodes())
    whole = sum(requests_of(pod).get(GPU, Fraction(0)) for pod in pods)
    assert whole <= Fraction(9, 10) * sum(
        offer_of(node)[GPU] for node in nodes if node["metadata"]["name"].startswith("gpu-")
    )
    assert sum(wanted_cards(pod) for pod in pods if not requests_of(pod).get(GPU)) <= 6 * 4 * 4


@pytest.mark.parametrize("seed", SEEDS)
def test_one_gang_of_a_round_fits_no_node_and_all_say_what_they_need(seed: int) -> None:
    plans = round_of(seed, 0)
    assert Counter(plan.fits for plan in plans) == {True: len(plans) - 1, False: 1}
    for plan in plans:
        gangs = {gang_of({**pod, "metadata": {**pod["metadata"], "namespace": "a"}}) for pod in plan.pods}
        assert {(gang.name, gang.min_available) for gang in gangs if gang} == {(f"a/{plan.name}", len(plan.pods))}


def test_a_replacement_is_of_the_same_gang_under_another_name() -> None:
    pod = round_of(1, 0)[0].pods[0]
    other = replacement(pod, "again")
    assert other["metadata"]["name"] == f"{pod['metadata']['name']}-again"
    assert (other["metadata"]["annotations"], other["spec"]) == (pod["metadata"]["annotations"], pod["spec"])


def test_every_kind_of_fault_is_in_the_mixture() -> None:
    rules = standard.rules()
    assert {rule.kind for rule in rules} == set(Kind)
    for classes in {rule.classes for rule in rules}:
        assert sum(rule.rate for rule in rules if rule.classes == classes) < 1
    assert {rule.kind for rule in rules if "LINE" in rule.classes} == ON_LINES
