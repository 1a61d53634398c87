"""A training job: the object from which an operator makes a gang's pods."""

from msgspec import Struct

from extender.model.claim import Ignored, JobKey
from extender.model.pod import Occupant


class JobRole(Struct, frozen=True):
    """One kind of replicas, `name` in lower case. `minimum` is None where the job asks for no minimum of this role.

    `sample` is what its pods will look like, None where that cannot be told. With `has_gang` its template names a gang.
    """

    name: str
    replicas: int
    minimum: int | None = None
    scheduler_name: str = ""
    sample: Occupant | None = None
    has_gang: bool = False


class TrainingJob(Struct, frozen=True):
    """What a job says of its pods.

    `roles` are those that train, which excludes a master that only makes the others' pods. `min_available` is what the
    job itself asks for; `min_workers` is how few workers it can start with, beside all the other roles.
    `in_stages` says that its operator makes the pods of a role, in the order of `roles`, once those before it run.
    `ignored` is what it says that makes no sense.
    """

    key: JobKey
    roles: tuple[JobRole, ...]
    min_available: int | None = None
    min_workers: int | None = None
    in_stages: bool = False
    ignored: tuple[Ignored, ...] = ()
