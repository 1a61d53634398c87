"""A training job: the object from which an operator makes a gang's pods."""

from msgspec import Struct

from extender.model.claim import JobKey


class JobRole(Struct, frozen=True):
    """One kind of replicas, `name` in lower case. `minimum` is None where the job asks for no minimum of this role."""

    name: str
    replicas: int
    minimum: int | None = None
    scheduler_name: str = ""


class TrainingJob(Struct, frozen=True):
    """What a job says of its pods.

    `roles` are those that train, which excludes a master that only makes the others' pods. `min_available` is what the
    job itself asks for; `min_workers` is how few workers it can start with, beside all the other roles.
    """

    key: JobKey
    roles: tuple[JobRole, ...]
    min_available: int | None = None
    min_workers: int | None = None
