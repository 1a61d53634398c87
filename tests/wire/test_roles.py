"""A pod's part in its job, whichever operator made it."""

import pytest

from extender.wire.roles import role_of


@pytest.mark.parametrize(
    ("labels", "role"),
    [
        ({"training.kubeflow.org/replica-type": "Worker"}, "worker"),
        ({"elasticjob.dlrover/replica-type": "ps"}, "ps"),
        ({"replica-type": "chief"}, "chief"),
        ({"tf-replica-type": "PS"}, "ps"),
        ({"task-type": "aimaster"}, "aimaster"),
        ({"replica-type": "worker", "training.kubeflow.org/replica-type": "master"}, "master"),
        ({"app": "worker"}, ""),
        ({}, ""),
    ],
)
def test_the_first_label_of_the_table_gives_the_role_in_lower_case(labels: dict[str, str], role: str) -> None:
    assert role_of(labels) == role
