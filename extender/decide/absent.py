"""What will the members be that do not exist yet?

Like those of their role that exist, since these are made from one template; else as the job's template says, where the
job is known. A wrong guess is mended when the real member comes; nothing is bound before.
"""

from collections import Counter
from itertools import repeat

from extender.decide.leaders import LEADER_ROLES
from extender.model.gang import Gang
from extender.model.job import JobRole
from extender.model.member import Member

MOST = 4096
"""Members that are planned for before they exist. A plan for more takes long, and anybody can write a billion: a
larger gang is planned once its pods are there, and nothing is lost by that but a little time."""


def expect_absent(gang: Gang) -> list[Member]:
    """Return the members that are yet to be created, fewer than are missing where that cannot be told.

    Each role's minimum comes first, or else all its replicas, leaders before the others.
    """
    if gang.missing > MOST:
        return []
    seen = {pod.role: Member(pod.shape, pod.role, tags=pod.tags) for pod in (*gang.bound, *gang.waiting)}
    there = Counter(pod.role for pod in (*gang.waiting, *gang.in_place))
    least = dict(gang.role_minimums)
    absent: list[Member] = []
    for role in sorted(gang.job_roles, key=lambda role: role.name not in LEADER_ROLES):
        count = min(least.get(role.name, role.replicas) - there[role.name], gang.missing - len(absent))
        sample = seen.get(role.name) or _sample_of(role)
        absent += [sample] * count if sample else []
    youngest = (gang.waiting or gang.bound)[-1]
    if youngest.role not in LEADER_ROLES:  # without the job's word, a parameter server or a master is one of a kind
        absent += [seen[youngest.role]] * (gang.missing - len(absent))
    return absent


def expect_followers(gang: Gang) -> list[Member]:
    """Return the members of other gangs that are only made once this one runs, and without which it runs in vain."""
    samples = [(_sample_of(role), role.replicas) for role in gang.followers if not gang.satisfied]
    if sum(count for _, count in samples) > MOST:
        return []
    return [each for sample, count in samples if sample for each in repeat(sample, count)]


def _sample_of(role: JobRole) -> Member | None:
    return Member(role.sample.shape, role.name, tags=role.sample.tags) if role.sample else None
