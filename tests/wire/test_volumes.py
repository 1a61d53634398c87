"""Claims and volumes as the API server sends them become the model's."""

import json
from typing import Any

import pytest
from msgspec import Raw, convert

from extender.model.pod import ClaimUse, NodeSelectorTerm, Requirement
from extender.model.volume import PersistentVolume, VolumeClaim
from extender.wire import core_v1
from extender.wire.kube import VOLUME_CLAIMS, VOLUMES
from extender.wire.objects import pod_of
from tests.builders import pod_json

ZONE, BETA_REGION = "topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region"
BOUND = {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}}


def claim(metadata: dict[str, Any], **parts: Any) -> VolumeClaim:
    metadata = {"name": "data", "namespace": "team", "uid": "u", **metadata}
    return VOLUME_CLAIMS.read(Raw(json.dumps({"metadata": metadata, **parts}).encode())).object


def volume(labels: dict[str, str] | None = None, **spec: Any) -> PersistentVolume:
    metadata = {"name": "pv", "uid": "u", "labels": labels}
    return VOLUMES.read(Raw(json.dumps({"metadata": metadata, "spec": spec}).encode())).object


def affinity(*terms: dict[str, Any]) -> dict[str, Any]:
    return {"required": {"nodeSelectorTerms": terms}}


def test_a_claim_is_bound_once_its_controller_says_so() -> None:
    spec = {"volumeName": "pv", "accessModes": ["ReadWriteOnce"]}
    assert claim(BOUND, spec=spec, status={"phase": "Bound"}) == VolumeClaim("team", "data", "pv")
    assert claim({}, spec=spec) == VolumeClaim("team", "data")
    assert claim({"annotations": None}) == VolumeClaim("team", "data")


def test_what_makes_a_claim_unusable_or_particular_is_read() -> None:
    assert claim({"deletionTimestamp": "2026-01-02T03:04:05Z"}).failing
    assert claim({}, status={"phase": "Lost"}).failing
    assert claim({}, spec={"accessModes": ["ReadWriteOncePod"]}).single_pod
    owners = [{"kind": "X", "uid": "x"}, {"kind": "Pod", "uid": "p", "controller": True}]
    assert claim({"ownerReferences": owners}).made_for == "p"


def test_a_volume_says_which_nodes_reach_it() -> None:
    expression = {"key": "disk", "operator": "In", "values": ["ssd"]}
    read = volume(
        {ZONE: "a__b", BETA_REGION: "r", "app": "x"}, nodeAffinity=affinity({"matchExpressions": [expression]})
    )
    assert read == PersistentVolume(
        "pv",
        (NodeSelectorTerm((Requirement("disk", "In", ("ssd",)),)),),
        ((BETA_REGION, frozenset({"r"})), (ZONE, frozenset({"a", "b"}))),
    )
    assert volume(local={"path": "/x"}) == PersistentVolume("pv")


def test_the_name_of_a_node_does_not_count_for_a_volume() -> None:
    expression, name = (
        {"key": "disk", "operator": "Exists"},
        {"key": "metadata.name", "operator": "In", "values": ["n"]},
    )
    both = affinity({"matchExpressions": [expression], "matchFields": [name]})
    assert volume(nodeAffinity=both).required_terms == (NodeSelectorTerm((Requirement("disk", "Exists"),)),)
    assert (
        volume(nodeAffinity=affinity({"matchFields": [name]}, {"matchExpressions": [expression]})).required_terms
        is None
    )


def test_a_zone_label_with_an_empty_zone_counts_for_nothing() -> None:
    assert volume({ZONE: "a__"}).zones == ()


@pytest.mark.parametrize(
    ("source", "counted", "migratable"),
    [("csi", True, False), ("gcePersistentDisk", False, True), ("portworxVolume", False, True), ("nfs", False, False)],
)
def test_kinds_of_volumes_that_kube_scheduler_treats_in_a_way_of_their_own(
    source: str, *, counted: bool, migratable: bool
) -> None:
    read = volume(**{source: {}})
    assert (read.counted, read.migratable) == (counted, migratable)


def test_a_pod_names_its_claims_and_those_that_are_made_for_it() -> None:
    volumes = [
        {"name": "data", "persistentVolumeClaim": {"claimName": "shared"}},
        {"name": "tmp", "ephemeral": {"volumeClaimTemplate": {}}},
        {"name": "none", "emptyDir": {}},
    ]
    read = pod_of(convert(pod_json("w0", spec={"volumes": volumes}), core_v1.Pod))
    assert read.claims == (ClaimUse("shared"), ClaimUse("w0-tmp", ephemeral=True))
