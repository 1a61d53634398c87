"""What holds for a gang when several say something, and what its owner is told."""

import pytest
from msgspec import structs

from extender.decide.declaration import declare_gang, overruled
from extender.decide.explain import explain_problem
from extender.model.claim import GangClaim, GangKey, Ignored, JobKey, Terms
from extender.model.declaration import Declaration, Undeclared
from extender.model.job import JobRole, TrainingJob
from extender.model.pod_group import VOLCANO, PodGroup
from extender.model.topology import Level, LevelName, find_level

KEY = GangKey("default/job1")
JOB = JobKey("default/tfjob/job1")


def a_claim(min_available: int | None = None, *, rendezvous_min: int = 0, **terms: object) -> GangClaim:
    return GangClaim(KEY, min_available, Terms(**terms), VOLCANO, JOB, rendezvous_min=rendezvous_min)  # type: ignore[arg-type]  # whatever Terms has


def a_derived_claim(role: str = "", min_available: int | None = None) -> GangClaim:
    return GangClaim(GangKey(JOB), min_available, job=JOB, job_role=role, derived=True)


def a_group(min_available: int | None, **terms: object) -> PodGroup:
    return PodGroup(VOLCANO, KEY, min_available, Terms(**terms))  # type: ignore[arg-type]  # as above


def a_job(min_available: int | None = None, min_workers: int | None = None, **replicas: int) -> TrainingJob:
    roles = tuple(JobRole(name, count) for name, count in replicas.items())
    return TrainingJob(JOB, roles, min_available, min_workers)


def declared(*claims: GangClaim, group: PodGroup | None = None, job: TrainingJob | None = None) -> Declaration:
    found = declare_gang(claims, group, job)
    assert isinstance(found, Declaration)
    return found


def problems(*claims: GangClaim, group: PodGroup | None = None, job: TrainingJob | None = None) -> list[str]:
    return [explain_problem(problem) for problem in declared(*claims, group=group, job=job).problems]


def test_the_pod_group_comes_first_then_the_oldest_member_that_says_anything_then_the_job() -> None:
    job = a_job(2, ps=1, worker=4)
    assert declared(a_claim(), a_claim(4), a_claim(5), group=a_group(3), job=job).min_available == 3
    assert declared(a_claim(), a_claim(4), a_claim(5), group=a_group(None), job=job).min_available == 4
    assert declared(a_claim(), job=job).min_available == 2
    assert declared(a_claim(), job=a_job(ps=1, worker=4)).min_available == 5


def test_without_anyone_who_says_how_many_the_gang_is_undeclared() -> None:
    assert declare_gang([a_claim()]) == Undeclared(VOLCANO, derived=False)
    assert declare_gang([a_derived_claim()]) == Undeclared("", derived=True)


def test_a_gang_of_another_name_than_its_jobs_is_only_a_part_of_the_job() -> None:
    part = GangClaim(GangKey("default/job1-ps"), job=JOB)
    assert isinstance(declare_gang([part], job=a_job(2, ps=1, worker=4)), Undeclared)


def test_a_job_that_needs_nobody_together_says_so_where_nobody_else_says_a_number() -> None:
    assert declared(a_claim(), group=a_group(None), job=a_job(0, worker=4)).min_available == 0
    gang = declared(a_claim(4), job=a_job(0, worker=1))
    assert (gang.min_available, gang.problems) == (4, ())


def test_the_defaults_are_koordinators() -> None:
    gang = declared(a_claim(4))
    assert (gang.total, gang.strict, gang.waiting_s, gang.match_policy) == (4, True, 600.0, "once-satisfied")
    assert gang.groups == (KEY,)
    assert gang.problems == ()


def test_each_term_holds_as_its_first_source_says_it() -> None:
    claim = a_claim(4, total=6, strict=False, groups=(GangKey("default/b"), GangKey("default/a")))
    gang = declared(claim, group=a_group(4, waiting_s=30.0, match_policy="only-waiting"))
    assert (gang.total, gang.strict, gang.waiting_s, gang.match_policy) == (6, False, 30.0, "only-waiting")
    assert gang.groups == ("default/a", "default/b", KEY)
    assert gang.problems == ()


def test_sources_that_disagree_are_told_and_the_first_one_holds() -> None:
    claim = a_claim(4, strict=False, waiting_s=60.0)
    assert problems(claim, group=a_group(3, strict=True, waiting_s=30.0), job=a_job(2, worker=4)) == [
        "min-available is 3 by its PodGroup, which holds, and 4 by its oldest member, which is ignored",
        "min-available is 3 by its PodGroup, which holds, and 2 by its job, which is ignored",
        "mode is Strict by its PodGroup, which holds, and NonStrict by its oldest member, which is ignored",
        "waiting-time is 30 s by its PodGroup, which holds, and 60 s by its oldest member, which is ignored",
    ]


def test_replicas_that_nobody_asked_for_as_a_minimum_contradict_nothing() -> None:
    assert problems(a_claim(2), job=a_job(worker=4)) == []


def test_a_total_below_min_available_is_raised_to_it() -> None:
    assert declared(a_claim(4, total=3)).total == 4
    (problem,) = problems(a_claim(4, total=3))
    assert problem == "total-number 3 is less than min-available 4, which is taken for both"


def test_a_minimum_above_all_that_the_job_makes_holds_and_is_told() -> None:
    gang = declared(a_derived_claim(), job=a_job(9, worker=4))
    assert (gang.min_available, gang.total) == (9, 9)
    (problem,) = problems(a_derived_claim(), job=a_job(9, worker=4))
    assert problem.startswith("min-available 9 is more than the 4 pods that its job makes")


@pytest.mark.parametrize(("min_available", "told"), [(2, True), (3, False), (4, False)])
def test_a_minimum_below_the_launchers_own_is_told(min_available: int, told: bool) -> None:
    found = problems(a_claim(min_available), a_claim(min_available, rendezvous_min=3))
    assert bool(found) == told
    assert declared(a_claim(min_available, rendezvous_min=3)).min_available == min_available


def test_a_gang_that_is_a_part_of_what_the_launcher_waits_for_may_have_fewer_members() -> None:
    role = structs.replace(a_derived_claim("worker", 3), rendezvous_min=4)
    assert problems(role, job=a_job(master=1, worker=3)) == []
    assert problems(a_claim(3, rendezvous_min=4), group=PodGroup(VOLCANO, KEY, 3, job_role="worker")) == []
    assert problems(a_claim(3, rendezvous_min=4, groups=(GangKey("default/the-others"),))) == []


def test_what_cannot_be_used_is_told_with_what_is_wanted() -> None:
    claim = a_claim(
        4, ignored=(Ignored("annotation gang.scheduling.koordinator.sh/mode", "strict", "Strict or NonStrict"),)
    )
    assert declared(claim).strict
    assert problems(claim) == [
        "annotation gang.scheduling.koordinator.sh/mode is 'strict' and is ignored: it must be Strict or NonStrict"
    ]


def test_a_derived_gangs_roles_have_the_minimums_that_its_job_can_begin_with() -> None:
    gang = declared(a_derived_claim(), job=a_job(min_workers=2, ps=1, worker=4))
    assert (gang.min_available, gang.total, gang.role_minimums) == (3, 5, (("ps", 1), ("worker", 2)))


def test_a_role_that_the_job_does_not_know_is_not_declared_by_it() -> None:
    assert isinstance(declare_gang([a_derived_claim("ghost")], job=a_job(worker=4)), Undeclared)


def test_members_that_say_something_else_than_the_first_that_says_anything_are_overruled() -> None:
    silent, first, same, other = a_claim(), a_claim(2, total=4), a_claim(2, total=4), a_claim(2, total=5)
    assert overruled([silent, first, same, other]) == [False, False, False, True]
    assert overruled([silent]) == [False]


def test_what_a_role_says_of_the_network_alone_does_not_silence_the_others() -> None:
    worker = a_claim(preferred=(LevelName("zone", "label"),))
    ps = a_claim(match_policy="only-waiting", groups=(GangKey("default/other"),))
    gang = declared(worker, ps, group=a_group(4))
    assert (gang.match_policy, gang.groups) == ("only-waiting", (KEY, "default/other"))
    assert overruled([worker, ps]) == [False, False]


def test_what_makes_no_sense_on_one_role_does_not_silence_the_others() -> None:
    wrong = Ignored("annotation a", "b", "c")
    worker, ps = a_claim(4, ignored=(wrong,)), a_claim(4, match_policy="only-waiting")
    assert declared(worker, ps).match_policy == "only-waiting"
    assert (wrong in declared(worker, ps).problems, wrong in declared(ps, worker).problems) == (True, True)


def test_nobody_is_told_to_be_overruled_whose_words_hold() -> None:
    worker, ps = a_claim(4), a_claim(match_policy="only-waiting")
    assert declared(worker, ps).match_policy == "only-waiting"
    assert overruled([worker, ps]) == [False, False]
    assert overruled([worker, ps, a_claim(match_policy="once-satisfied")]) == [False, False, True]


BLOCK, SPINE = Level("block", ("example.com/leaf", "example.com/block")), Level("spine", ("example.com/spine",))


def levels_of(*claims: GangClaim, group: PodGroup | None = None) -> tuple[str, str, list[str]]:
    """Return the names of the required and the preferred level, and what is told."""
    found = declare_gang(claims, group, None, (BLOCK, SPINE))
    assert isinstance(found, Declaration)
    required, preferred = (level.name if level else "" for level in (found.required_level, found.preferred_level))
    return required, preferred, [explain_problem(problem) for problem in found.problems]


@pytest.mark.parametrize(
    ("name", "level"),
    [
        (LevelName("block"), BLOCK),
        (LevelName("BlockLayer", "name"), BLOCK),
        (LevelName("2", "tier"), SPINE),
        (LevelName("example.com/leaf"), Level("example.com/leaf", ("example.com/leaf",))),
        (LevelName("block", "label"), Level("block", ("block",))),
        (LevelName("rack"), Level("rack", ("rack",))),
    ],
)
def test_a_level_is_named_by_its_name_its_number_or_a_label(name: LevelName, level: Level) -> None:
    assert find_level(name, (BLOCK, SPINE)) == level


def test_what_names_no_level_is_told_with_those_that_there_are() -> None:
    tier = (LevelName("3", "tier"),)
    required, preferred, told = levels_of(a_claim(4, required=(LevelName("RackLayer", "name"),), preferred=tier))
    assert (required, preferred) == ("", "")
    assert told == [
        "its required topology is 'RackLayer' and is ignored: it must be one of topology.levels (block, spine)",
        "its preferred topology, tier is '3' and is ignored: it must be 1 to 2, as topology.levels has so many",
    ]


def test_of_several_levels_the_nearest_one_says_it_all() -> None:
    both = (LevelName("spine"), LevelName("block"))
    assert levels_of(a_claim(4, required=both, preferred=both)) == ("block", "block", [])


def test_the_pod_group_says_first_where_a_gang_must_be() -> None:
    ours, theirs = (LevelName("block"),), (LevelName("2", "tier"),)
    required, _, told = levels_of(a_claim(4, required=ours), group=a_group(4, required=theirs))
    assert required == "spine"
    assert told == [
        "required topology is spine by its PodGroup, which holds, and block by its oldest member, which is ignored"
    ]
    assert levels_of(a_claim(4, required=ours), group=a_group(4, required=(LevelName("1", "tier"),)))[2] == []


def test_a_role_whose_template_says_nothing_goes_with_those_that_do() -> None:
    ps, worker = a_claim(4, total=8), a_claim(4, total=8, required=(LevelName("block"),))
    assert levels_of(ps, worker)[0] == "block"
    assert overruled([ps, worker]) == [False, False]
    assert overruled([worker, a_claim(4, total=8, required=(LevelName("spine"),))]) == [False, True]
