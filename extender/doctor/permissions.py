"""Which rights do the extender and its kube-scheduler need, what for, and what is amiss without them?

The same as the roles of manifests/ give; a test holds the two together.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, Literal, TypeAlias

from msgspec import Struct

from extender.doctor.finding import Finding, Level, Unseen
from extender.model.pod_group import KOORDINATOR, SCHEDULER_PLUGINS, UPSTREAM, VOLCANO
from extender.wire.job_owner import BATCH_JOB, ELASTIC_JOB, GROUP_OF, PYTORCH_JOB, TF_JOB, TORCH_JOB

Part: TypeAlias = Literal["base", "jobs", "election", "hold", "hami"]
"""What it is for: the extender itself, gangs from jobs, following its kube-scheduler's election, or what a folder of
manifests/ adds."""

FOLDERS: Final[Mapping[Part, str]] = {
    "base": "base",
    "jobs": "base",
    "election": "base",
    "hold": "hold",
    "hami": "hami",
}
"""Which folder of manifests/ gives it."""

Who: TypeAlias = Literal["extender", "scheduler"]
"""Whose right it is: the extender's, or that of the kube-scheduler which manifests/base brings."""


class Right(Struct, frozen=True):
    """One verb on one resource; `resource` is `pods` or `pods/binding`. `name` is the one object that it is for."""

    group: str
    resource: str
    verb: str
    who: Who = "extender"
    namespace: str = ""
    name: str = ""

    @property
    def said(self) -> str:
        """Return it as `patch pods/status`, with the API group if it has one."""
        kind, _, sub = self.resource.partition("/")
        name = f" {self.name}" if self.name else ""
        return f"{self.verb} {kind}{f'.{self.group}' if self.group else ''}{f'/{sub}' if sub else ''}{name}"

    @property
    def kind(self) -> str:
        """Return `resource.group`, without the subresource."""
        return f"{self.resource.partition('/')[0]}.{self.group}"


class Need(Struct, frozen=True):
    """Some rights that are for one purpose. `optional`: only where the cluster has the kind."""

    rights: tuple[Right, ...]
    without: str
    part: Part = "base"
    level: Level = "error"
    optional: bool = False


_WATCH: Final = ("list", "watch")
_NOT_FORGIVEN: Final = "the extender never gets ready: it is refused, whether the kind is installed or not"
"""The API server looks at rights before it looks for the kind, and only a 404 says that there is none."""

NAMESPACE: Final = "gang-extender"
LEASE: Final = "gang-scheduler"
"""The lease that manifests/base lets its kube-scheduler write, in its namespace."""


def _rights(group: str, resources: Iterable[str], verbs: Iterable[str]) -> tuple[Right, ...]:
    verbs = tuple(verbs)
    return tuple(Right(group, resource, verb) for resource in resources for verb in verbs)


def _of_jobs() -> tuple[Right, ...]:
    kinds = (TF_JOB, PYTORCH_JOB, ELASTIC_JOB, TORCH_JOB, BATCH_JOB)
    return tuple(Right(GROUP_OF[kind], f"{kind.lower()}s", verb) for kind in kinds for verb in _WATCH)


NEEDS: Final[tuple[Need, ...]] = (
    Need(
        _rights("", ("namespaces", "nodes", "pods"), _WATCH),
        "the extender never gets ready: it does not know the cluster",
    ),
    Need(
        _rights("", ("pods",), ("get",)),
        "of a pod that the API server did not say it bound, nobody knows whether it is",
    ),
    Need(
        _rights("", ("persistentvolumeclaims", "persistentvolumes"), _WATCH),
        "the extender never gets ready: it does not know which nodes reach a pod's volumes",
    ),
    Need(
        _rights("policy", ("poddisruptionbudgets",), _WATCH),
        "the extender never gets ready: it does not know whom to spare",
    ),
    Need(_rights("scheduling.koordinator.sh", ("devices",), _WATCH), _NOT_FORGIVEN),
    Need(
        tuple(
            right
            for group in (UPSTREAM, KOORDINATOR, SCHEDULER_PLUGINS, VOLCANO)
            for right in _rights(group, ("podgroups",), _WATCH)
        ),
        _NOT_FORGIVEN,
    ),
    Need(_of_jobs(), _NOT_FORGIVEN, part="jobs"),
    Need(_rights("", ("pods/binding",), ("create",)), "no pod is ever bound"),
    Need(_rights("", ("pods/status",), ("patch",)), "members that wait are not woken when their gang has room"),
    Need(
        tuple(
            right
            for group in (KOORDINATOR, SCHEDULER_PLUGINS, VOLCANO)
            for right in _rights(group, ("podgroups/status",), ("patch",))
        )
        + _rights(KOORDINATOR, ("podgroups",), ("patch",)),
        "the PodGroup's status is not kept, which operators wait for",
        level="warning",
        optional=True,
    ),
    Need(
        _rights("events.k8s.io", ("events",), ("create", "patch")),
        "nobody is told why a gang waits",
        level="warning",
    ),
    Need(
        tuple(
            Right("coordination.k8s.io", "leases", verb, "scheduler", NAMESPACE, LEASE) for verb in ("get", "update")
        ),
        "the kube-scheduler is never elected, and does nothing",
    ),
    Need(
        (Right("", "pods", "list", "scheduler"), Right("", "pods/status", "patch", "scheduler")),
        "the kube-scheduler does not know the cluster (ClusterRole system:kube-scheduler)",
    ),
    Need(
        (Right("", "persistentvolumes", "update", "scheduler"),),
        "pods whose volumes are not bound yet are never scheduled (ClusterRole system:volume-scheduler)",
    ),
    Need(
        (Right("", "configmaps", "get", "scheduler", "kube-system", "extension-apiserver-authentication"),),
        "nobody may read the kube-scheduler's metrics (Role extension-apiserver-authentication-reader)",
        level="warning",
    ),
    Need(
        tuple(
            Right("coordination.k8s.io", "leases", verb, "extender", NAMESPACE, LEASE)
            for verb in ("get", "list", "watch")
        ),
        "the extender never leads: it does not know whether its kube-scheduler is elected",
        part="election",
    ),
    Need(_rights("", ("pods",), ("patch",)), "held pods never lose their gate", part="hold"),
    Need(_rights("", ("nodes",), ("get", "patch")), "no pod that asks HAMi for a share is ever bound", part="hami"),
)

EVERY_RIGHT: Final = tuple(dict.fromkeys(right for need in NEEDS for right in need.rights))


class Asked(Struct, frozen=True):
    """What is in use, and who is asked about; `served` are the kinds that there are (None: not known)."""

    parts: frozenset[Part]
    identities: Mapping[Who, str]
    served: frozenset[str] | None


def check_permissions(rights: Mapping[Right, bool | Unseen], asked: Asked) -> Iterator[Finding]:
    """Say of each need whether it is met."""
    for need in NEEDS:
        if need.part in asked.parts and need.rights[0].who in asked.identities:
            yield from _check_need(need, rights, asked)


def _check_need(need: Need, rights: Mapping[Right, bool | Unseen], asked: Asked) -> Iterator[Finding]:
    who = need.rights[0].who
    name = f"right of the {who} to {need.rights[0].said}" + (" and others like it" if len(need.rights) > 1 else "")
    found = {right: rights.get(right, Unseen("not asked")) for right in need.rights}
    missing = [right for right, allowed in found.items() if allowed is False]
    unseen = next((allowed for allowed in found.values() if isinstance(allowed, Unseen)), None)
    if unseen is not None:
        yield Finding(name, "unknown", unseen.why, mend=unseen.mend)
    elif not missing:
        yield Finding(name, "ok")
    for right in missing:
        is_there = not need.optional or asked.served is None or right.kind in asked.served
        what = f"may not {right.said}: {need.without}"
        what += "" if is_there else ", once it is installed"
        level = need.level if is_there else "warning"
        # Not -k: that would put base's sidecars beside an installation of service mode, and take TLS away from another.
        mend = f"kubectl apply -f manifests/{FOLDERS[need.part]}/rbac.yaml"
        yield Finding(name, level, what, asked.identities[who], mend)
