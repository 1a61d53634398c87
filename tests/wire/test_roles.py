"""A pod's part in its job and its rank there, whichever operator made it."""

from typing import Any

import pytest
from msgspec import convert

from extender.model.pod import NO_NUMBER
from extender.wire import core_v1
from extender.wire.roles import number_of, rank_of, role_of
from tests.builders import pod_json


def pod(**metadata: Any) -> core_v1.Pod:
    return convert(pod_json(metadata=metadata), core_v1.Pod)


@pytest.mark.parametrize(
    ("labels", "role"),
    [
        ({"training.kubeflow.org/replica-type": "Worker"}, "worker"),
        ({"elasticjob.dlrover/replica-type": "ps"}, "ps"),
        ({"group-name": "kubeflow.org", "replica-type": "chief"}, "chief"),
        ({"tf-replica-type": "PS"}, "ps"),
        ({"group-name": "train.distributed.io", "task-type": "aimaster"}, "aimaster"),
        ({"replica-type": "worker", "training.kubeflow.org/replica-type": "master"}, "master"),
        ({"app": "worker"}, ""),
        ({}, ""),
    ],
)
def test_the_first_label_of_the_table_gives_the_role_in_lower_case(labels: dict[str, str], role: str) -> None:
    assert role_of(pod(labels=labels)) == role


@pytest.mark.parametrize("label", ["replica-type", "task-type"])
def test_a_bare_label_is_a_role_only_where_an_operator_wrote_it(label: str) -> None:
    def owned_by(version: str, kind: str) -> list[dict[str, Any]]:
        return [{"apiVersion": version, "kind": kind, "name": "j", "controller": True}]

    labels = {label: "worker", "job-name": "j"}
    assert role_of(pod(labels=labels)) == ""
    assert role_of(pod(labels=labels, ownerReferences=owned_by("batch/v1", "Job"))) == ""
    assert role_of(pod(labels=labels, ownerReferences=owned_by("kubeflow.org/v1", "TFJob"))) == "worker"


def test_volcanos_annotation_is_asked_last() -> None:
    annotations = {"volcano.sh/task-spec": "Worker"}
    assert role_of(pod(labels={}, annotations=annotations)) == "worker"
    assert role_of(pod(labels={"tf-replica-type": "ps"}, annotations=annotations)) == "ps"


def test_both_of_dlrovers_masters_name_the_rank() -> None:
    assert rank_of({"elasticjob.dlrover/rank-index": "3", "elasticjob.dlrover/replica-index": "7"}) == "3"
    assert rank_of({"elasticjob.dlrover/rank": "2", "elasticjob.dlrover/replica-id": "9"}) == "2"
    assert rank_of({"training.kubeflow.org/replica-index": "1"}) == ""


def test_a_number_is_read_from_the_rank_or_from_the_names_end() -> None:
    assert number_of("x", "7") == 7
    assert number_of("job-worker-12", "") == 12
    assert number_of("job-worker-12", "3") == 3
    assert number_of("w-999999999", "") == 999_999_999


@pytest.mark.parametrize("name", ["worker", "job-x7k2f9", "job-1a", "12", "w-1000000000", "w-\u0663", ""])
def test_who_has_no_number_comes_last(name: str) -> None:
    assert number_of(name, "") > number_of("w-999999999", "")


def test_a_rank_that_is_no_number_is_none() -> None:
    assert number_of("w-3", "9" * 5000) == NO_NUMBER
    assert number_of("w-3", "\u0663") == NO_NUMBER
