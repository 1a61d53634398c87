"""What holds for a gang once all that was written about it is weighed, and what is wrong with what was written."""

from typing import TypeAlias

from msgspec import Struct

from extender.model.claim import GangKey, Ignored, JobKey, MatchPolicy
from extender.model.job import JobRole
from extender.model.topology import Level


class SourcesDisagree(Struct, frozen=True):
    """Two sources say different things; the first one's value holds."""

    what: str
    holder: str
    held: str
    other: str
    ignored: str


class TotalBelowMin(Struct, frozen=True):
    """The total number of members is less than min-available, which is taken for the total."""

    total: int
    min_available: int


class MinAboveReplicas(Struct, frozen=True):
    """The job makes fewer pods than min-available asks for, so that the gang cannot become whole."""

    min_available: int
    replicas: int


class MinBelowRendezvous(Struct, frozen=True):
    """The members' launcher waits for more nodes than min-available brings."""

    min_available: int
    nodes: int


class MissingGang(Struct, frozen=True):
    """A gang that is to be bound together with this one is not there."""

    key: GangKey


class NotNamedBack(Struct, frozen=True):
    """A gang of another namespace that is to be bound together with this one does not say so, or is not there."""

    key: GangKey


Problem: TypeAlias = (
    SourcesDisagree | TotalBelowMin | MinAboveReplicas | MinBelowRendezvous | MissingGang | NotNamedBack | Ignored
)


class Declaration(Struct, frozen=True):
    """What holds for a gang. Where nobody says otherwise, Koordinator's defaults do.

    `min_available` 0 means that its pods need not run together. `total` is how many members there will be. `waiting_s`
    is how long members may hold room while they wait for the others. `groups` are the gangs that are bound together,
    this one included, sorted. `role_minimums` are sorted by role. `job` makes its pods, empty where that is unknown.
    `job_roles` are the roles of the job that the gang consists of, where the job is known. One domain of the
    `required_level` must take the gang, and one of the `preferred_level` should, or else one of a level farther out.
    """

    key: GangKey
    min_available: int
    total: int = 0
    strict: bool = True
    waiting_s: float = 600.0
    groups: tuple[GangKey, ...] = ()
    match_policy: MatchPolicy = "once-satisfied"
    role_minimums: tuple[tuple[str, int], ...] = ()
    job: JobKey = JobKey("")
    job_roles: tuple[JobRole, ...] = ()
    required_level: Level | None = None
    preferred_level: Level | None = None
    problems: tuple[Problem, ...] = ()


class Undeclared(Struct, frozen=True):
    """Nobody says how many members the gang needs.

    `pod_group` is the API group of the PodGroup that could, empty for none; it `is_there` where that says no number.
    `derived` says that the job would.
    """

    pod_group: str = ""
    derived: bool = False
    is_there: bool = False
