"""The configuration file: `kind: GangExtenderConfiguration`.

Strict: an unknown field or a value out of range stops the start, with the field's path. Every default stands here with
its reason, and nowhere else.
"""

from ipaddress import IPv4Network, IPv6Network, ip_address
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import yaml
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic.alias_generators import to_camel

from extender.model.device import CardPolicy
from extender.model.resources import MEMORY
from extender.model.topology import Level
from extender.wire.quantity import parse_quantity, whole_amount


def _bytes_of(text: str) -> str:
    parse_quantity(text)
    return text


Quantity = Annotated[str, AfterValidator(_bytes_of)]
"""As Kubernetes writes amounts: 80Gi."""


Name = Annotated[str, Field(pattern=r"^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$")]
"""As Kubernetes takes it for leases and namespaces."""


class ConfigError(Exception):
    """The configuration cannot be used; the text names the file, each field's path and what is wrong there."""


class _Section(BaseModel):
    model_config = ConfigDict(
        alias_generator=to_camel, extra="forbid", frozen=True, strict=True, validate_by_name=False
    )


_LOOPBACK = (IPv4Network("127.0.0.0/8"), IPv6Network("::1/128"))


class TlsConfig(_Section):
    """The files of mutual TLS on the verbs, in PEM. They are read again when they change."""

    cert_file: Annotated[str, Field(min_length=1)]
    """The certificate that the verbs show, with its intermediates behind it."""

    key_file: Annotated[str, Field(min_length=1)]
    """Its key, without a passphrase."""

    client_ca_file: Annotated[str, Field(min_length=1)]
    """The authorities whose certificates let a client in; several while one takes the place of another."""

    client_names: Annotated[list[Annotated[str, Field(min_length=1)]], Field(min_length=1)] = ["system:kube-scheduler"]
    """Who of them: a certificate's common name, or a DNS name or URI among its alternative names. Never everybody of
    the authority, since many will name the cluster's own, which vouches for each kubelet and user as well. The default
    is what Kubernetes calls a kube-scheduler, in the certificate that kubeadm makes for it, too."""


class ServerConfig(_Section):
    """Where kube-scheduler finds the verbs."""

    address: str = "127.0.0.1"
    """The extender runs beside its kube-scheduler, in the same pod; nobody else needs to reach it. Without `tls` it
    must be on the loopback interface: whoever reaches the verbs binds pods, and a plain connection does not say who.
    """

    tls: TlsConfig | None = None
    """Where it stands, the verbs are served with TLS to clients with a certificate, and with nothing else."""

    port: Annotated[int, Field(ge=1, le=65535)] = 8888
    """The port of the verbs."""

    probe_address: str = "0.0.0.0"  # noqa: S104 - kubelet and Prometheus come from outside the pod; they only read
    """The address of /livez, /readyz and /metrics; `::` in a cluster of IPv6 alone."""

    probe_port: Annotated[int, Field(ge=1, le=65535)] = 8889
    """A port of its own, so that the verbs need not listen where others can reach them."""

    max_body_mib: Annotated[int, Field(ge=1, le=1024)] = 16
    """A request on 5,000 nodes with the longest legal names is 1.3 MiB; more than ten times that is no scheduler."""

    @model_validator(mode="after")
    def _plain_on_loopback_only(self) -> Self:
        if self.tls is None and not _is_loopback(self.address):
            raise ValueError(
                f'address "{self.address}" is not on the loopback interface, where alone the verbs are served without '
                "tls. Set tls (certFile, keyFile, clientCaFile), or take 127.0.0.1 or ::1"
            )
        return self


def _is_loopback(address: str) -> bool:
    """Tell it by the address itself: what a name stands for is decided elsewhere."""
    try:
        ip = ip_address(address)
    except ValueError:
        return False
    return any(ip in network for network in _LOOPBACK)


class LeaderElectionConfig(_Section):
    """Who decides, where more than one runs."""

    mode: Literal["sidecar", "service", "none"] = "sidecar"
    """`sidecar`: beside each kube-scheduler, and active where that one leads: no call crosses the network, and there is
    one election instead of two that could disagree. `service`: one for several kube-schedulers, by a lease of our own.
    `none`: the only one, for a kube-scheduler without election."""

    resource_name: Name = "gang-scheduler"
    """Of the lease. In mode sidecar it must be that of the kube-scheduler; the default is what
    scheduler-config/dedicated.yaml has. In mode service no kube-scheduler may have the same."""

    resource_namespace: Name = "gang-extender"
    """The same."""

    lease_duration_seconds: Annotated[int, Field(ge=3, le=300)] = 15
    """In mode service: after so long without a renewal another one takes over. kube-scheduler's own default; shorter
    makes a slow API server cost the lead."""

    @model_validator(mode="after")
    def _own_lease_is_named(self) -> Self:
        """Not the default, which is a kube-scheduler's: that would keep it from us for ever, or we from it."""
        if self.mode == "service" and "resource_name" not in self.model_fields_set:
            raise ValueError(
                "mode service needs a resourceName: a lease of its own, which no kube-scheduler has, and which it may"
                " write (manifests/service: gang-extender)"
            )
        return self


class GangConfig(_Section):
    """What makes a gang, and how long room is held for it."""

    from_jobs: bool = True
    """Whether the pods of a training job without gang metadata are a gang, of as many members as the job needs. They
    name our scheduler, for which there is no other reason, and half of such a job is of no use. Not so where
    schedulerNames has a scheduler that everybody uses: switch it off there."""

    gathering_seconds: Annotated[float, Field(gt=0, le=600)] = 30.0
    """How long room waits for members that do not exist yet. Operators create a job's pods within a few seconds; longer
    only keeps others from the room."""

    binding_seconds: Annotated[float, Field(gt=0, le=600)] = 60.0
    """How long room waits for members that exist to come to bind. kube-scheduler's longest back-off is 10 s, so that a
    member which just missed its turn comes at least five times. Keep it 20 s below the bind entry's httpTimeout."""

    patience_seconds: Annotated[float, Field(ge=0, le=86_400)] = 30.0
    """How long a gang that fits the cluster, but not now, waits before room is kept for it as other pods end. Below it,
    what gets free is used at once by whoever fits; above it, a gang that needs many devices starts although smaller
    pods keep coming. Longer than any start of a job takes; raise it where idle devices cost more than late gangs."""

    @model_validator(mode="after")
    def _gather_before_binding_ends(self) -> Self:
        """Members that came early are held at bind meanwhile, which binding_seconds limits."""
        if self.gathering_seconds > self.binding_seconds:
            raise ValueError("gatheringSeconds must not be above bindingSeconds: members that came early wait at bind")
        return self


class GpuConfig(_Section):
    """What nodes do not say of their GPUs, and how shares of them are chosen."""

    whole_resources: list[str] = ["nvidia.com/gpu", "amd.com/gpu"]
    """For these kubelets hand out whole GPUs. Where a pod has one that nobody chose, no share of any GPU of its node is
    given away. The two most common ones; MIG devices and time slices are known without being named."""

    memory_of_models: dict[str, Quantity] = {}
    """How much memory a GPU has, by the node's label nvidia.com/gpu.product, for nodes without nvidia.com/gpu.memory.
    Empty, since GPU feature discovery sets both; without either, GPUs are shared by their cores alone."""

    policy: Literal["binpack", "spread"] = "binpack"
    """Whether a share goes to the fullest GPU that takes it or to the emptiest. `binpack` keeps whole GPUs free for
    gangs; `spread` lets pods that share nothing run faster. A pod may say otherwise (hami.io/gpu-scheduler-policy)."""

    @property
    def policy_of_cards(self) -> CardPolicy:
        """The same, as nodes are read by it."""
        memory = {model: whole_amount(MEMORY, parse_quantity(text)) for model, text in self.memory_of_models.items()}
        return CardPolicy(frozenset(self.whole_resources), memory, self.policy == "spread")


LabelKey = Annotated[
    str, Field(pattern=r"^([a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$")
]
LevelWord = Annotated[str, Field(pattern=r"^[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?$")]


class LevelConfig(_Section):
    """A level of the network, and the labels by which nodes say in which of its domains they are."""

    name: LevelWord
    labels: Annotated[list[LabelKey], Field(min_length=1)]
    """The first that a node has counts. A node that has none is in no domain of this level."""


def _level(name: str, *labels: str) -> LevelConfig:
    return LevelConfig.model_validate({"name": name, "labels": list(labels)})


class TopologyConfig(_Section):
    """What is near what."""

    levels: list[LevelConfig] = [
        _level(
            "accelerator",
            "nvidia.com/gpu.clique",
            "accelerator.topograph.run/domain",
            "network.topology.nvidia.com/accelerator",
            "topology.k8s.aws/ultraserver-id",
        ),
        _level(
            "block",
            "fabric.topograph.run/tier-0",
            "network.topology.nvidia.com/leaf",
            "network.topology.nvidia.com/block",
            "cloud.google.com/gce-topology-subblock",
            "topology.k8s.aws/network-node-layer-3",
            "oci.oraclecloud.com/rdma.local_block_id",
            "alibabacloud.com/asw-id",
        ),
        _level(
            "spine",
            "fabric.topograph.run/tier-1",
            "network.topology.nvidia.com/spine",
            "cloud.google.com/gce-topology-block",
            "topology.k8s.aws/network-node-layer-2",
            "oci.oraclecloud.com/rdma.network_block_id",
            "alibabacloud.com/point-of-delivery",
        ),
        _level(
            "datacenter",
            "fabric.topograph.run/tier-2",
            "network.topology.nvidia.com/core",
            "network.topology.nvidia.com/datacenter",
            "topology.k8s.aws/network-node-layer-1",
            "oci.oraclecloud.com/rdma.hpc_island_id",
        ),
        _level("zone", "topology.kubernetes.io/zone"),
    ]
    """From near to far: one NVLink, the switch next to the nodes, those above it. The labels are those that NVIDIA's
    operators and topograph (tiers since its 1.0; leaf and core, block and datacenter before) and the clouds set by
    themselves. The names are those of Koordinator's examples."""

    @model_validator(mode="after")
    def _named_once(self) -> Self:
        names = [level.name.lower() for level in self.levels]
        if len(set(names)) < len(names):
            raise ValueError("levels must have different names")
        return self

    @property
    def levels_of_network(self) -> tuple[Level, ...]:
        """The same, as decisions see them."""
        return tuple(Level(level.name, tuple(level.labels)) for level in self.levels)


class LogConfig(_Section):
    """What is written to standard error."""

    level: Literal["debug", "info", "warning", "error"] = "info"
    format: Literal["json", "text"] = "json"
    """`json` is for log collectors, `text` for a person's eyes."""


class GangExtenderConfiguration(_Section):
    """The whole file."""

    api_version: Literal["gang-extender.io/v1alpha1"]
    kind: Literal["GangExtenderConfiguration"]
    kubeconfig: str = ""
    """Path of a kubeconfig; empty means the pod's own ServiceAccount."""

    scheduler_names: Annotated[list[Annotated[str, Field(min_length=1)]], Field(min_length=1)] = ["gang-scheduler"]
    """Pods that name another scheduler never come here: unbound, they do not count as members of a gang."""

    percentage_of_nodes_to_score: Annotated[int, Field(ge=0, le=100)] = 1
    """As the KubeSchedulerConfiguration has it for schedulerNames; 0 where that does not say it. It tells a node that
    kube-scheduler refused from one that it did not look at. The default is what scheduler-config/dedicated.yaml has."""

    server: ServerConfig = ServerConfig()
    leader_election: LeaderElectionConfig = LeaderElectionConfig()
    gangs: GangConfig = GangConfig()
    gpus: GpuConfig = GpuConfig()
    topology: TopologyConfig = TopologyConfig()
    log: LogConfig = LogConfig()


class _Strict(yaml.SafeLoader):
    """Refuses a field that is there twice, of which the first would be gone without a word."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[str] = set()
        for key in (key for key, _ in node.value if isinstance(key, yaml.ScalarNode)):
            if key.value in seen:
                raise yaml.constructor.ConstructorError(None, None, f"{key.value} is there twice", key.start_mark)
            seen.add(key.value)
        return super().construct_mapping(node, deep)


def read_yaml(text: str) -> Any:
    """Return what the text says; raises YAMLError."""
    return yaml.load(text, Loader=_Strict)  # noqa: S506 - a SafeLoader


def load_config(path: Path) -> GangExtenderConfiguration:
    """Read and check the file; raises ConfigError."""
    try:
        content: Any = read_yaml(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: not YAML: {error}") from error
    try:
        return GangExtenderConfiguration.model_validate(content)
    except ValidationError as error:
        raise ConfigError("\n".join(f"{path}: {line}" for line in describe(error))) from error


def describe(error: ValidationError) -> list[str]:
    """Return what is wrong, field by field."""
    problems = error.errors(include_url=False)
    return [
        f"{'.'.join(map(str, each['loc'])) or 'the whole file'}: {_said(each['type'], each['msg'])}"
        for each in problems
    ]


def _said(kind: str, text: str) -> str:
    """Say it without the words of a program: nobody who writes the file knows its classes."""
    match kind:
        case "extra_forbidden":
            return f"{text} (no such field)"
        case "model_type":
            return "fields are wanted here, each as `name: value`"
        case _:
            return text.removeprefix("Value error, ")
