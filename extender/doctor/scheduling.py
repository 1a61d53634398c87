"""Does a kube-scheduler, beside its extender entries, schedule as the extender expects?"""

import re
from collections.abc import Iterator
from typing import Final, TypeAlias

from extender.doctor.entries import Wiring
from extender.doctor.facts import Facts, Process, Scheduler
from extender.doctor.finding import Check, Level, Problem
from extender.doctor.permissions import LEASE, NAMESPACE
from extender.doctor.scheduler_config import Profile

OLDEST: Final = (1, 31, 0)
"""It serves the probes of manifests/base since then; and before 1.28.5 pods that an extender turned away are stuck or
tried without end."""
CALM_SINCE: Final = (1, 32, 0)
"""Since then queueing hints wake a pod that was turned away as they do in the version that we are tested with."""
TRIES: Final = 5
"""How often a member that missed its turn comes again while its room is held, at least."""

_MODELLED: Final = (
    "NodeUnschedulable",
    "TaintToleration",
    "NodeAffinity",
    "NodePorts",
    "NodeResourcesFit",
    "VolumeBinding",
    "VolumeZone",
    "PodTopologySpread",
    "InterPodAffinity",
)
_Reliance: TypeAlias = tuple[Level, str, tuple[str, ...]]
"""How bad it is without a plugin, what happens then, and at which extension points it may be disabled."""

_LEAVES_NODES_OUT: Final[_Reliance] = (
    "warning",
    "the planner honours it all the same, and leaves nodes out",
    ("preFilter", "filter"),
)
_RELIED_ON: Final[dict[str, _Reliance]] = {
    "SchedulingGates": ("error", "members that hold mode keeps back are scheduled all the same", ("preEnqueue",)),
    "DefaultPreemption": ("warning", "no gang ever preempts, whatever its priority", ("postFilter",)),
    "PrioritySort": ("warning", "the order in which pods come is not by priority and age", ("queueSort",)),
    **dict.fromkeys(_MODELLED, _LEAVES_NODES_OUT),
}
_SYSTEM_LEASE: Final = "kube-system/kube-scheduler"
_RIVALS: Final = ("Coscheduling", "Gang", "YuniKornPlugin")
"""Plugins that hold gangs together themselves, and would wait for ours as ours waits for theirs."""

NATIVE_GATES: Final = ("GangScheduling", "WorkloadAwarePreemption", "TopologyAwareWorkloadScheduling")
"""kube-scheduler's own gang scheduling, alpha: filter is called in what-if rounds, without end where one fails."""


def names_are_served(wiring: Wiring) -> Iterator[Problem]:
    """Have a profile for each of our schedulerNames."""
    for name in wiring.settings.scheduler_names:
        if wiring.ours and name not in wiring.config.names:
            what = f"schedulerNames of the extender has {name}, the profiles are {', '.join(wiring.config.names)}"
            yield Problem(what, f"profiles:\n- schedulerName: {name}", "profiles", "warning")


def the_sample_is_known(wiring: Wiring) -> Iterator[Problem]:
    """Look at as many nodes as the extender believes, and at all of them where others schedule, too."""
    believed = wiring.settings.percentage_of_nodes_to_score
    for profile in _our_profiles(wiring):
        percentage = wiring.config.percentage_for(profile)
        where = f"profile {profile.scheduler_name}"
        if wiring.shared and percentage != 100:
            what = (
                f"percentageOfNodesToScore is {percentage or 'not set'}: with other profiles beside it, it must be 100"
            )
            yield Problem(what, "percentageOfNodesToScore: 100, in the profile, and in the extender's settings", where)
        elif percentage != believed:
            what = (
                f"percentageOfNodesToScore is {percentage or 'not set'}, the extender's setting says {believed}: it"
                " takes nodes that were not looked at for nodes that were refused, or the other way round"
            )
            mend = f"percentageOfNodesToScore: {believed}, here, or {percentage} in the extender's settings"
            yield Problem(what, mend, where)


def plugins_are_there(wiring: Wiring) -> Iterator[Problem]:
    """Have the plugins on that the planner relies on."""
    for profile in _our_profiles(wiring):
        where = f"profile {profile.scheduler_name}"
        for name, (level, consequence, points) in _RELIED_ON.items():
            if _is_disabled(profile, name, points):
                yield Problem(f"plugin {name} is disabled: {consequence}", f"enable {name} again", where, level)
        for name in sorted(_enabled(profile).intersection(_RIVALS)):
            what = f"plugin {name} holds gangs together as well: the two wait for each other"
            yield Problem(what, f"disable {name} in this profile", where)


def _is_disabled(profile: Profile, name: str, points: tuple[str, ...]) -> bool:
    plugins = profile.plugins or {}
    sets = [plugins[point] for point in ("multiPoint", *points) if point in plugins]
    disabled = {plugin.name for each in sets for plugin in each.disabled or ()}
    enabled = {plugin.name for each in sets for plugin in each.enabled or ()}
    return not disabled.isdisjoint({name, "*"}) and name not in enabled


def _enabled(profile: Profile) -> set[str]:
    return {plugin.name for each in (profile.plugins or {}).values() for plugin in each.enabled or ()}


def members_come_again_in_time(wiring: Wiring) -> Iterator[Problem]:
    """Keep the back-off well below the time for which room is held."""
    longest_s, binding_s = wiring.config.pod_max_backoff_seconds, wiring.settings.gangs.binding_seconds
    if wiring.ours and longest_s * TRIES > binding_s:
        what = f"a member that missed its turn comes after {longest_s} s, and its room is held {binding_s:g} s"
        mend = f"podMaxBackoffSeconds: {max(1, int(binding_s // TRIES))}"
        yield Problem(what, mend, "podMaxBackoffSeconds", "warning")


def a_refused_gang_stops_nobody(wiring: Wiring) -> Iterator[Problem]:
    """May write as many statuses at once as a large gang has members."""
    client = wiring.config.client_connection
    if wiring.ours and client.burst < 500:
        what = f"qps {client.qps:g} and burst {client.burst}: a gang of 1,000 that is turned away stops all scheduling"
        what += f" for {max(0.0, 1000 - client.burst) / max(client.qps, 1.0):.0f} s"
        yield Problem(what, "clientConnection: {qps: 500, burst: 1000}", "clientConnection", "warning")


def _our_profiles(wiring: Wiring) -> Iterator[Profile]:
    if wiring.ours:
        names = wiring.settings.scheduler_names
        yield from (each for each in wiring.config.profiles or () if each.scheduler_name in names)


def leases_are_their_own(facts: Facts) -> Iterator[Problem]:
    """Have kube-schedulers of different configurations elect their leaders apart."""
    schedulers = facts.schedulers if isinstance(facts.schedulers, tuple) else ()
    electing = [each for each in schedulers if each.config.leader_election.leader_elect]
    by_lease: dict[str, Scheduler] = {}
    for each in electing:
        lease = each.config.leader_election.lease
        before = by_lease.setdefault(lease, each)
        if before.config != each.config and not (before.in_use or each.in_use):
            what = f"lease {lease} is also that of {before.source}: only one of the two kube-schedulers works"
            yield Problem(
                what, "leaderElection: {resourceName: gang-scheduler, resourceNamespace: gang-extender}", each.source
            )
        elif lease == _SYSTEM_LEASE and _is_ours_alone(each, facts):
            what = "the lease is that of the cluster's own kube-scheduler: only one of the two works"
            yield Problem(
                what, "leaderElection: {resourceName: gang-scheduler, resourceNamespace: gang-extender}", each.source
            )


def its_extender_follows_it(facts: Facts) -> Iterator[Problem]:
    """Have the lease that the extender beside it follows."""
    election = facts.settings.leader_election
    followed = f"{election.resource_namespace}/{election.resource_name}"
    schedulers = facts.schedulers if isinstance(facts.schedulers, tuple) else ()
    for each in schedulers:
        own = each.config.leader_election
        if election.mode != "sidecar" or not Wiring(each.config, facts.settings).ours:
            continue
        if not own.leader_elect:
            what = f"it elects no leader, and its extender decides only while somebody has the lease {followed}"
            yield Problem(what, "leaderElection: {mode: none} in the extender's settings", each.source)
        elif own.lease != followed and not (own.lease == _SYSTEM_LEASE and _is_ours_alone(each, facts)):  # told above
            what = f"its lease is {own.lease}, and its extender follows {followed}: it answers every call with an error"
            mend = f"leaderElection: {{resourceName: {own.resource_name}, resourceNamespace: {own.resource_namespace}}}"
            yield Problem(what, f"{mend} in the extender's settings", each.source)


def none_is_newer_than_the_api_server(facts: Facts) -> Iterator[Problem]:
    """Be no newer than the API server, as Kubernetes wants it."""
    processes = facts.processes if isinstance(facts.processes, tuple) else ()
    for process in processes:
        if process.version and isinstance(facts.version, tuple) and process.version[:2] > facts.version[:2]:
            served = ".".join(map(str, facts.version[:2]))
            what = f"kube-scheduler {_said(process)} is newer than the API server {served}: it may wait for kinds that "
            what += "are not served yet, and then it never gets ready"
            yield Problem(what, f"the image registry.k8s.io/kube-scheduler of version {served}", process.name)


def the_lease_may_be_written(facts: Facts) -> Iterator[Problem]:
    """Have a kube-scheduler of our own elected by a lease that its role is for."""
    schedulers = facts.schedulers if isinstance(facts.schedulers, tuple) else ()
    for each in schedulers:
        lease, given = each.config.leader_election.lease, f"{NAMESPACE}/{LEASE}"
        taken = {given, _SYSTEM_LEASE}
        if _is_ours_alone(each, facts) and each.config.leader_election.leader_elect and lease not in taken:
            what = f"its lease is {lease}, and the role of manifests/base is for {given} alone"
            mend = (
                f"leaderElection: {{resourceName: {LEASE}, resourceNamespace: {NAMESPACE}}}, or a Role for that lease"
            )
            yield Problem(what, mend, each.source, "warning")


def names_are_resolved(facts: Facts) -> Iterator[Problem]:
    """Not call a Service by its name from the host's network, where no cluster DNS is asked."""
    schedulers = facts.schedulers if isinstance(facts.schedulers, tuple) else ()
    processes = facts.processes if isinstance(facts.processes, tuple) else ()
    deaf = {each.config for each in processes if not each.resolves_services}
    for each in schedulers:
        for place in Wiring(each.config, facts.settings).ours if each.source in deaf else ():
            if re.search("[a-z]", place.url.hostname or "") and place.url.hostname != "localhost":
                what = f"kube-scheduler is on the host's network, where {place.url.hostname} is not resolved"
                yield Problem(
                    what, "dnsPolicy: ClusterFirstWithHostNet, or the address itself", f"{each.source}, {place.at}"
                )


def _is_ours_alone(scheduler: Scheduler, facts: Facts) -> bool:
    return set(scheduler.config.names) <= set(facts.settings.scheduler_names)


def one_of_many_leads(facts: Facts) -> Iterator[Problem]:
    """Elect a leader where there are replicas."""
    schedulers = facts.schedulers if isinstance(facts.schedulers, tuple) else ()
    processes = facts.processes if isinstance(facts.processes, tuple) else ()
    for each in schedulers:
        replicas = sum(1 for process in processes if process.config == each.source)
        if replicas > 1 and not each.config.leader_election.leader_elect:
            what = f"{replicas} kube-schedulers run without an election: each binds the same pods"
            yield Problem(what, "leaderElection: {leaderElect: true}", each.source)


def versions_are_known(process: Process) -> Iterator[Problem]:
    """Be a kube-scheduler that treats extenders as we expect."""
    if process.version and process.version < OLDEST:
        yield Problem(f"kube-scheduler {_said(process)} is too old", "1.31 or newer; 1.36 is what it is tested with")
    elif process.version and process.version < CALM_SINCE:
        what = f"kube-scheduler {_said(process)} wakes pods that were turned away by other rules than it is tested with"
        yield Problem(what, "1.32 or newer", level="warning")


def gates_are_off(process: Process) -> Iterator[Problem]:
    """Leave gangs to us, and the back-off as it is."""
    native = [gate for gate in NATIVE_GATES if process.gates.get(gate)]
    if native:
        what = f"kube-scheduler's own gang scheduling is on ({', '.join(native)}): it calls filter in what-if rounds, "
        what += "and tries a group that was turned away again without end"
        yield Problem(what, f"--feature-gates={','.join(f'{gate}=false' for gate in native)}")
    if process.gates.get("SchedulerPopFromBackoffQ") is False:
        what = "SchedulerPopFromBackoffQ is off: a gang whose room got free waits out its back-off"
        yield Problem(what, "remove SchedulerPopFromBackoffQ=false from --feature-gates", level="warning")


def _said(process: Process) -> str:
    return ".".join(map(str, process.version or ()))


SCHEDULING: Final[tuple[Check[Wiring], ...]] = (
    Check("profiles", names_are_served),
    Check("percentageOfNodesToScore", the_sample_is_known),
    Check("plugins", plugins_are_there),
    Check("back-off", members_come_again_in_time),
    Check("clientConnection", a_refused_gang_stops_nobody),
)
ELECTIONS: Final[tuple[Check[Facts], ...]] = (
    Check("leases", leases_are_their_own),
    Check("lease of the extender", its_extender_follows_it),
    Check("right to the lease", the_lease_may_be_written),
    Check("leader election", one_of_many_leads),
    Check("names in urlPrefix", names_are_resolved),
    Check("version of the API server", none_is_newer_than_the_api_server),
)
PROCESSES: Final[tuple[Check[Process], ...]] = (
    Check("version of kube-scheduler", versions_are_known),
    Check("feature gates of kube-scheduler", gates_are_off),
)
