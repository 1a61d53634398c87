"""Gang metadata beyond a name: what is understood, what is refused, and what is passed over with a word."""

from typing import Any

import pytest
from msgspec import convert

from extender.model.claim import BadGangClaim, GangClaim
from extender.wire import core_v1
from extender.wire.gang_dialects import gang_of
from extender.wire.gang_terms import read_terms
from tests.builders import gang_annotations, pod_json

PREFIX = "gang.scheduling.koordinator.sh"


def claim(
    annotations: dict[str, str] | None = None,
    *,
    labels: dict[str, str] | None = None,
    spec: dict[str, Any] | None = None,
) -> object:
    metadata = {"labels": labels, "annotations": annotations}
    return gang_of(convert(pod_json(metadata=metadata, spec=spec), core_v1.Pod))


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("600s", 600.0),
        ("1h30m", 5400.0),
        ("1.5h", 5400.0),
        ("250ms", 0.25),
        (".5s", 0.5),
        ("+2m", 120.0),
        ("3us", 3e-6),
    ],
)
def test_a_waiting_time_is_a_duration_as_go_writes_it(text: str, seconds: float) -> None:
    terms = read_terms({f"{PREFIX}/waiting-time": text})
    assert terms.waiting_s == pytest.approx(seconds)
    assert terms.ignored == ()


@pytest.mark.parametrize(
    ("key", "text"),
    [
        *[("waiting-time", text) for text in ("", "600", "0s", "-1s", "1d", "s", "1 h", "9" * 400 + "s")],
        *[("total-number", text) for text in ("", "0", "four")],
        *[("mode", text) for text in ("", "strict", "NONSTRICT")],
        *[("groups", text) for text in ("", "a", "{}", '["a"]', '["a/b/c"]', "[1]", "[" * 5000)],
        *[("match-policy", text) for text in ("", "always")],
    ],
)
def test_what_makes_no_sense_is_passed_over_and_named(key: str, text: str) -> None:
    terms = read_terms({f"{PREFIX}/{key}": text})
    (ignored,) = terms.ignored
    assert ignored.where == f"annotation {PREFIX}/{key}"
    assert ignored.value == text[:63]
    assert (terms.waiting_s, terms.total, terms.strict, terms.groups, terms.match_policy) == (None,) * 5


def test_the_label_with_min_available_comes_before_the_annotation() -> None:
    labels = {"pod-group.scheduling.sigs.k8s.io/name": "g", "pod-group.scheduling.sigs.k8s.io/min-available": "3"}
    found = claim(gang_annotations("other", 4), labels=labels)
    assert isinstance(found, GangClaim)
    assert (found.key, found.min_available) == ("default/g", 3)


@pytest.mark.parametrize(
    ("labels", "problem"),
    [
        (
            {
                "pod-group.scheduling.sigs.k8s.io/name": "g",
                "pod-group.scheduling.sigs.k8s.io/min-available": "few",
            },
            "label pod-group.scheduling.sigs.k8s.io/min-available is 'few': it must be a whole number of 1 or more",
        ),
        (
            {"sharedgpu/group_name": "g", "sharedgpu/group_headcount": "0", "sharedgpu/group_threshold": "1"},
            "label sharedgpu/group_headcount is '0': it must be a whole number of 1 or more",
        ),
        (
            {"sharedgpu/group_name": "g", "sharedgpu/group_headcount": "4", "sharedgpu/group_threshold": "0.1"},
            "label sharedgpu/group_threshold is '0.1': it must be a share of the 4 members that comes to 1 or more",
        ),
    ],
)
def test_a_count_that_is_none_is_the_reason_why_the_pod_waits(labels: dict[str, str], problem: str) -> None:
    assert claim(labels=labels) == BadGangClaim("default/g", problem)  # type: ignore[arg-type]  # a key is a string


@pytest.mark.parametrize(
    ("words", "nodes"),
    [
        (["torchrun", "--nnodes=3:4", "train.py"], 3),
        (["torchrun", "--nnodes", "2", "train.py"], 2),
        (["sh", "-c", "dlrover-run --nnodes=3:$NODE_NUM --nproc_per_node=1 train.py"], 3),
        (["sh", "-c", "torchrun --nnodes='4'"], 4),
        (["torchrun", "--nnodes=$NODE_NUM"], 0),
        (["train.py"], 0),
    ],
)
def test_the_nodes_that_the_launcher_waits_for_are_read_from_its_command(words: list[str], nodes: int) -> None:
    spec = {"containers": [{"name": "sidecar"}, {"name": "main", "command": words[:1], "args": words[1:]}]}
    found = claim(gang_annotations("g", 4), spec=spec)
    assert isinstance(found, GangClaim)
    assert found.rendezvous_min == nodes


def test_a_pod_that_another_kind_owns_and_job_name_labels_have_no_gang() -> None:
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "controller": True}
    metadata = {"labels": {"job-name": "web"}, "ownerReferences": [owner]}
    assert gang_of(convert(pod_json(metadata=metadata), core_v1.Pod)) is None
