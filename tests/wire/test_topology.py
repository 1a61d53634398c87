"""Each dialect's words for where a gang must, or had better, be together; and what makes no sense in them."""

import json
from typing import Any

import pytest
from msgspec import Raw, convert

from extender.model.claim import GangClaim, Terms
from extender.model.pod_group import KOORDINATOR, UPSTREAM, VOLCANO
from extender.model.topology import LevelName
from extender.wire import core_v1
from extender.wire.gang_dialects import gang_of
from extender.wire.gang_terms import read_terms
from extender.wire.kube import POD_GROUPS
from tests.builders import gang_annotations, pod_json

OWN = "gang-extender.io"
KUEUE = "kueue.x-k8s.io/podset"
SPEC = "gang.scheduling.koordinator.sh/network-topology-spec"
RACK = "example.com/rack"


def said(terms: Terms) -> tuple[list[str], list[str]]:
    """Return what is required and what is preferred."""
    return [each.text for each in terms.required or ()], [each.text for each in terms.preferred or ()]


def gather(*rules: tuple[str, str]) -> dict[str, str]:
    return {SPEC: json.dumps({"gatherStrategy": [{"layer": layer, "strategy": how} for layer, how in rules]})}


def pod_group_terms(api: str, spec: dict[str, Any], annotations: dict[str, str] | None = None) -> Terms:
    metadata = {"name": "g", "namespace": "default", "uid": "u", "annotations": annotations}
    return POD_GROUPS[api].read(Raw(json.dumps({"metadata": metadata, "spec": spec}).encode())).object.terms


@pytest.mark.parametrize(
    ("annotations", "required", "preferred"),
    [
        ({}, [], []),
        ({f"{OWN}/required-topology": "block"}, ["block"], []),
        ({f"{OWN}/required-topology": RACK}, [RACK], []),
        ({f"{OWN}/preferred-topology": "block", f"{OWN}/required-topology": "zone"}, ["zone"], ["block"]),
        ({f"{KUEUE}-required-topology": RACK}, [RACK], []),
        ({f"{KUEUE}-preferred-topology": RACK}, [], [RACK]),
        ({f"{KUEUE}-unconstrained-topology": "true"}, [], []),
        (gather(("SpineLayer", "MustGather"), ("BlockLayer", "PreferGather")), ["SpineLayer"], ["BlockLayer"]),
        (gather(("a", "PreferGather"), ("b", "PreferGather")), [], ["a", "b"]),
        (gather(("NodeTopologyLayer", "MustGather")), ["kubernetes.io/hostname"], []),
        (gather(), [], []),
        ({SPEC: ""}, [], []),
        ({f"{OWN}/required-topology": "block", f"{KUEUE}-required-topology": RACK}, ["block"], []),
    ],
)
def test_annotations_name_levels(annotations: dict[str, str], required: list[str], preferred: list[str]) -> None:
    terms = read_terms(annotations)
    assert (said(terms), terms.ignored) == ((required, preferred), ())


@pytest.mark.parametrize(
    ("annotations", "where"),
    [
        ({f"{OWN}/required-topology": ""}, f"annotation {OWN}/required-topology"),
        ({f"{OWN}/required-topology": "a b"}, f"annotation {OWN}/required-topology"),
        ({f"{OWN}/preferred-topology": "/x"}, f"annotation {OWN}/preferred-topology"),
        ({f"{KUEUE}-required-topology": "a/b/c"}, f"annotation {KUEUE}-required-topology"),
        ({SPEC: "spine"}, f"annotation {SPEC}"),
        ({SPEC: "[" * 5000}, f"annotation {SPEC}"),
        (gather(("SpineLayer", "Gather")), f"annotation {SPEC}"),
    ],
)
def test_what_makes_no_sense_is_passed_over_and_named(annotations: dict[str, str], where: str) -> None:
    terms = read_terms(annotations)
    assert said(terms) == ([], [])
    assert [each.where for each in terms.ignored] == [where]


def test_kueue_refuses_both_of_its_annotations_and_so_only_the_requirement_holds() -> None:
    terms = read_terms({f"{KUEUE}-required-topology": "a", f"{KUEUE}-preferred-topology": "b"})
    assert said(terms) == (["a"], [])
    assert [each.where for each in terms.ignored] == [f"annotation {KUEUE}-preferred-topology"]


def test_koordinators_multiples_are_not_known_here_and_that_is_said() -> None:
    rule = {"layer": "block", "strategy": "PreferGather", "podCountMultiple": 8}
    terms = read_terms({SPEC: json.dumps({"gatherStrategy": [rule]})})
    assert said(terms) == ([], ["block"])
    assert [each.value for each in terms.ignored] == ["8"]


@pytest.mark.parametrize(
    ("spec", "required", "preferred"),
    [
        ({}, (), ()),
        ({"mode": "hard", "highestTierAllowed": 2}, (LevelName("2", "tier"),), (LevelName("1", "tier"),)),
        ({"highestTierAllowed": 2}, (LevelName("2", "tier"),), (LevelName("1", "tier"),)),
        ({"mode": "hard", "highestTierName": "spine"}, (LevelName("spine", "name"),), (LevelName("1", "tier"),)),
        ({"mode": "soft"}, (), (LevelName("1", "tier"),)),
        ({"mode": "soft", "highestTierAllowed": 1}, (), (LevelName("1", "tier"),)),
    ],
)
def test_volcano_says_it_in_tiers(
    spec: dict[str, Any], required: tuple[LevelName, ...], preferred: tuple[LevelName, ...]
) -> None:
    terms = pod_group_terms(VOLCANO, {"minMember": 4, **({"networkTopology": spec} if spec else {})})
    assert (terms.required or (), terms.preferred or (), terms.ignored) == (required, preferred, ())


@pytest.mark.parametrize("spec", [{}, {"mode": "hard"}, {"mode": "medium", "highestTierAllowed": 1}])
def test_volcanos_mode_makes_no_sense_alone_or_misspelt(spec: dict[str, Any]) -> None:
    terms = pod_group_terms(VOLCANO, {"minMember": 4, "networkTopology": spec})
    assert said(terms) == ([], [])
    assert [each.where for each in terms.ignored] == ["networkTopology.mode of its PodGroup"]


def test_kubernetes_own_pod_group_names_a_label() -> None:
    constraints = {"topology": [{"key": RACK}]}
    spec = {"schedulingPolicy": {"gang": {"minCount": 4}}, "schedulingConstraints": constraints}
    terms = pod_group_terms(UPSTREAM, spec, {f"{OWN}/preferred-topology": "block"})
    assert terms.required == (LevelName(RACK, "label"),)
    assert pod_group_terms(UPSTREAM, {}) == Terms()


@pytest.mark.parametrize("said_in_spec", [{"mode": "soft"}, {"mode": "hard"}, {"mode": "medium"}])
def test_what_a_pod_groups_annotations_require_holds_whatever_its_spec_says(said_in_spec: dict[str, Any]) -> None:
    annotations = {f"{OWN}/required-topology": "block"}
    terms = pod_group_terms(VOLCANO, {"minMember": 4, "networkTopology": said_in_spec}, annotations)
    assert terms.required == (LevelName("block"),)
    both = {"minMember": 4, "networkTopology": {"mode": "hard", "highestTierAllowed": 2}}
    assert said(pod_group_terms(VOLCANO, both, annotations))[0] == ["block", "2"]


def test_on_a_pod_group_as_on_a_pod_annotations_say_it() -> None:
    annotations = gather(("BlockLayer", "MustGather"))
    assert said(pod_group_terms(KOORDINATOR, {"minMember": 4}, annotations)) == (["BlockLayer"], [])
    metadata = {"annotations": {**gang_annotations("g", 4), **annotations}}
    claim = gang_of(convert(pod_json(metadata=metadata), core_v1.Pod))
    assert isinstance(claim, GangClaim)
    assert said(claim.terms) == (["BlockLayer"], [])
