"""Does the planner find room exactly where there is any? Small gangs that just fit or just do not, judged by CP-SAT.

ORACLE_INSTANCES says how many of each kind; `make oracle` runs many.
"""

import os
from collections.abc import Callable, Sequence
from random import Random

import pytest
from msgspec import Struct, structs

from extender.model.verdict import Placement
from tests.decide.oracle import Instance, can_be_placed, draw_instance, is_valid, plan
from tests.packing import pack

INSTANCES = int(os.environ.get("ORACLE_INSTANCES", "300"))
"""A second or two of each kind."""

MOST_MISSED = 1 / 1000
"""Of the gangs that can be placed, those that the planner may say do not fit: a search that is bounded misses some."""

Plan = Sequence[Placement] | None


class Score(Struct):
    """What was compared; `missed` are the numbers of the gangs that fit although the planner says no."""

    feasible: int = 0
    infeasible: int = 0
    missed: list[int] = []


def plan_members(instance: Instance) -> Plan:
    packing = pack(instance.members, instance.snapshot, required=instance.required)
    return packing.placements if len(packing.placements) >= instance.required else None


def plan_gang(instance: Instance) -> Plan:
    placed = plan(instance)
    return placed.placements if placed else None


def score(title: str, make: Callable[[Random], Instance], planner: Callable[[Instance], Plan]) -> Score:
    """Compare on many instances; whatever is planned must be a plan indeed."""
    tally = Score()
    for number in range(INSTANCES):
        instance = make(Random(f"{title}/{number}"))  # noqa: S311 - chance that can be repeated is what is wanted
        planned, possible = planner(instance), can_be_placed(instance)
        assert planned is None or is_valid(instance, planned), f"{title}, {number}: this is no placement"
        assert planned is None or possible, f"{title}, {number}: the oracle knows of no placement, so it is wrong"
        tally.feasible += possible
        tally.infeasible += not possible
        if possible and planned is None:
            tally.missed.append(number)
    assert tally.infeasible > 0.05 * INSTANCES, "what always fits tests nothing"
    assert tally.feasible > 0.3 * INSTANCES, "what never fits tests nothing"
    return tally


def without_roles(instance: Instance) -> Instance:
    return structs.replace(instance, role_minimums=())


def mixed(chance: Random) -> Instance:
    """Return an instance with two classes of members or more."""
    while True:
        instance = draw_instance(chance, chance.choice([2, 2, 3, 3, 4]))
        if len({(member.shape, member.role) for member in instance.members}) > 1:
            return instance


def test_for_one_shape_the_planner_is_never_wrong() -> None:
    tally = score("one shape", lambda chance: without_roles(draw_instance(chance, 1)), plan_members)
    assert tally.missed == []


@pytest.mark.parametrize(
    ("title", "make", "planner"),
    [
        ("mixed", lambda chance: without_roles(mixed(chance)), plan_members),
        ("mixed with role minimums", mixed, plan_gang),
    ],
)
def test_a_mixed_gang_that_fits_is_hardly_ever_missed(
    title: str,
    make: Callable[[Random], Instance],
    planner: Callable[[Instance], Plan],
    capsys: pytest.CaptureFixture[str],
) -> None:
    tally = score(title, make, planner)
    with capsys.disabled():
        print(  # noqa: T201 - the rate belongs into the test's report
            f"\n{title}: {len(tally.missed)} of {tally.feasible} gangs that fit are missed {tally.missed[:5]}, "
            f"{tally.infeasible} do not fit"
        )
    assert len(tally.missed) <= MOST_MISSED * tally.feasible
