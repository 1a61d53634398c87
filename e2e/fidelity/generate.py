"""What random clusters and pods do we ask about?

Small enough for pods to be in each other's way, with few names and labels so that selectors meet, and every feature
that the model knows about equally often. The same seed gives the same objects.
"""

from collections.abc import Callable, Sequence
from random import Random
from typing import TypeVar

from msgspec import Struct

from e2e.client import Object
from e2e.nodes import make_node

T = TypeVar("T")

SCHEDULER = "fidelity"
NAMESPACES = {"red": {"team": "a", "env": "prod"}, "green": {"team": "a"}, "blue": {"team": "b"}}
HOSTNAME, ZONE, REGION = "kubernetes.io/hostname", "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
BETA_ZONE = "failure-domain.beta.kubernetes.io/zone"
RUNTIME_CLASS = "sandboxed"
GPU = "nvidia.com/gpu"

_TAINTS = [
    {"key": "pool", "value": "gpu", "effect": "NoSchedule"},
    {"key": "pool", "value": "cpu", "effect": "NoExecute"},
    {"key": "bare", "effect": "NoSchedule"},
    {"key": "soft", "value": "x", "effect": "PreferNoSchedule"},
]
_TOLERATIONS = [
    {"key": "pool", "operator": "Exists"},
    {"key": "pool", "operator": "Equal", "value": "gpu"},
    {"key": "pool", "operator": "Equal", "value": "cpu", "effect": "NoExecute"},
    {"key": "bare", "operator": "Exists", "effect": "NoSchedule"},
    {"key": "node.kubernetes.io/unschedulable", "operator": "Exists"},
    {"operator": "Exists", "effect": "NoSchedule"},
    {"operator": "Exists"},
]


class Case(Struct, frozen=True):
    """One cluster with the pods to judge; `terminating` and `finished` name residents by namespace and name.

    Each of the `claims` is bound to one of the `volumes`.
    """

    nodes: list[Object]
    volumes: list[Object]
    claims: list[Object]
    residents: list[Object]
    pending: list[Object]
    terminating: list[tuple[str, str]]
    finished: list[tuple[str, str]]


def generate_case(seed: int, number: int, pods: int) -> Case:
    """Return the case with this number in the sequence of a seed, with so many pods to judge."""
    draw = _Draw(Random(f"{seed}/{number}"))  # noqa: S311 - chance that can be repeated is what is wanted
    nodes = [draw.node(f"n{number}-{index}") for index in range(draw.chance.randint(3, 10))]
    volumes = [draw.volume(name, namespace) for namespace in NAMESPACES for name in draw.claim_names(f"c{number}")]
    claims = [_claim_on(volume) for volume in volumes]
    residents = [
        draw.pod(f"r{number}-{index}", node=draw.one(nodes)["metadata"]["name"])
        for index in range(draw.chance.randint(0, 2 * len(nodes)))
    ]
    terminating = residents[: len(residents) // 8]
    # Residents may share a port, which kube-scheduler would not let them: it takes the end of one for the end of all.
    finished = [pod for pod in residents[len(residents) // 8 :] if not _has_ports(pod)][: len(residents) // 10]
    pending = [draw.pod(f"p{number}-{index}") for index in range(pods)]
    return Case(nodes, volumes, claims, residents, pending, _names(terminating), _names(finished))


def _names(pods: list[Object]) -> list[tuple[str, str]]:
    return [(pod["metadata"]["namespace"], pod["metadata"]["name"]) for pod in pods]


def _claim_on(volume: Object) -> Object:
    """Return the claim that a volume is bound to, as the controller that binds them leaves it."""
    bound = {"pv.kubernetes.io/bind-completed": "yes"}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {**volume["spec"]["claimRef"], "annotations": bound},
        "spec": {
            "volumeName": volume["metadata"]["name"],
            "storageClassName": "",
            "accessModes": volume["spec"]["accessModes"],
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }


def _has_ports(pod: Object) -> bool:
    spec = pod["spec"]
    return any("ports" in each for each in (*spec["containers"], *spec.get("initContainers", ())))


class _Draw:
    """Draws objects, one after the other, from one stream of chance."""

    def __init__(self, chance: Random) -> None:
        self.chance = chance
        self.names: list[str] = []
        self.claims: list[str] = []

    def one(self, these: Sequence[T]) -> T:
        return self.chance.choice(these)

    def some(self, these: Sequence[T], most: int) -> list[T]:
        return self.chance.sample(these, self.chance.randint(0, most))

    def maybe(self, probability: float, make: Callable[[], Object]) -> Object:
        return make() if self.chance.random() < probability else {}

    def node(self, name: str) -> Object:
        self.names.append(name)
        labels = {HOSTNAME: name}
        labels |= self.maybe(0.85, lambda: {ZONE: self.one(["z1", "z2", "z3"])})
        labels |= self.maybe(0.7, lambda: {"disk": self.one(["ssd", "hdd"])})
        labels |= self.maybe(0.7, lambda: {"generation": self.one(["1", "2", "30", "new"])})
        labels |= self.maybe(0.3, lambda: {REGION: self.one(["r1", "r2"])})
        labels |= self.maybe(0.1, lambda: {BETA_ZONE: self.one(["z1", "z2"])})
        if self.chance.random() < 0.05:
            del labels[HOSTNAME]
        taints = self.some(_TAINTS, 1) if self.chance.random() < 0.7 else self.some(_TAINTS, 3)
        node = make_node(name, self.one([0, 0, 1, 4]), cpu=self.one(["2", "4", "3500m"]), memory="8Gi", taints=taints)
        node["metadata"]["labels"] = labels
        node["spec"]["unschedulable"] = self.chance.random() < 0.12
        node["status"]["allocatable"] |= {"pods": self.one(["2", "5", "20"]), "ephemeral-storage": "20Gi"}
        return node

    def claim_names(self, prefix: str) -> list[str]:
        self.claims = [f"{prefix}-{index}" for index in range(4)]
        return self.claims

    def volume(self, claim: str, namespace: str) -> Object:
        labels = self.maybe(
            0.5, lambda: {self.one([ZONE, ZONE, BETA_ZONE]): self.one(["z1", "z2", "z1__z2", "z2__z3"])}
        )
        labels |= self.maybe(0.1, lambda: {REGION: self.one(["r1", "r1__r2"])})
        spec: Object = {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteMany"],
            "nfs": {"server": "10.0.0.9", "path": "/"},
            "claimRef": {"name": claim, "namespace": namespace},
        }
        spec |= self.maybe(0.5, lambda: {"nodeAffinity": {"required": self.node_affinity()}})
        metadata = {"name": f"{claim}-{namespace}", "labels": labels}
        return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": metadata, "spec": spec}

    def pod_volumes(self) -> Object:
        return {
            "volumes": [
                {"name": claim, "persistentVolumeClaim": {"claimName": claim}} for claim in self.some(self.claims, 2)
            ]
        }

    def pod(self, name: str, node: str = "") -> Object:
        """Draw a pod: a resident of the node, or else one to judge, which asks for more."""
        labels = {"app": self.one(["db", "web", "cache"])}
        labels |= self.maybe(0.5, lambda: {"tier": self.one(["x", "y"])})
        labels |= self.maybe(0.5, lambda: {"revision": self.one(["1", "2"])})
        weight = 0.5 if node else 1.0
        spec: Object = {"schedulerName": SCHEDULER, "containers": self.containers(busy=not node)}
        spec |= self.maybe(0.25, lambda: {"initContainers": self.init_containers()})
        spec |= self.maybe(0.1, self.pod_level)
        spec |= self.maybe(0.15, lambda: {"runtimeClassName": RUNTIME_CLASS})
        spec |= self.maybe(0.45, self.pod_volumes)
        spec |= self.maybe(0.6, lambda: {"tolerations": self.some(_TOLERATIONS, 3)})
        spec |= self.maybe(0.2 * weight, lambda: {"nodeSelector": {"disk": self.one(["ssd", "hdd"])}})
        affinity = self.maybe(0.2 * weight, lambda: {"nodeAffinity": self.required(self.node_affinity())})
        affinity |= self.maybe(0.2 * weight, lambda: {"podAffinity": self.required(self.terms())})
        affinity |= self.maybe(0.35 * weight, lambda: {"podAntiAffinity": self.required(self.terms())})
        spec |= {"affinity": affinity} if affinity else {}
        spec |= self.maybe(0.35 * weight, lambda: {"topologySpreadConstraints": self.constraints()})
        spec |= {"nodeName": node} if node else {}
        metadata = {"name": name, "namespace": self.one(list(NAMESPACES)), "labels": labels}
        return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}

    def pod_level(self) -> Object:
        """Draw requests of the pod as a whole, which must not be less than its containers'."""
        requests = {"cpu": self.one(["500m", "3"]), "memory": self.one(["1Gi", "5Gi"])}
        container = {"name": "c0", "image": "train", "resources": {"requests": {"cpu": "100m"}}}
        return {"containers": [container], "initContainers": [], "resources": {"requests": requests}}

    def containers(self, *, busy: bool) -> list[Object]:
        return [
            self.container("c0", ports=[8080, 8081], busy=busy),
            *[self.container("c1", ports=[8082], busy=busy) for _ in range(self.one([0, 0, 1]))],
        ]

    def container(self, name: str, *, ports: list[int], busy: bool) -> Object:
        requests = self.maybe(0.6, lambda: {"cpu": self.one(["100m", "1", "2500m"] if busy else ["100m", "700m"])})
        requests |= self.maybe(0.4, lambda: {"memory": self.one(["100Mi", "3Gi", "0.5Gi"])})
        requests |= self.maybe(0.1, lambda: {"ephemeral-storage": self.one(["1Gi", "15Gi"])})
        resources: Object = {"requests": requests}
        if self.chance.random() < 0.15:
            gpus = {GPU: self.one(["1", "2"])}
            resources = {"requests": requests | gpus, "limits": gpus}
        container: Object = {"name": name, "image": "train", "resources": resources}
        return container | (self.maybe(0.5, lambda: {"ports": [self.port(ports)]}) if ports else {})

    def port(self, ports: list[int]) -> Object:
        port: Object = {"containerPort": 80, "hostPort": self.one(ports)}
        port |= self.maybe(0.3, lambda: {"protocol": "UDP"})
        return port | self.maybe(0.3, lambda: {"hostIP": self.one(["10.0.0.1", "10.0.0.2"])})

    def init_containers(self) -> list[Object]:
        first = self.container("i0", ports=[], busy=True)
        sidecar = self.container("i1", ports=[8083], busy=False) | {"restartPolicy": "Always"}
        return self.one([[first], [sidecar], [sidecar, first], [first, sidecar]])

    def required(self, what: object) -> Object:
        return {"requiredDuringSchedulingIgnoredDuringExecution": what}

    def node_affinity(self) -> Object:
        return {"nodeSelectorTerms": [self.node_term() for _ in range(self.one([1, 1, 2]))]}

    def node_term(self) -> Object:
        number = {"key": "generation", "operator": self.one(["Gt", "Lt"]), "values": [self.one(["1", "10"])]}
        name = {"key": "metadata.name", "operator": self.one(["In", "NotIn"]), "values": [self.one(self.names)]}
        match self.chance.randint(0, 4):
            case 0:
                return {"matchExpressions": [number]}
            case 1:
                return {"matchFields": [name]}
            case 2:
                return {"matchExpressions": [self.requirement(ZONE, ["z1", "z2"]), number]}
            case _:
                return {"matchExpressions": [self.requirement(self.one([ZONE, "disk"]), ["z1", "z2", "ssd"])]}

    def requirement(self, key: str, values: list[str]) -> Object:
        operator = self.one(["In", "NotIn", "Exists", "DoesNotExist"])
        if operator in {"Exists", "DoesNotExist"}:
            return {"key": key, "operator": operator}
        return {"key": key, "operator": operator, "values": self.chance.sample(values, self.one([1, 2]))}

    def selector(self) -> Object:
        match self.chance.randint(0, 5):
            case 0:
                return {}
            case 1:
                return {"matchExpressions": [self.requirement("tier", ["x", "y"])]}
            case 2:
                return {
                    "matchLabels": {"app": self.one(["db", "web"])},
                    "matchExpressions": [self.requirement("tier", ["x", "y"])],
                }
            case _:
                return {"matchLabels": {"app": self.one(["db", "web", "cache"])}}

    def terms(self) -> list[Object]:
        return [self.term() for _ in range(self.one([1, 1, 1, 2]))]

    def term(self) -> Object:
        term: Object = {"topologyKey": self.one([HOSTNAME, ZONE])}
        if self.chance.random() < 0.95:
            term["labelSelector"] = self.selector()
            term |= self.maybe(0.2, lambda: {self.one(["matchLabelKeys", "mismatchLabelKeys"]): ["revision"]})
        term |= self.maybe(0.3, lambda: {"namespaces": self.some(list(NAMESPACES), 2)})
        return term | self.maybe(0.3, lambda: {"namespaceSelector": self.namespace_selector()})

    def namespace_selector(self) -> Object:
        by_env = {"matchExpressions": [self.requirement("env", ["prod", "x"])]}
        return self.one([{}, {"matchLabels": {"team": "a"}}, by_env])

    def constraints(self) -> list[Object]:
        return [self.constraint(key) for key in self.one([[HOSTNAME], [ZONE], [ZONE], [ZONE, HOSTNAME]])]

    def constraint(self, key: str) -> Object:
        soft = self.chance.random() < 0.1
        constraint: Object = {
            "maxSkew": self.one([1, 1, 2]),
            "topologyKey": key,
            "whenUnsatisfiable": "ScheduleAnyway" if soft else "DoNotSchedule",
        }
        if self.chance.random() < 0.95:
            constraint["labelSelector"] = self.selector()
            constraint |= self.maybe(0.2, lambda: {"matchLabelKeys": ["revision"]})
        constraint |= self.maybe(0.0 if soft else 0.2, lambda: {"minDomains": self.one([1, 3, 5])})
        constraint |= self.maybe(0.3, lambda: {"nodeAffinityPolicy": self.one(["Honor", "Ignore"])})
        return constraint | self.maybe(0.4, lambda: {"nodeTaintsPolicy": self.one(["Honor", "Ignore"])})
