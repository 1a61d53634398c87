"""A PodGroup object, of whichever scheduler's API."""

from typing import Final

from msgspec import Struct

from extender.model.claim import GangKey, JobKey, Terms

UPSTREAM: Final = "scheduling.k8s.io"
KOORDINATOR: Final = "scheduling.sigs.k8s.io"
SCHEDULER_PLUGINS: Final = "scheduling.x-k8s.io"
VOLCANO: Final = "scheduling.volcano.sh"


class GroupStatus(Struct, frozen=True):
    """What stands in a PodGroup's status; `phase` is empty before anybody wrote one, and is in the API's own words."""

    phase: str = ""
    scheduled: int = 0
    running: int = 0
    succeeded: int = 0
    failed: int = 0


class PodGroup(Struct, frozen=True):
    """The gang that the object of API group `api` declares, under the object's own name.

    `min_available` is None where it does not say, and 0 where it says that its pods need not run together.
    `role_minimums` has how many members of a role are needed, sorted by role. `job` made it, empty where none did,
    and `job_role` is the one role of the job that it is for, empty for all of them.
    """

    api: str
    key: GangKey
    min_available: int | None = None
    terms: Terms = Terms()
    role_minimums: tuple[tuple[str, int], ...] = ()
    uid: str = ""
    job: JobKey = JobKey("")
    job_role: str = ""
    status: GroupStatus = GroupStatus()


class StatusReport(Struct, frozen=True):
    """The status that a PodGroup is to have."""

    group: PodGroup
    status: GroupStatus
