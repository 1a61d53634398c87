"""What is wrong? Every check on everything that is known, topic by topic."""

from collections.abc import Iterator

from extender.doctor.entries import ENTRIES, Wiring
from extender.doctor.facts import Facts, Scheduler
from extender.doctor.finding import Check, Finding, Problem, Unseen, examine, unknown
from extender.doctor.fleet import (
    CALLED,
    EXTENDERS,
    PODS,
    marks_are_known,
    members_are_marked,
    spared,
    unserved_kinds,
    untold_shares,
)
from extender.doctor.installation import check_kinds, check_policies, parts_in_use
from extender.doctor.managed import MANAGED
from extender.doctor.permissions import Asked, check_permissions
from extender.doctor.scheduling import ELECTIONS, PROCESSES, SCHEDULING

GIVE_A_FILE = (
    "gang-extender doctor --scheduler-config FILE, with a copy of the file that kube-scheduler was started with"
)


_NO_PROCESS = Unseen("no pod of kube-scheduler was looked at", "gang-extender doctor --configz URL, see the README")


def diagnose(facts: Facts) -> list[Finding]:
    """Return what every check says."""
    return [
        _settings(facts),
        *_wiring(facts),
        *_processes(facts),
        *_rights(facts),
        *_installation(facts),
        *_running(facts),
    ]


def _settings(facts: Facts) -> Finding:
    name, problem = "the extender's settings", facts.settings_problem
    if problem is None:
        return Finding(name, "ok", where=facts.settings_source)
    return Finding(name, problem.level, problem.what, facts.settings_source, problem.mend)


def _wiring(facts: Facts) -> Iterator[Finding]:
    for source, why in facts.unread:
        yield Finding("KubeSchedulerConfiguration", "unknown", why, source, GIVE_A_FILE)
    if isinstance(facts.schedulers, Unseen):
        yield unknown("KubeSchedulerConfiguration", facts.schedulers)
        return
    ours = [each for each in facts.schedulers if _concerns_us(each, facts)]
    if not ours:
        yield _unwired(facts, facts.schedulers)
    for scheduler in ours:
        yield _in_use(scheduler)
        wiring = Wiring(scheduler.config, facts.settings)
        yield from examine((*ENTRIES, *MANAGED, *SCHEDULING), wiring, scheduler.source)
    yield from examine(ELECTIONS, facts)


def _concerns_us(scheduler: Scheduler, facts: Facts) -> bool:
    """Whether pods of ours go there, or it calls us."""
    wiring = Wiring(scheduler.config, facts.settings)
    return bool(set(scheduler.config.names) & set(facts.settings.scheduler_names) or wiring.ours)


def _unwired(facts: Facts, schedulers: tuple[Scheduler, ...]) -> Finding:
    names = ", ".join(facts.settings.scheduler_names)
    seen = "; ".join(f"{each.source}: {', '.join(each.config.names)}" for each in schedulers) or "none"
    what = f"no kube-scheduler that was seen has a profile {names} or calls the extender (seen: {seen})"
    mend = "kubectl apply -k manifests/base, or wire the cluster's own kube-scheduler by scheduler-config/shared.yaml"
    return Finding("a kube-scheduler for us", "unknown" if facts.unread else "error", what, mend=mend)


def _in_use(scheduler: Scheduler) -> Finding:
    name = "KubeSchedulerConfiguration"
    if not scheduler.in_use:
        return Finding(name, "ok", where=scheduler.source)
    return Finding(
        name, "unknown", scheduler.in_use, scheduler.source, "gang-extender doctor --configz URL, see the README"
    )


def _processes(facts: Facts) -> Iterator[Finding]:
    if isinstance(facts.processes, Unseen):
        yield unknown("pods of kube-scheduler", facts.processes)
        return
    if not facts.processes:
        yield unknown("version and feature gates of kube-scheduler", _NO_PROCESS)
    for process in facts.processes:
        yield from examine(PROCESSES, process, process.name)


def _rights(facts: Facts) -> Iterator[Finding]:
    schedulers = facts.schedulers if isinstance(facts.schedulers, tuple) else ()
    is_dedicated = any(not Wiring(each.config, facts.settings).shared for each in schedulers)
    identities = {who: name for who, name in facts.identities.items() if who == "extender" or is_dedicated}
    served = None if isinstance(facts.served, Unseen) else frozenset(facts.served)
    yield from check_permissions(facts.rights, Asked(frozenset(parts_in_use(facts)), identities, served))


def _installation(facts: Facts) -> Iterator[Finding]:
    yield from check_kinds(facts, unserved_kinds(facts))
    yield from check_policies(facts, untold_shares(facts))


def _running(facts: Facts) -> Iterator[Finding]:
    if isinstance(facts.fleet, Unseen):
        yield unknown("pods", facts.fleet)
    else:
        schedulers = facts.schedulers if isinstance(facts.schedulers, tuple) else ()
        wirings = [Wiring(each.config, facts.settings) for each in schedulers]
        yield from examine((*PODS, _marks(wirings)), facts)
    if isinstance(facts.extenders, Unseen):
        yield unknown("the extender itself", facts.extenders)
        return
    for extender in spared(facts):
        yield from examine(EXTENDERS, extender, extender.where)
    yield from examine(CALLED, facts)


def _marks(wirings: list[Wiring]) -> Check[Facts]:
    def look(facts: Facts) -> Iterator[Problem]:
        yield from members_are_marked(facts, wirings)
        yield from marks_are_known(facts, wirings)

    return Check("members have the marks that a shared kube-scheduler asks for, and no others", look)
