"""What is known of a cluster and of the extender in it, gathered by `cli`? What could not be seen is `Unseen`."""

from collections.abc import Mapping
from typing import TypeAlias

from msgspec import Struct

from extender.config import GangExtenderConfiguration
from extender.doctor.finding import Problem, Unseen
from extender.doctor.permissions import Right, Who
from extender.doctor.scheduler_config import SchedulerConfig
from extender.wire.core_v1 import Pod

Version: TypeAlias = tuple[int, int, int]


class Scheduler(Struct, frozen=True):
    """The configuration of one kube-scheduler; `source` is where it was read.

    `in_use` says how surely one runs with it: "" where it does, else why that is not known.
    """

    source: str
    config: SchedulerConfig
    in_use: str = ""


class Process(Struct, frozen=True):
    """A kube-scheduler that runs, by its pod or by what it tells; `config` is the source of its configuration."""

    name: str
    version: Version | None = None
    gates: Mapping[str, bool] = {}
    resolves_services: bool = True
    """Not so on the host's network, unless its dnsPolicy says otherwise."""
    config: str = ""


class Extender(Struct, frozen=True):
    """One running extender, as its probes and metrics tell; `calls` counts by verb."""

    where: str
    ready: str | Unseen
    """Empty where it is ready, else which watch is not."""
    calls: Mapping[str, int] | Unseen
    reachable: Mapping[str, str] | Unseen
    """By URL of an entry: empty where the extender answers there, else what happened."""
    started_s: float = 0.0


class PolicyParts(Struct, frozen=True):
    """The parts of one admission policy that are installed; `text` holds its match conditions."""

    policy: bool
    bound: bool
    text: str = ""


class Fleet(Struct, frozen=True):
    """The pods that have not ended: those that wait, and those of our schedulers.

    `bound_s` says by UID since when a pod is bound,
    `told` are the UIDs of pods with NVIDIA_VISIBLE_DEVICES in a container, `hami_nodes` the nodes with HAMi's plugin.
    """

    pods: tuple[Pod, ...] = ()
    told: frozenset[str] = frozenset()
    bound_s: Mapping[str, float] = {}
    hami_nodes: tuple[str, ...] = ()


class Facts(Struct, frozen=True):
    """Everything; `identities` are the two ServiceAccounts as the API server calls them."""

    settings: GangExtenderConfiguration
    settings_source: str
    identities: Mapping[Who, str]
    now_s: float
    schedulers: tuple[Scheduler, ...] | Unseen
    settings_problem: Problem | None = None
    unread: tuple[tuple[str, str], ...] = ()
    """(Source, why) of configurations that could not be read."""
    processes: tuple[Process, ...] | Unseen = ()
    version: Version | Unseen = Unseen("not asked")
    rights: Mapping[Right, bool | Unseen] = {}
    served: Mapping[str, tuple[str, ...]] | Unseen = {}
    """By `resource.group`: the versions in which the API server serves it."""
    policies: Mapping[str, PolicyParts | Unseen] = {}
    fleet: Fleet | Unseen = Fleet()
    extenders: tuple[Extender, ...] | Unseen = ()
