"""A process dies, or stands still, at each step of a gang's life: afterwards the gang is whole, or has nothing.

`python -m e2e.faults.kills --times 20` does so many times over, at every step for every process.
"""

from collections.abc import Iterator

import pytest

from e2e.cluster import EXTENDER, GANG_SCHEDULER
from e2e.faults.blows import Blow
from e2e.faults.kills import Ask, Row, find_steps, play_step
from e2e.faults.rounds import Course, Ground, Rival, open_ground
from e2e.faults.steps import API_SERVER, Step

pytestmark = [
    pytest.mark.controlplane,
    pytest.mark.timeout(600),
]  # half a minute to two minutes each; others may use the machine

BEFORE_THE_LAST_CALL = Step("bind", "request", 2)
IN_PART = Step("binding", "answer", 1)


@pytest.fixture(scope="module")
def ground() -> Iterator[Ground]:
    """Return a control plane of our own, since its processes die."""
    with open_ground() as ground:
        ground.expect(Blow())
        yield ground


def strike(
    ground: Ground,
    target: str,
    steps: list[Step],
    blow: Blow = Blow(),  # noqa: B008 - frozen
    second: Rival = "alone",
) -> list[Row]:
    """Strike once at each step; what the sender did not outlive is delivered at one step and lost at the next."""
    once = [Ask(1, ("delivered",), ("gang",), blow), Ask(1, ("lost",), (second,), blow)]
    return [play_step(ground, step, target, once[place % 2]) for place, step in enumerate(steps)]


def assert_all_fine(rows: list[Row]) -> None:
    assert [str(row) for row in rows if row.failed] == []
    assert [str(row.step) for row in rows if not row.reached] == []


@pytest.mark.parametrize("target", [EXTENDER, GANG_SCHEDULER])
@pytest.mark.parametrize("course", ["fresh", "waiting", "held"])
def test_no_gang_is_left_in_part_by_a_death_at_any_step(ground: Ground, course: Course, target: str) -> None:
    ground.follow(course)
    steps = find_steps(ground)
    rows = strike(ground, target, steps)

    assert_all_fine(rows)
    if course == "fresh":
        assert any(each.was_in_part for row in rows for each in row.outcomes), "no death found a gang in part"


@pytest.mark.parametrize("target", [API_SERVER, "etcd"])
def test_no_gang_is_left_in_part_by_the_death_of_the_api_server(ground: Ground, target: str) -> None:
    """Only gangs want the same room.

    kube-scheduler wakes nobody for a pod that was bound and deleted while its watch was broken: its queueing hint is
    asked about the pod as it was before. Whom we turned away we wake; whom its own filters did sleeps for five minutes.
    """
    ground.follow("fresh")
    assert_all_fine(strike(ground, target, [BEFORE_THE_LAST_CALL, IN_PART], second="gang"))


def test_the_extenders_wall_clock_may_jump(ground: Ground) -> None:
    """Deadlines are kept by the monotonic clock."""
    ground.follow("fresh")
    ground.expect(Blow("jump"))
    for seconds in (86_400.0, -86_400.0):
        assert_all_fine(strike(ground, EXTENDER, [BEFORE_THE_LAST_CALL, IN_PART], Blow("jump", seconds)))


@pytest.mark.parametrize("target", [EXTENDER, GANG_SCHEDULER])
def test_who_stands_still_for_longer_than_anybody_waits_binds_nothing_twice(ground: Ground, target: str) -> None:
    ground.follow("fresh")
    pause = Blow("pause", 20.0)  # a Binding is given up after 15 s and a last look of 2 s
    ground.expect(pause)
    assert_all_fine(strike(ground, target, [BEFORE_THE_LAST_CALL], pause))
