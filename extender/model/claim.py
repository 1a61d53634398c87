"""What a pod says of its gang, before anybody looks at its siblings."""

from typing import Literal, NewType, TypeAlias

from msgspec import Struct

from extender.model.topology import LevelName

GangKey = NewType("GangKey", str)
"""`namespace/name`, as it is shown to users: the same name in two namespaces is two gangs. A gang that is derived from
a job is called `namespace/kind/name`, which no declared one can be; so is a pod that is a gang of its own, of kind
`pod`."""

JobKey = NewType("JobKey", str)
"""`namespace/kind/name` of the job that makes a gang's pods, the kind in lower case; empty for none."""

_SOLO = "pod"

MatchPolicy: TypeAlias = Literal["only-waiting", "waiting-and-running", "once-satisfied"]
"""Koordinator's: which members count toward min-available."""


class Ignored(Struct, frozen=True, gc=False):
    """A value that cannot be used and is passed over; `where` and `wanted` are parts of a sentence for its author."""

    where: str
    value: str
    wanted: str


class Terms(Struct, frozen=True, gc=False):
    """What one source says of a gang beside min-available; None where it says nothing.

    `groups` are the gangs that are bound together with this one. Of each of the levels `required` a single domain must
    take the gang; `preferred` is the nearest one of which a single domain had better do. `ignored` is what it says that
    makes no sense.
    """

    total: int | None = None
    strict: bool | None = None
    waiting_s: float | None = None
    groups: tuple[GangKey, ...] | None = None
    match_policy: MatchPolicy | None = None
    required: tuple[LevelName, ...] | None = None
    preferred: tuple[LevelName, ...] | None = None
    ignored: tuple[Ignored, ...] = ()


class GangClaim(Struct, frozen=True, gc=False):
    """The gang that a pod declares itself a member of.

    `min_available` is None where the PodGroup or the job says it. `pod_group` is the API group of the PodGroup that
    would declare the gang, empty where none would. `derived` says that only the job makes it a gang; `job_role` names
    the one role of the job that the gang consists of, empty for all of them. `rendezvous_min` is how many nodes the
    pod's own launcher waits for (`--nnodes=3:4`), 0 where it does not say.
    """

    key: GangKey
    min_available: int | None = None
    terms: Terms = Terms()
    pod_group: str = ""
    job: JobKey = JobKey("")
    job_role: str = ""
    derived: bool = False
    rendezvous_min: int = 0


class BadGangClaim(Struct, frozen=True, gc=False):
    """Gang metadata that cannot be honoured; `problem` is a sentence for the pod's owner.

    `derived` says that only the job makes it a gang.
    """

    key: GangKey
    problem: str
    derived: bool = False


def gang_key(namespace: str, name: str) -> GangKey:
    """Return the key of the gang `name` in `namespace`."""
    return GangKey(f"{namespace}/{name}")


def namespace_of(key: GangKey) -> str:
    """Return the namespace of a gang."""
    return key.partition("/")[0]


def solo_claim(namespace: str, pod_name: str) -> GangClaim:
    """Return the claim of a pod without a gang that is planned as one: a gang of itself."""
    return GangClaim(GangKey(f"{namespace}/{_SOLO}/{pod_name}"), min_available=1)


def solo_pod(key: GangKey) -> str:
    """Return `namespace/name` of the pod that is this gang all by itself; empty for any other gang."""
    namespace, *kind, name = key.split("/")
    return f"{namespace}/{name}" if kind == [_SOLO] else ""


def followers_key(job: JobKey) -> GangKey:
    """Return the key under which room is held for pods that the job makes once others of it run; no gang has it."""
    return GangKey(f"{job}/*")


def job_key(namespace: str, kind: str, name: str) -> JobKey:
    """Return the key of a job, whose `kind` is in the API's own spelling."""
    return JobKey(f"{namespace}/{kind.lower()}/{name}")
