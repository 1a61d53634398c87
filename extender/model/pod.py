"""A pod as scheduling sees it: who it is, what it needs, where it stands."""

from typing import TypeAlias

from msgspec import Struct

from extender.model.claim import BadGangClaim, GangClaim

PodUid: TypeAlias = str


class Toleration(Struct, frozen=True, gc=False):
    """One of `spec.tolerations`; empty strings where the field is absent."""

    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""


class HostPort(Struct, frozen=True, gc=False):
    """A port that a container takes on its node; `ip` is `0.0.0.0` for every address."""

    port: int
    protocol: str = "TCP"
    ip: str = "0.0.0.0"  # noqa: S104 - Kubernetes' own notation for "any address of the node"


class Requirement(Struct, frozen=True, gc=False):
    """One `matchExpressions` or `matchFields` entry: In, NotIn, Exists, DoesNotExist, Gt or Lt."""

    key: str
    operator: str
    values: tuple[str, ...] = ()


class NodeSelectorTerm(Struct, frozen=True, gc=False):
    """Requirements that must all hold; `fields` knows only `metadata.name`."""

    expressions: tuple[Requirement, ...] = ()
    fields: tuple[Requirement, ...] = ()


class PodShape(Struct, frozen=True, gc=False):
    """What decides on which nodes a pod fits. Pods of equal shape are interchangeable to the planner.

    `requests` are effective (init containers, sidecars, overhead and pod-level resources included), sorted by
    name, and hold one of `pods`. `required_terms` is None without required node affinity; otherwise one of the
    terms must match.
    """

    requests: tuple[tuple[str, int], ...] = ()
    node_selector: tuple[tuple[str, str], ...] = ()
    required_terms: tuple[NodeSelectorTerm, ...] | None = None
    tolerations: tuple[Toleration, ...] = ()
    host_ports: tuple[HostPort, ...] = ()


class Pod(Struct, frozen=True, gc=False):
    """One pod, bound or not.

    `created_at` is in seconds since the epoch. `priority` is the admitted number. A pod that is `finished` has
    `succeeded` or failed. `role` is its part in a training job (`ps`, `worker`, `master`, ...), empty when no label
    says so; `rank` is its number there where that outlives a replacement of the pod, empty otherwise. `gang` is None
    for a pod without gang metadata. `turned_away` says that kube-scheduler tried it in vain (condition PodScheduled is
    False): such a pod sleeps until something wakes it.
    """

    uid: PodUid
    namespace: str
    name: str
    shape: PodShape
    created_at: float = 0.0
    node_name: str = ""
    nominated_node: str = ""
    scheduler_name: str = "default-scheduler"
    priority: int = 0
    running: bool = False
    finished: bool = False
    succeeded: bool = False
    terminating: bool = False
    gated: bool = False
    turned_away: bool = False
    role: str = ""
    rank: str = ""
    gang: GangClaim | BadGangClaim | None = None

    @property
    def occupies_node(self) -> bool:
        """Whether it uses room: a terminating pod does until it is gone, a finished one does not."""
        return bool(self.node_name) and not self.finished

    @property
    def seat(self) -> tuple[str, str]:
        """Which place in its gang it takes: the same as the pod's that it replaces."""
        return (self.role, self.rank) if self.rank else ("", self.uid)
