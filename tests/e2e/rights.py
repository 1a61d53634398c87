"""Taking rights away from the ServiceAccounts of manifests/, one by one, and giving them back."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import NamedTuple

from e2e.cluster import Cluster, Object, wait_for
from tests.manifests.files import BASE, HAMI, HOLD, manifests

NAMESPACE = "gang-extender"
FOLDERS = (BASE, HOLD, HAMI)
_DEADLINE_S = 10.0


class Right(NamedTuple):
    """One verb on one resource; `role` (kind/name) is where manifests/ give it, `name` the one object it is for."""

    role: str
    group: str
    resource: str
    verb: str
    name: str = ""

    @property
    def watched(self) -> str:
        """What `/readyz` calls the resource."""
        return f"{self.resource}.{self.group}" if self.group else self.resource


def roles() -> dict[str, Object]:
    """Return the roles of manifests/ by kind/name."""
    found = [each for folder in FOLDERS for each in manifests(folder) if each["kind"] in {"Role", "ClusterRole"}]
    return {f"{each['kind']}/{each['metadata']['name']}": each for each in found}


def rights() -> set[Right]:
    """Return all that manifests/ give away."""
    return {right for name, role in roles().items() for right in _rights_of(name, role)}


def _rights_of(name: str, role: Object) -> Iterator[Right]:
    for rule in role["rules"]:
        for group in rule["apiGroups"]:
            for resource in rule["resources"]:
                for verb in rule["verbs"]:
                    for one in rule.get("resourceNames", [""]):
                        yield Right(name, group, resource, verb, one)


@contextmanager
def without(cluster: Cluster, *taken: Right) -> Iterator[None]:
    """Take these rights away, all others left, until the end."""
    known = roles()
    concerned = {right.role for right in taken}
    for name in concerned:
        left = [right for right in _rights_of(name, known[name]) if right not in taken]
        cluster.apply({**known[name], "rules": [_rule(right) for right in left]})
    try:
        _wait(cluster, taken, allowed=False)
        yield
    finally:
        for name in concerned:
            cluster.apply(known[name])
        _wait(cluster, taken, allowed=True)


def _wait(cluster: Cluster, concerned: Sequence[Right], *, allowed: bool) -> None:
    for right in concerned:
        is_so = partial(_is, cluster, right, allowed)
        wait_for(is_so, _DEADLINE_S, f"{right} is {'given back' if allowed else 'taken away'}")


def _is(cluster: Cluster, right: Right, allowed: bool) -> bool:
    return _is_allowed(cluster, right) is allowed


def _rule(right: Right) -> Object:
    rule = {"apiGroups": [right.group], "resources": [right.resource], "verbs": [right.verb]}
    return rule | ({"resourceNames": [right.name]} if right.name else {})


def _is_allowed(cluster: Cluster, right: Right) -> bool:
    resource, _, subresource = right.resource.partition("/")
    what = {"group": right.group, "resource": resource, "subresource": subresource, "verb": right.verb}
    account = "gang-scheduler" if right.role == "Role/gang-scheduler" else "gang-extender"
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {
            "user": f"system:serviceaccount:{NAMESPACE}:{account}",
            "resourceAttributes": {**what, "namespace": NAMESPACE, "name": right.name},
        },
    }
    answer = cluster.api.create("/apis/authorization.k8s.io/v1/subjectaccessreviews", review)
    allowed: bool = answer["status"]["allowed"]
    return allowed
