"""What does a KubeSchedulerConfiguration say? In a file, in a ConfigMap, or as kube-scheduler tells it (/configz).

Mirrors k8s.io/kube-scheduler/config/v1. Unknown fields are skipped: kube-scheduler itself refuses them.
"""

import re
from collections.abc import Iterator
from typing import Any, Final

import msgspec
import yaml
from msgspec import Struct, field

KIND: Final = "KubeSchedulerConfiguration"
DEFAULT_TIMEOUT_S: Final = 5.0
"""Of an extender entry that says none."""

_DURATION = re.compile(r"(?:\d+(?:\.\d*)?(?:ms|s|m|h))+")
_PART = re.compile(r"(\d+(?:\.\d*)?)(ms|s|m|h)")
_UNIT_S = {"ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}


class BadSchedulerConfigError(Exception):
    """The text is no KubeSchedulerConfiguration; says why."""


class _Wire(Struct, frozen=True, rename="camel"):
    pass


class ManagedResource(_Wire, frozen=True):
    """One of an entry's `managedResources`."""

    name: str = ""
    ignored_by_scheduler: bool = False


class TlsConfig(_Wire, frozen=True):
    """An entry's `tlsConfig`, as far as it says whom to trust and who calls."""

    insecure: bool = False
    ca_file: str = ""
    ca_data: str | None = None
    cert_file: str = ""
    cert_data: str | None = None


class Entry(_Wire, frozen=True):
    """One of `extenders`."""

    url_prefix: str = ""
    filter_verb: str = ""
    preempt_verb: str = ""
    prioritize_verb: str = ""
    bind_verb: str = ""
    weight: int = 0
    enable_https: bool = field(name="enableHTTPS", default=False)
    tls_config: TlsConfig | None = None
    http_timeout: str | None = None
    node_cache_capable: bool = False
    managed_resources: tuple[ManagedResource, ...] | None = None
    ignorable: bool = False

    @property
    def verbs(self) -> dict[str, str]:
        """The verbs that are called, by field."""
        every = {
            "filterVerb": self.filter_verb,
            "preemptVerb": self.preempt_verb,
            "prioritizeVerb": self.prioritize_verb,
            "bindVerb": self.bind_verb,
        }
        return {name: verb for name, verb in every.items() if verb}

    @property
    def managed(self) -> tuple[ManagedResource, ...]:
        """The resources without which a pod does not come here; empty for every pod."""
        return self.managed_resources or ()

    @property
    def timeout_s(self) -> float:
        """How long kube-scheduler waits for any verb of the entry."""
        return _seconds(self.http_timeout) or DEFAULT_TIMEOUT_S


class LeaderElection(_Wire, frozen=True):
    """`leaderElection`."""

    leader_elect: bool = True
    resource_name: str = "kube-scheduler"
    resource_namespace: str = "kube-system"

    @property
    def lease(self) -> str:
        """Return the name of the lease."""
        return f"{self.resource_namespace}/{self.resource_name}"


class ClientConnection(_Wire, frozen=True):
    """`clientConnection`; kube-scheduler's own defaults."""

    qps: float = 50.0
    burst: int = 100


class Plugin(_Wire, frozen=True):
    """The name of a plugin, or "*"."""

    name: str = ""


class PluginSet(_Wire, frozen=True):
    """What a profile adds to an extension point and takes from it."""

    enabled: tuple[Plugin, ...] | None = None
    disabled: tuple[Plugin, ...] | None = None


class PluginConfig(_Wire, frozen=True):
    """One of `pluginConfig`."""

    name: str = ""
    args: dict[str, Any] | None = None


class Profile(_Wire, frozen=True):
    """One of `profiles`."""

    scheduler_name: str = "default-scheduler"
    percentage_of_nodes_to_score: int | None = None
    plugins: dict[str, PluginSet] | None = None
    plugin_config: tuple[PluginConfig, ...] | None = None


class SchedulerConfig(_Wire, frozen=True):
    """The whole file."""

    leader_election: LeaderElection = LeaderElection()
    client_connection: ClientConnection = ClientConnection()
    percentage_of_nodes_to_score: int | None = None
    pod_initial_backoff_seconds: int = 1
    pod_max_backoff_seconds: int = 10
    profiles: tuple[Profile, ...] | None = None
    extenders: tuple[Entry, ...] | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The schedulerNames that it serves."""
        return tuple(profile.scheduler_name for profile in self.profiles or (Profile(),))

    def percentage_for(self, profile: Profile) -> int:
        """Return the percentageOfNodesToScore that holds for the profile; 0 for kube-scheduler's own choice."""
        said = (profile.percentage_of_nodes_to_score, self.percentage_of_nodes_to_score)
        return next((each for each in said if each is not None), 0)


def read_scheduler_config(text: str | bytes) -> SchedulerConfig:
    """Return the one KubeSchedulerConfiguration in the text; raises BadSchedulerConfigError."""
    try:
        found = list(_configurations(yaml.load_all(text, Loader=yaml.CSafeLoader)))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise BadSchedulerConfigError(f"not YAML: {error}") from error
    if len(found) != 1:
        raise BadSchedulerConfigError(f"{len(found)} objects of kind {KIND} in it, where one is expected")
    try:
        config = msgspec.convert(found[0], SchedulerConfig)
        for entry in config.extenders or ():
            _ = entry.timeout_s
    except (msgspec.ValidationError, ValueError) as error:
        raise BadSchedulerConfigError(f"no {KIND} that kube-scheduler takes: {error}") from error
    return config


def _configurations(documents: Iterator[Any]) -> Iterator[Any]:
    for document in documents:
        if isinstance(document, dict):
            inner = document.get("componentconfig", document)
            if isinstance(inner, dict) and inner.get("kind", "") == KIND:
                yield {key: value for key, value in inner.items() if value is not None}


def _seconds(duration: str | None) -> float:
    if not duration or duration == "0":
        return 0.0
    if not _DURATION.fullmatch(duration):
        raise ValueError(f"httpTimeout: {duration!r} is no duration, such as 2s")
    return sum(float(number) * _UNIT_S[unit] for number, unit in _PART.findall(duration))
