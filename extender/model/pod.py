"""A pod as scheduling sees it: who it is, what it needs, where it stands."""

from collections.abc import Mapping
from typing import Final, TypeAlias

from msgspec import Struct

from extender.model.claim import BadGangClaim, GangClaim
from extender.model.device import BadCardRequest, CardDialect, CardRequest, CardShare

PodUid: TypeAlias = str

Seniority: TypeAlias = tuple[bool, int, float]
"""Who comes before whom where room is short: what sorts first. Stranded gangs come first, then what has the higher
priority, then what is older."""

HOLD_GATE = "gang-extender.io/hold"
"""The scheduling gate with which pods are created in hold mode, by manifests/hold or by their own template."""


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


LabelSelector: TypeAlias = tuple[Requirement, ...] | None
"""Requirements that labels must all meet: In, NotIn, Exists or DoesNotExist. None selects nothing, () everything."""


class AffinityTerm(Struct, frozen=True, gc=False):
    """One required pod affinity or anti-affinity term.

    It is about pods that `selector` selects, in the namespaces that are named or whose labels `namespace_selector`
    selects; the pod's own namespace is among the named ones where the term says nothing of namespaces.
    """

    topology_key: str
    selector: LabelSelector = None
    namespaces: tuple[str, ...] = ()
    namespace_selector: LabelSelector = None


class SpreadConstraint(Struct, frozen=True, gc=False):
    """One of `topologySpreadConstraints` that is hard (DoNotSchedule).

    The last two say which nodes count as places to spread over: those only that the pod's node affinity allows
    (nodeAffinityPolicy Honor), those only whose taints it tolerates (nodeTaintsPolicy Honor).
    """

    max_skew: int
    topology_key: str
    selector: LabelSelector = None
    min_domains: int = 1
    honors_affinity: bool = True
    honors_taints: bool = False


class Relations(Struct, frozen=True, gc=False):
    """What a pod asks of the pods around it; each of the three may be empty, not all of them."""

    affinity: tuple[AffinityTerm, ...] = ()
    anti_affinity: tuple[AffinityTerm, ...] = ()
    spread: tuple[SpreadConstraint, ...] = ()

    @property
    def selectors(self) -> set[LabelSelector]:
        """What selects the pods that it is about."""
        return {each.selector for each in (*self.affinity, *self.anti_affinity)} | {c.selector for c in self.spread}

    @property
    def topology_keys(self) -> set[str]:
        """The labels of nodes that it is about."""
        terms = (*self.affinity, *self.anti_affinity)
        return {term.topology_key for term in terms} | {each.topology_key for each in self.spread}


class ClaimUse(Struct, frozen=True, gc=False):
    """A claim that a pod's volumes name; one that is `ephemeral` is made for this pod and goes with it."""

    name: str
    ephemeral: bool = False


class VolumeTerms(Struct, frozen=True, gc=False):
    """What a pod's volumes ask of its node.

    One of the terms of each volume must match, and each of the zone labels must have one of the values. `unmodelled`
    names what else kube-scheduler looks at and we do not.
    """

    required_terms: tuple[tuple[NodeSelectorTerm, ...], ...] = ()
    zones: tuple[tuple[str, frozenset[str]], ...] = ()
    unmodelled: tuple[str, ...] = ()


class PodShape(Struct, frozen=True, gc=False):
    """What a pod asks for. Pods of equal shape are interchangeable to the planner, but for who selects them by label.

    `requests` are effective (init containers, sidecars, overhead and pod-level resources included), sorted by
    name, and hold one of `pods`. `required_terms` is None without required node affinity; otherwise one of the
    terms must match. `volumes` is None where they ask nothing, `cards` where no GPU is asked for. `unmodelled`
    names what else kube-scheduler looks at and we do not.
    """

    requests: tuple[tuple[str, int], ...] = ()
    node_selector: tuple[tuple[str, str], ...] = ()
    required_terms: tuple[NodeSelectorTerm, ...] | None = None
    tolerations: tuple[Toleration, ...] = ()
    host_ports: tuple[HostPort, ...] = ()
    relations: Relations | None = None
    volumes: VolumeTerms | None = None
    cards: CardRequest | BadCardRequest | None = None
    unmodelled: tuple[str, ...] = ()

    @property
    def is_provisional(self) -> bool:
        """Whether only kube-scheduler can say where such a pod goes: a plan for it is tried, not known to hold."""
        return bool(self.unmodelled) or (self.volumes is not None and bool(self.volumes.unmodelled))

    @property
    def asks_for_devices(self) -> bool:
        """Whether such a pod asks for a GPU or another device, or a share of one."""
        return self.cards is not None or any("/" in name for name, _ in self.requests)

    @property
    def is_placed_by_us(self) -> bool:
        """Whether only we know where such a pod finds its cards; whole GPUs are counted by kube-scheduler as well."""
        return self.cards is not None and not (
            isinstance(self.cards, CardRequest) and self.cards.dialect is CardDialect.WHOLE
        )


class Tags(Struct, frozen=True, gc=False):
    """What selectors find a pod by. Not part of its shape: every replica has labels of its own."""

    namespace: str = ""
    labels: Mapping[str, str] = {}


class Occupant(Struct, frozen=True, gc=False):
    """A pod as its node and its neighbours see it, be it there or planned; `cards` were chosen for it."""

    shape: PodShape
    tags: Tags = Tags()
    terminating: bool = False
    cards: tuple[CardShare, ...] = ()


NO_NUMBER: Final = 10**9
"""Above the number of any pod: who has none comes last."""


class Pod(Struct, frozen=True, gc=False):
    """One pod, bound or not.

    `created_at` is in seconds since the epoch. `priority` is the admitted number; only a pod that `preempts` may have
    others killed, which one that `is_placed_by_us` does not, since kube-scheduler kills for what it lacks itself.
    `started_at` is when its kubelet took it up, None before. A pod that `stays_with_node` is a
    DaemonSet's or static: killed, it comes back on the same node. A pod that is `finished` has `succeeded` or failed.
    `role` is its part in a training job (`ps`, `worker`, `master`, ...), empty when no label says so; `rank` is its
    number there where that outlives a replacement of the pod, empty otherwise. `number` is its rank, or else the one at
    the end of its name: operators count so, and take away the highest first. `gang` is None for a pod without gang
    metadata. `turned_away` says that kube-scheduler tried it in vain (condition PodScheduled is False): such a pod
    sleeps until something wakes it. A pod that is `held` has our scheduling gate, one that is `gated` has a gate of
    others and is not to be placed yet. `cards` are those that a bound pod was given, as far as anybody wrote it on the
    pod; with `awaits_plugin` its node's device plugin has yet to take it up. `sorted_rank` is what a bound member was
    given by us: consecutive ones are neighbours on the network.
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
    preempts: bool = True
    started_at: float | None = None
    stays_with_node: bool = False
    running: bool = False
    finished: bool = False
    succeeded: bool = False
    terminating: bool = False
    gated: bool = False
    held: bool = False
    turned_away: bool = False
    role: str = ""
    rank: str = ""
    number: int = NO_NUMBER
    gang: GangClaim | BadGangClaim | None = None
    labels: Mapping[str, str] = {}
    claims: tuple[ClaimUse, ...] = ()
    cards: tuple[CardShare, ...] = ()
    awaits_plugin: bool = False
    sorted_rank: int | None = None

    @property
    def tags(self) -> Tags:
        """What selectors find it by."""
        return Tags(self.namespace, self.labels)

    @property
    def occupant(self) -> Occupant:
        """What it is to its node and neighbours."""
        return Occupant(self.shape, self.tags, self.terminating, self.cards)

    @property
    def seniority(self) -> Seniority:
        """Where it stands among those that want room."""
        return (True, -self.priority, self.created_at)

    @property
    def occupies_node(self) -> bool:
        """Whether it uses room: a terminating pod does until it is gone, a finished one does not."""
        return bool(self.node_name) and not self.finished

    @property
    def seat(self) -> tuple[str, str]:
        """Which place in its gang it takes: the same as the pod's that it replaces."""
        return (self.role, self.rank) if self.rank else ("", self.uid)
