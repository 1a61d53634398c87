"""What is a lease? Whoever it names may act until he has not renewed it for its duration."""

from msgspec import Struct


class LeaseRecord(Struct, frozen=True):
    """What a lease says at one time; `holder` is empty where it was given up.

    `renewed_at` is as its writer's clock had it: good for telling two records apart, and for nothing else.
    """

    holder: str
    duration_s: float
    renewed_at: str
    transitions: int
