"""Pod affinity, anti-affinity and spread constraints become what a pod asks of those around it."""

from typing import Any

import pytest
from msgspec import convert

from extender.model.pod import AffinityTerm, PodShape, Relations, Requirement, SpreadConstraint
from extender.wire import core_v1
from extender.wire.objects import pod_of
from tests.builders import pod_json

APP = Requirement("app", "In", ("db",))


def shape(**spec: Any) -> PodShape:
    body = pod_json(namespace="team", metadata={"labels": {"app": "db", "hash": "7"}}, spec=spec)
    return pod_of(convert(body, core_v1.Pod)).shape


def term(**parts: Any) -> dict[str, Any]:
    return {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "db"}}, **parts}


def affinity(*terms: dict[str, Any], kind: str = "podAffinity") -> dict[str, Any]:
    return {kind: {"requiredDuringSchedulingIgnoredDuringExecution": list(terms)}}


@pytest.mark.parametrize(
    ("parts", "read"),
    [
        ({}, AffinityTerm("zone", (APP,), ("team",))),
        ({"labelSelector": None}, AffinityTerm("zone", None, ("team",))),
        ({"labelSelector": {}}, AffinityTerm("zone", (), ("team",))),
        ({"namespaces": ["y", "x"]}, AffinityTerm("zone", (APP,), ("x", "y"))),
        ({"namespaceSelector": {}}, AffinityTerm("zone", (APP,), (), ())),
        (
            {"namespaceSelector": {"matchLabels": {"team": "a"}}, "namespaces": ["x"]},
            AffinityTerm("zone", (APP,), ("x",), (Requirement("team", "In", ("a",)),)),
        ),
        (
            {"labelSelector": {"matchExpressions": [{"key": "app", "operator": "Exists"}]}},
            AffinityTerm("zone", (Requirement("app", "Exists"),), ("team",)),
        ),
    ],
)
def test_a_term_is_about_pods_by_labels_and_namespaces(parts: dict[str, Any], read: AffinityTerm) -> None:
    assert shape(affinity=affinity(term(**parts))).relations == Relations(affinity=(read,))
    assert shape(affinity=affinity(term(**parts), kind="podAntiAffinity")).relations == Relations(anti_affinity=(read,))


def spread(**parts: Any) -> dict[str, Any]:
    selector = {"matchLabels": {"app": "db"}}
    return {
        "maxSkew": 2,
        "topologyKey": "zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": selector,
        **parts,
    }


@pytest.mark.parametrize(
    ("parts", "read"),
    [
        ({}, SpreadConstraint(2, "zone", (APP,))),
        ({"minDomains": 3}, SpreadConstraint(2, "zone", (APP,), 3)),
        ({"nodeAffinityPolicy": "Ignore"}, SpreadConstraint(2, "zone", (APP,), honors_affinity=False)),
        ({"nodeTaintsPolicy": "Honor"}, SpreadConstraint(2, "zone", (APP,), honors_taints=True)),
        (
            {"matchLabelKeys": ["hash", "absent"]},
            SpreadConstraint(2, "zone", (APP, Requirement("hash", "In", ("7",)))),
        ),
        ({"matchLabelKeys": ["hash"], "labelSelector": None}, SpreadConstraint(2, "zone", None)),
    ],
)
def test_a_hard_constraint_is_read_with_its_defaults(parts: dict[str, Any], read: SpreadConstraint) -> None:
    assert shape(topologySpreadConstraints=[spread(**parts)]).relations == Relations(spread=(read,))


def test_what_is_only_preferred_is_no_relation() -> None:
    soft = spread(whenUnsatisfiable="ScheduleAnyway")
    preferred: dict[str, Any] = {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}}
    assert shape(topologySpreadConstraints=[soft], affinity=preferred).relations is None


@pytest.mark.parametrize(
    ("spec", "unmodelled"),
    [
        ({"volumes": [{"name": "v", "emptyDir": {}}]}, ()),
        ({"volumes": [{"name": "v", "iscsi": {"iqn": "i"}}, {"name": "w", "rbd": {"image": "i"}}]}, ("disks",)),
        ({"resourceClaims": [{"name": "gpu", "resourceClaimName": "c"}]}, ("resource claims",)),
    ],
)
def test_what_is_not_modelled_is_said(spec: dict[str, Any], unmodelled: tuple[str, ...]) -> None:
    assert shape(**spec).unmodelled == unmodelled
