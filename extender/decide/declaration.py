"""What was declared of a gang, when several say something?

The PodGroup comes before the members, the oldest member that says anything before the younger ones, and the job last.
Whoever says something else is overruled, and the gang's owner is told. Counterpart: Koordinator's gang_cache, which
knows PodGroups and annotations.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TypeVar

from msgspec import structs

from extender.model.claim import GangClaim, Ignored, Terms
from extender.model.declaration import (
    Declaration,
    MinAboveReplicas,
    MinBelowRendezvous,
    Problem,
    SourcesDisagree,
    TotalBelowMin,
    Undeclared,
)
from extender.model.job import JobRole, TrainingJob
from extender.model.pod_group import PodGroup
from extender.model.topology import Level, LevelName, Topology, find_level

POD_GROUP = "its PodGroup"
MEMBERS = "its oldest member"
JOB = "its job"

WORKER = "worker"

V = TypeVar("V")

LONGEST_WAITING_S = 7200.0
"""So long, at most, is room kept for one gang before others have a turn, whatever it says: longer than most jobs wait,
and what is kept is of no use to anybody meanwhile."""

_TERMS = {
    "total": "total-number",
    "strict": "mode",
    "waiting_s": "waiting-time",
    "groups": "groups",
    "match_policy": "match-policy",
}
"""The fields of `Terms`, and what their authors call them."""
_LEVELS = ("required", "preferred")
"""Those that are weighed apart: a role of its own may say them."""


def declare_gang(
    claims: Sequence[GangClaim],
    pod_group: PodGroup | None = None,
    job: TrainingJob | None = None,
    levels: Collection[Level] = (),
) -> Declaration | Undeclared:
    """Return what holds for the gang of these claims, the oldest member's first; there must be one.

    `pod_group` and `job` are those that the claims name, where they are known. `levels` are those of the network.
    """
    oldest = claims[0]
    job = _job_of(claims, pod_group, job) if job else None

    # 1. How many members are needed together?
    said = {
        POD_GROUP: pod_group.min_available if pod_group else None,
        MEMBERS: next((claim.min_available for claim in claims if claim.min_available is not None), None),
        JOB: _asked_for(job, oldest.job_role) if job else None,
    }
    min_available, problems = _weigh("min-available", said)
    if min_available is None and job is not None:
        min_available = _all_needed(job, oldest.job_role)
    if min_available is None:
        return Undeclared(oldest.pod_group, oldest.derived, pod_group is not None)

    # 2. What else is said?
    terms, more_problems = _weigh_terms(claims, pod_group, job)
    required, preferred, unknown = _weigh_levels(claims, pod_group, levels)
    replicas = sum(role.replicas for role in _roles(job, oldest.job_role)) if job else 0
    declared = Declaration(
        oldest.key,
        min_available,
        groups=tuple(sorted({oldest.key, *(terms.groups or ())})),
        role_minimums=pod_group.role_minimums if pod_group else _role_minimums(job, oldest.job_role) if job else (),
        job=oldest.job,
        job_roles=tuple(_roles(job, oldest.job_role)) if job else (),
        required_level=required,
        preferred_level=preferred,
        problems=tuple(dict.fromkeys((*terms.ignored, *problems, *more_problems, *unknown))),
    )
    waiting_s = None if terms.waiting_s is None else min(terms.waiting_s, LONGEST_WAITING_S)
    given = {"strict": terms.strict, "waiting_s": waiting_s, "match_policy": terms.match_policy}
    declared = structs.replace(declared, **{name: value for name, value in given.items() if value is not None})

    # 3. Does it make sense?
    is_whole = not (oldest.job_role or (pod_group and pod_group.job_role) or len(declared.groups) > 1)
    nonsense = _nonsense(min_available, terms.total or 0, replicas, _awaited_nodes(claims) if is_whole else 0)
    total = max(min_available, terms.total or replicas)
    return structs.replace(declared, total=total, problems=(*declared.problems, *nonsense))


def overruled(claims: Sequence[GangClaim]) -> list[bool]:
    """Return for each claim, the oldest member's first, whether it says something else than the one that holds.

    Who says nothing of a matter goes with the first that says anything of it.
    """
    verdicts = [_differ_from_first(matter) for matter in zip(*map(_said_of_each_matter, claims), strict=True)]
    return [any(each) for each in zip(*verdicts, strict=True)]


def _said_of_each_matter(claim: GangClaim) -> tuple[tuple[object, ...], ...]:
    least = () if claim.min_available is None else (claim.min_available,)
    return least, _said_in(claim.terms, _TERMS), _said_in(claim.terms, _LEVELS)


def _said_in(terms: Terms, fields: Iterable[str]) -> tuple[object, ...]:
    """Return what the terms say in these fields; empty where they say nothing there."""
    values = tuple(getattr(terms, field) for field in fields)
    return () if all(value is None for value in values) else values


def _differ_from_first(said: Sequence[tuple[object, ...]]) -> list[bool]:
    held = next(filter(None, said), ())
    return [each not in (held, ()) for each in said]


def _job_of(claims: Sequence[GangClaim], pod_group: PodGroup | None, job: TrainingJob) -> TrainingJob | None:
    """Return the job as far as it is the gang; None where that is only a part of it, or of other jobs as well.

    Derived from a job are the roles that name no gang themselves; what the job asks for in all says nothing of them.
    """
    if not claims[0].derived:
        return job if _is_gang_of(claims, pod_group, job) else None
    rest = tuple(role for role in job.roles if not role.has_gang)
    return structs.replace(job, roles=rest, min_available=None) if rest and len(rest) < len(job.roles) else job


def _is_gang_of(claims: Sequence[GangClaim], pod_group: PodGroup | None, job: TrainingJob) -> bool:
    """Whether the gang is the job since it has its name, as operators call their PodGroups.

    Not so where another job's pods are in it as well, or where somebody says how many it needs while the job says that
    its pods need nobody beside them: then it is a gang of several jobs, called like the first of them.
    """
    is_namesake = claims[0].key.partition("/")[2] == job.key.rpartition("/")[2]
    is_counted = bool(pod_group and pod_group.min_available) or any(claim.min_available for claim in claims)
    is_alone = all(claim.job in {"", job.key} for claim in claims)
    return is_namesake and is_alone and not (is_counted and job.min_available == 0)


def _weigh(what: str, said: Mapping[str, V | None]) -> tuple[V | None, list[Problem]]:
    """Return the first value, and who says something else."""
    values = [(source, value) for source, value in said.items() if value is not None]
    if not values:
        return None, []
    (holder, held), *others = values
    return held, [
        SourcesDisagree(what, holder, _shown(held), source, _shown(value)) for source, value in others if value != held
    ]


def _shown(value: object) -> str:
    if isinstance(value, tuple):
        return ", ".join(value)
    if isinstance(value, Level):
        return value.name
    if isinstance(value, bool):
        return "Strict" if value else "NonStrict"
    return f"{value:g} s" if isinstance(value, float) else str(value)


def _weigh_terms(
    claims: Sequence[GangClaim], pod_group: PodGroup | None, job: TrainingJob | None
) -> tuple[Terms, list[Problem]]:
    ours = next((claim.terms for claim in claims if _said_in(claim.terms, _TERMS)), Terms())
    nonsense = next((claim.terms.ignored for claim in claims if claim.terms.ignored), ())
    theirs = pod_group.terms if pod_group else Terms()
    found: dict[str, object] = {}
    problems: list[Problem] = []
    for field, what in _TERMS.items():
        held, more = _weigh(what, {POD_GROUP: getattr(theirs, field), MEMBERS: getattr(ours, field)})
        found[field] = held
        problems += more
    ignored = (*theirs.ignored, *nonsense, *(job.ignored if job else ()))
    return structs.replace(Terms(ignored=ignored), **found), problems


def _weigh_levels(
    claims: Sequence[GangClaim], pod_group: PodGroup | None, levels: Collection[Level]
) -> tuple[Level | None, Level | None, list[Problem]]:
    """Return the level that is required, the one that is preferred, and what is wrong with what is said of them."""
    ours = next((claim.terms for claim in claims if claim.terms.required or claim.terms.preferred), Terms())
    theirs = pod_group.terms if pod_group else Terms()
    problems: list[Problem] = []
    found: list[Level | None] = []
    for field, what in (("required", "required topology"), ("preferred", "preferred topology")):
        said: dict[str, Level | None] = {}
        for source, terms in ((POD_GROUP, theirs), (MEMBERS, ours)):
            names: tuple[LevelName, ...] = getattr(terms, field) or ()
            known = {name: find_level(name, levels) for name in names}
            problems += [_no_level(what, name, levels) for name, level in known.items() if level is None]
            said[source] = Topology(tuple(levels)).nearest(level for level in known.values() if level is not None)
        held, more = _weigh(what, said)
        found.append(held)
        problems += more
    return found[0], found[1], problems


def _no_level(what: str, name: LevelName, levels: Collection[Level]) -> Ignored:
    if name.kind == "tier":
        return Ignored(f"its {what}, tier", name.text, f"1 to {len(levels)}, as topology.levels has so many")
    names = ", ".join(level.name for level in levels)
    return Ignored(f"its {what}", name.text, f"one of topology.levels ({names})")


def _awaited_nodes(claims: Sequence[GangClaim]) -> int:
    """Return for how many nodes the launchers wait; those of a part of a job wait for the other parts' as well."""
    return max(claim.rendezvous_min for claim in claims)


def _nonsense(min_available: int, total: int, replicas: int, nodes: int) -> list[Problem]:
    problems: list[Problem] = []
    if 0 < total < min_available:
        problems.append(TotalBelowMin(total, min_available))
    if 0 < replicas < min_available:
        problems.append(MinAboveReplicas(min_available, replicas))
    if 0 < min_available < nodes:
        problems.append(MinBelowRendezvous(min_available, nodes))
    return problems


def _roles(job: TrainingJob, role: str) -> list[JobRole]:
    return [each for each in job.roles if role in {"", each.name}]


def _asked_for(job: TrainingJob, role: str) -> int | None:
    """Return the number that the job itself asks for."""
    if role:
        return next((each.minimum for each in job.roles if each.name == role), None)
    if job.min_available is not None:
        return job.min_available
    minimums = dict(_role_minimums(job, role))
    return sum(minimums.values()) if minimums else None


def _role_minimums(job: TrainingJob, role: str) -> tuple[tuple[str, int], ...]:
    """Return how many of each role the job can start with; empty where it does not say, and for a gang of one role."""
    if role:
        return ()
    minimums = {each.name: each.minimum for each in job.roles if each.minimum is not None}
    if job.min_workers is not None:
        minimums[WORKER] = job.min_workers
    if not minimums:
        return ()
    return tuple(sorted((each.name, minimums.get(each.name, each.replicas)) for each in job.roles))


def needed_of(job: TrainingJob, role: str) -> int | None:
    """Return how many of a role the job needs."""
    asked_for = _asked_for(job, role)
    return _all_needed(job, role) if asked_for is None else asked_for


def _all_needed(job: TrainingJob, role: str) -> int | None:
    """Return all replicas; of one role's workers no more than the job's own min-available takes beside the others."""
    replicas = sum(each.replicas for each in _roles(job, role))
    if role == WORKER and job.min_available is not None:
        others = sum(each.replicas for each in job.roles) - replicas
        return max(1, min(replicas, job.min_available - others))
    return replicas if _roles(job, role) else None
