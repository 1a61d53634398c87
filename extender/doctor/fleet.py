"""Do the pods and the running extender show that it works?"""

from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final

from msgspec import structs

from extender.decide.explain import STANDING_BY
from extender.doctor.entries import Wiring
from extender.doctor.facts import Extender, Facts, Fleet
from extender.doctor.finding import Check, Problem, Unseen
from extender.doctor.managed import MARKS
from extender.model.claim import GangClaim
from extender.model.device import CardDialect, CardRequest
from extender.model.pod import HOLD_GATE
from extender.wire.cards.requests import card_request
from extender.wire.core_v1 import Pod
from extender.wire.gang_dialects import gang_of
from extender.wire.quantity import BadQuantity

UNSEEN_S: Final = 30.0
"""A pod that its scheduler has not looked at within that time is not being looked at: a second is usual."""

_SHOWN: Final = 3
"""How many pods are named of those that have a problem."""
_DEFAULT: Final = "default-scheduler"
_OWN_SHARES: Final = frozenset({CardDialect.KUBESHARE_1, CardDialect.KUBESHARE_2, CardDialect.KAI})


def pods_are_looked_at(facts: Facts) -> Iterator[Problem]:
    """Be tried by the scheduler that they name."""
    known = _profiles(facts)
    forgotten: dict[str, list[Pod]] = {}
    for pod in _pods(facts):
        if not _is_tried(pod) and _age_s(pod, facts.now_s) > UNSEEN_S:
            forgotten.setdefault(pod.spec.scheduler_name, []).append(pod)
    for name, pods in forgotten.items():
        ours = name in facts.settings.scheduler_names
        what = f"no scheduler has looked at {_named(pods)}, of schedulerName {name}"
        if ours:
            mend = f"see whether its kube-scheduler runs and leads: kubectl get lease -A; a profile must name {name}"
            yield Problem(what, mend)
        elif known and name not in known:
            profiles = ", ".join(sorted(known))
            mend = f"schedulerName: {facts.settings.scheduler_names[0]}, should they be for us (profiles: {profiles})"
            yield Problem(what + ", which no profile that was seen has", mend, level="warning")


def gangs_name_us(facts: Facts) -> Iterator[Problem]:
    """Name one of our schedulers, where they say that they are a gang."""
    strangers = [pod for pod in _pods(facts) if pod.spec.scheduler_name == _DEFAULT and _declares(pod)]
    if strangers and _DEFAULT not in facts.settings.scheduler_names:
        what = f"{_named(strangers)} say that they are a gang, and name {_DEFAULT}, which does not know gangs"
        yield Problem(what, f"schedulerName: {facts.settings.scheduler_names[0]}", level="warning")


def held_pods_are_ours(facts: Facts) -> Iterator[Problem]:
    """Have our gate only where we take it off."""
    stuck = [
        pod for pod in _pods(facts) if _is_held(pod) and pod.spec.scheduler_name not in facts.settings.scheduler_names
    ]
    if stuck:
        what = f"{_named(stuck)} have the gate {HOLD_GATE} and name a scheduler that is not ours: nobody takes it off"
        yield Problem(what, "schedulerNames: [...] in the extender's settings, or remove the gate")


def members_are_marked(facts: Facts, wirings: list[Wiring]) -> Iterator[Problem]:
    """Ask for the marks where the kube-scheduler is shared."""
    asked = {each.name for w in wirings if w.shared for place in w.ours for each in place.entry.managed} & set(MARKS)
    bare = [pod for pod in _ours(facts) if not asked <= _requested(pod)]
    if asked and bare:
        lines = ", ".join(f'{name}: "1"' for name in sorted(asked))
        what = f"{_named(bare)} do not ask for {' and '.join(sorted(asked))}: the extender is not called for them"
        yield Problem(what, f"resources: {{requests: {{{lines}}}, limits: {{{lines}}}}}, in one container")


def marks_are_known(facts: Facts, wirings: list[Wiring]) -> Iterator[Problem]:
    """Ask for no mark that kube-scheduler would look for on nodes."""
    for wiring in wirings:
        ignored = {each.name for e in wiring.config.extenders or () for each in e.managed if each.ignored_by_scheduler}
        ours = [
            pod for pod in _ours(facts) if pod.spec.scheduler_name in wiring.config.names and not pod.spec.node_name
        ]
        stuck = [pod for pod in ours if _requested(pod) & set(MARKS) - ignored]
        if stuck:
            what = f"{_named(stuck)} ask for {' or '.join(MARKS)}, which no node has and kube-scheduler does not ignore"
            lines = ", ".join(f"{{name: {name}, ignoredByScheduler: true}}" for name in MARKS)
            yield Problem(what, f"remove it from the pods, or to the entry without verbs: managedResources: [{lines}]")


def spared(facts: Facts) -> tuple[Extender, ...]:
    """Return the extenders; in service mode who stands by for one that is ready is never ready, as it should be."""
    extenders = facts.extenders if isinstance(facts.extenders, tuple) else ()
    if facts.settings.leader_election.mode != "service" or all(each.ready != "" for each in extenders):
        return extenders
    standing_by = f"leader {STANDING_BY}"
    return tuple(structs.replace(each, ready="") if each.ready == standing_by else each for each in extenders)


def is_ready(extender: Extender) -> Iterator[Problem]:
    """Answer that it is ready."""
    if isinstance(extender.ready, Unseen):
        yield Problem(extender.ready.why, extender.ready.mend, level="unknown")
    elif extender.ready:
        mend = "see its log; where a watch is not synced, a right or the API server is missing"
        yield Problem(f"it is not ready: {extender.ready}", mend)


def is_reachable(extender: Extender) -> Iterator[Problem]:
    """Answer at the entries' URLs."""
    if isinstance(extender.reachable, Unseen):
        yield Problem(extender.reachable.why, extender.reachable.mend, level="unknown")
        return
    for url, problem in extender.reachable.items():
        if problem:
            yield Problem(f"nobody answers as the extender at {url}: {problem}", "mend urlPrefix, or start it there")


def is_called(facts: Facts) -> Iterator[Problem]:
    """Be called, where pods of ours are tried."""
    extenders = facts.extenders if isinstance(facts.extenders, tuple) else ()
    seen = [each.calls for each in extenders if not isinstance(each.calls, Unseen)]
    if not seen or len(seen) < len(extenders):
        why = next((each.calls for each in extenders if isinstance(each.calls, Unseen)), Unseen("no extender was seen"))
        yield Problem(why.why, why.mend, level="unknown")
        return
    calls: Counter[str] = Counter()
    for each in seen:
        calls.update(each)
    started_s = min(each.started_s for each in extenders)
    bound = [pod for pod in _ours(facts) if _bound_s(pod, facts) > started_s]
    failed = [pod for pod in _ours(facts) if _has_failed(pod)]
    mend = "see urlPrefix, bindVerb and managedResources of the entries; restart kube-scheduler after a change"
    if bound and not (calls["filter"] and calls["bind"]):
        verb = "bind" if calls["filter"] else "filter"
        what = f"{verb} was never called since the extender started, and {_named(bound)} were bound since"
        yield Problem(what, mend, level="warning")
    elif failed and not calls["filter"]:
        what = f"filter was never called since the extender started, and {_named(failed)} failed in kube-scheduler"
        yield Problem(what, mend, level="warning")


def unserved_kinds(facts: Facts) -> Counter[str]:
    """Count the waiting pods that need a PodGroup, by `resource.group`, whose min-available nobody else says."""
    claims = (gang_of(pod) for pod in _ours(facts) if not pod.spec.node_name)
    return Counter(
        f"podgroups.{claim.pod_group}"
        for claim in claims
        if isinstance(claim, GangClaim) and claim.pod_group and claim.min_available is None
    )


def untold_shares(facts: Facts) -> int:
    """Count the pods that ask for a share that no device plugin hands out, and that are not told which GPU it is."""
    told = facts.fleet.told if isinstance(facts.fleet, Fleet) else frozenset()
    return sum(1 for pod in _ours(facts) if pod.metadata.uid not in told and _asks_for_own_share(pod))


def _asks_for_own_share(pod: Pod) -> bool:
    try:
        request = card_request(pod)
    except BadQuantity:
        return False
    return isinstance(request, CardRequest) and request.dialect in _OWN_SHARES


def _profiles(facts: Facts) -> set[str]:
    schedulers = facts.schedulers if isinstance(facts.schedulers, tuple) else ()
    return {name for each in schedulers for name in each.config.names} | ({_DEFAULT} if schedulers else set())


def _pods(facts: Facts) -> tuple[Pod, ...]:
    return () if isinstance(facts.fleet, Unseen) else facts.fleet.pods


def _ours(facts: Facts) -> list[Pod]:
    return [pod for pod in _pods(facts) if pod.spec.scheduler_name in facts.settings.scheduler_names]


def _is_tried(pod: Pod) -> bool:
    return bool(pod.spec.node_name) or any(each.type == "PodScheduled" for each in pod.status.conditions or ())


def _bound_s(pod: Pod, facts: Facts) -> float:
    return facts.fleet.bound_s.get(pod.metadata.uid, 0.0) if isinstance(facts.fleet, Fleet) else 0.0


def _has_failed(pod: Pod) -> bool:
    """Whether kube-scheduler met an error, such as an extender that does not answer; a pod without room is none."""
    return any(each.type == "PodScheduled" and each.reason == "SchedulerError" for each in pod.status.conditions or ())


def _is_held(pod: Pod) -> bool:
    return any(gate.name == HOLD_GATE for gate in pod.spec.scheduling_gates or ())


def _declares(pod: Pod) -> bool:
    claim = gang_of(pod)
    return claim is not None and not (isinstance(claim, GangClaim) and claim.derived)


def _requested(pod: Pod) -> set[str]:
    every = [*(pod.spec.containers or ()), *(pod.spec.init_containers or ())]
    return {name for each in every if each.resources for name in each.resources.requests or {}}


def _age_s(pod: Pod, now_s: float) -> float:
    created = pod.metadata.creation_timestamp or datetime.fromtimestamp(now_s, UTC)
    return now_s - created.timestamp()


def _named(pods: list[Pod]) -> str:
    names = [f"{pod.metadata.namespace}/{pod.metadata.name}" for pod in pods]
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"pod{'s' * (len(names) > 1)} {', '.join(names[:_SHOWN])}{more}"


PODS: Final[tuple[Check[Facts], ...]] = (
    Check("pods are looked at", pods_are_looked_at),
    Check("gangs name our scheduler", gangs_name_us),
    Check("held pods are ours", held_pods_are_ours),
)
EXTENDERS: Final[tuple[Check[Extender], ...]] = (
    Check("extender is ready", is_ready),
    Check("extender answers at the entries' URL", is_reachable),
)
CALLED: Final[tuple[Check[Facts], ...]] = (Check("extender is called", is_called),)
