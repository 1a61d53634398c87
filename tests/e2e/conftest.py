"""What some tests need on the session's control plane: job controllers, priority classes, rights."""

from collections.abc import Iterator

import pytest

from e2e.build import training_operator_binary
from e2e.cluster import Cluster
from e2e.elasticjob.launcher import start_elasticjob_operator
from e2e.trainingoperator.launcher import start_training_operator
from tests.manifests.files import HAMI, manifests


def pytest_collection_finish(session: pytest.Session) -> None:
    """Build the training operator before the first test, since that takes longer than a test may."""
    needed = any("training_operator" in getattr(item, "fixturenames", ()) for item in session.items)
    if needed and not session.config.option.collectonly:
        terminal = session.config.get_terminal_writer()
        training_operator_binary(lambda line: terminal.write(f"{line}\n", flush=True))


@pytest.fixture(scope="session")
def elasticjob_operator(cluster: Cluster) -> None:
    """Run the stand-in for DLRover's operator."""
    start_elasticjob_operator(cluster)


@pytest.fixture(scope="session")
def training_operator(cluster: Cluster) -> None:
    """Run Kubeflow's own training operator."""
    start_training_operator(cluster)


@pytest.fixture(scope="session")
def priority_classes(cluster: Cluster) -> None:
    """Install the priorities that pods name in tests."""
    for name, value in {"low": 10, "middle": 50, "high": 1000}.items():
        priority_class = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}}
        cluster.apply({**priority_class, "value": value})


@pytest.fixture(scope="module")
def node_lock_right(cluster: Cluster) -> Iterator[None]:
    """Allow the extender to lock nodes, as HAMi's device plugin wants it, until the module's tests are over."""
    cluster.apply(*manifests(HAMI))
    yield
    for each in manifests(HAMI):
        cluster.api.delete(cluster.api.path_of(each))
