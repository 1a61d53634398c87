"""A PodGroup's status as its own scheduler would write it."""

import pytest
from msgspec import structs

from extender.decide.group_status import group_status
from extender.model.claim import GangKey
from extender.model.pod import Pod
from extender.model.pod_group import KOORDINATOR, SCHEDULER_PLUGINS, VOLCANO, GroupStatus, PodGroup
from tests.builders import a_pod


def members(stages: str) -> list[Pod]:
    """Return a pod per letter: waiting, bound, running, succeeded, failed."""
    made = []
    for number, stage in enumerate(stages):
        pod = a_pod(f"w{number}", gang="g", node="" if stage == "w" else "n1", finished=stage in "sf")
        made.append(structs.replace(pod, running=stage == "r", succeeded=stage == "s"))
    return made


@pytest.mark.parametrize(
    ("stages", "koordinator", "scheduler_plugins", "volcano"),
    [
        ("", "Pending", "Pending", "Inqueue"),
        ("w", "Pending", "Pending", "Inqueue"),
        ("ww", "Scheduling", "Scheduling", "Inqueue"),
        ("bw", "Scheduling", "Scheduling", "Inqueue"),
        ("rw", "Scheduling", "Scheduling", "Unknown"),
        ("bb", "Scheduled", "Scheduling", "Running"),
        ("rb", "Scheduled", "Scheduling", "Running"),
        ("rrw", "Running", "Running", "Running"),
        ("sr", "Running", "Running", "Running"),
        ("ss", "Finished", "Finished", "Completed"),
        ("ssr", "Finished", "Finished", "Running"),
        ("fr", "Failed", "Failed", "Unknown"),
    ],
)
def test_the_phase_of_a_gang_that_needs_two(
    stages: str, koordinator: str, scheduler_plugins: str, volcano: str
) -> None:
    phases = [
        group_status(PodGroup(api, GangKey("default/g"), 2), members(stages)).phase
        for api in (KOORDINATOR, SCHEDULER_PLUGINS, VOLCANO)
    ]
    assert phases == [koordinator, scheduler_plugins, volcano]


def test_pods_are_counted_by_how_far_they_are() -> None:
    group = PodGroup(KOORDINATOR, GangKey("default/g"), 6)
    assert group_status(group, members("wbrrsf")) == GroupStatus("Scheduling", 5, 2, 1, 1)


@pytest.mark.parametrize("phase", ["Finished", "Failed"])
def test_what_is_over_stays_over(phase: str) -> None:
    before = GroupStatus(phase, running=1)
    group = PodGroup(SCHEDULER_PLUGINS, GangKey("default/g"), 2, status=before)
    assert group_status(group, members("rr")) == before
