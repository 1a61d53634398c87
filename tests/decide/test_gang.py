"""Admission of a gang: its own minimum, each role's, and what counts toward them."""

from typing import Any

from extender.decide.gang import admit_gang
from extender.model.claim import GangKey
from extender.model.gang import Gang
from extender.model.node import NodeRoom
from extender.model.pod import Pod
from extender.model.snapshot import Snapshot
from extender.model.verdict import Admission, Gathering, NoRoom, Placed
from tests.builders import a_node, a_pod


def a_gang(*waiting: Pod, min_available: int, **fields: Any) -> Gang:
    return Gang(GangKey("default/g"), min_available, waiting=waiting, **fields)


def on_gpus(*gpus: int) -> Snapshot:
    return Snapshot(1, {f"n{i}": NodeRoom(a_node(f"n{i}", gpu=gpu)) for i, gpu in enumerate(gpus)})


def placed_names(admission: Admission) -> list[str]:
    assert isinstance(admission, Placed)
    return [placement.uid.removeprefix("uid-default-") for placement in admission.placements]


PS = a_pod("ps", role="ps", created_at=9)
WORKERS = [a_pod(f"w{i}", created_at=i) for i in range(4)]


def test_a_roles_minimum_is_placed_before_others_even_if_these_are_older() -> None:
    gang = a_gang(*WORKERS, PS, min_available=2, role_minimums=(("ps", 1), ("worker", 1)))
    assert placed_names(admit_gang(gang, on_gpus(2))) == ["ps", "w0"]


def test_without_room_for_a_roles_minimum_the_gang_has_none_although_min_available_would_fit() -> None:
    big = a_pod("ps", role="ps", gpu=3)
    gang = a_gang(*WORKERS, big, min_available=2, role_minimums=(("ps", 1),))
    assert isinstance(admit_gang(gang, on_gpus(2, 2)), NoRoom)


def test_a_gang_gathers_while_a_role_has_too_few_members() -> None:
    gang = a_gang(*WORKERS, min_available=2, role_minimums=(("ps", 1),))
    assert admit_gang(gang, on_gpus(8)) == Gathering(1, "ps")


def test_members_in_place_count_toward_their_roles_minimum() -> None:
    running = a_pod("ps", role="ps", node="n0")
    gang = a_gang(*WORKERS, min_available=3, bound=(running,), role_minimums=(("ps", 1),))
    assert placed_names(admit_gang(gang, on_gpus(2))) == ["w0", "w1"]


def test_with_only_waiting_those_that_run_do_not_count() -> None:
    running = tuple(a_pod(f"r{i}", node="n0") for i in range(3))
    replacement = a_pod("new")
    policies: dict[str, bool] = {}
    for policy in ("only-waiting", "waiting-and-running", "once-satisfied"):
        gang = a_gang(replacement, min_available=4, bound=running, match_policy=policy)
        policies[policy] = isinstance(admit_gang(gang, on_gpus(1), plan_absent=False), Placed)
    assert policies == {"only-waiting": False, "waiting-and-running": True, "once-satisfied": True}


def test_a_gang_that_ran_stays_satisfied_only_with_once_satisfied() -> None:
    running = (a_pod("r", node="n0"),)
    satisfied = {
        policy: a_gang(min_available=2, bound=running, ran=True, match_policy=policy).satisfied
        for policy in ("only-waiting", "waiting-and-running", "once-satisfied")
    }
    assert satisfied == {"only-waiting": False, "waiting-and-running": False, "once-satisfied": True}


def test_a_succeeded_member_counts_beside_those_that_run() -> None:
    done = a_pod("done", finished=True)
    gang = a_gang(WORKERS[0], min_available=3, bound=(a_pod("r", node="n0"),), succeeded=(done,))
    assert placed_names(admit_gang(gang, on_gpus(1))) == ["w0"]


def test_a_roles_minimum_is_reached_by_whichever_of_its_members_fit() -> None:
    big, small = a_pod("big", gpu=4, created_at=0), a_pod("small", gpu=1, created_at=1)
    gang = a_gang(big, small, min_available=1, role_minimums=(("worker", 1),))
    assert placed_names(admit_gang(gang, on_gpus(2))) == ["small"]


def test_a_roles_minimum_does_not_take_the_only_room_that_another_member_could_have() -> None:
    picky = a_pod("picky", role="evaluator", gpu=2)
    gang = a_gang(PS, picky, min_available=2, role_minimums=(("ps", 1),))
    placed = admit_gang(gang, on_gpus(2, 1))
    assert sorted(placed_names(placed)) == ["picky", "ps"]
    assert sorted(placed_names(admit_gang(gang, on_gpus(2, 1), only_needed=True))) == ["picky", "ps"]
