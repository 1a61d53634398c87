"""Fixtures that several packages' tests share, the real control plane first of all.

A test that asks for the control plane is marked `controlplane` by that. All binaries are built before the first such
test, since that takes longer than a test may.
"""

import itertools
import logging
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from pathlib import Path

import pytest
import structlog
import yaml

from e2e.build import all_binaries
from e2e.cluster import EXTENDER, Cluster, Namespace, start_cluster
from extender.apiserver import ApiServer, connect
from extender.observe.metrics import Metrics
from tests.apiserver_stub import ApiServerStub

CONTROL_PLANE_MARK = "controlplane"


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "cluster" in getattr(item, "fixturenames", ()):
            item.add_marker(CONTROL_PLANE_MARK)


def pytest_collection_finish(session: pytest.Session) -> None:
    needed = any(item.get_closest_marker(CONTROL_PLANE_MARK) for item in session.items)
    if needed and not session.config.option.collectonly:
        terminal = session.config.get_terminal_writer()
        all_binaries(lambda line: terminal.write(f"{line}\n", flush=True))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    cluster = getattr(item, "funcargs", {}).get("cluster")
    if report.failed and isinstance(cluster, Cluster):
        report.sections.append(("the extender's last log lines", cluster.log_tail(EXTENDER)))
    return report


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """Return the one control plane of this run, with the extender."""
    with start_cluster() as cluster:
        yield cluster


_namespaces = itertools.count(1)


@pytest.fixture
def namespace(cluster: Cluster) -> Iterator[Namespace]:
    """Return a namespace of the test's own, on a control plane that has no nodes before and after."""
    namespace = cluster.namespace(f"test-{next(_namespaces)}")
    yield namespace
    namespace.delete()
    cluster.delete_nodes()
    cluster.check()


@pytest.fixture
def logs_as_before() -> Iterator[None]:
    """Undo what a test makes of the log, which would go on writing to the test's captured stream."""
    root = logging.getLogger()
    level, handlers = root.level, root.handlers[:]
    root.handlers.clear()
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    structlog.reset_defaults()


@pytest.fixture
def metrics() -> Metrics:
    return Metrics(version="0.0.0")


@pytest.fixture
async def stopped_stub(unused_tcp_port_factory: Callable[[], int]) -> AsyncIterator[ApiServerStub]:
    """Return a stand-in for kube-apiserver that does not listen yet."""
    stub = ApiServerStub(unused_tcp_port_factory())
    yield stub
    await stub.stop()


@pytest.fixture
async def stub(stopped_stub: ApiServerStub) -> ApiServerStub:
    """Return a stand-in for kube-apiserver."""
    await stopped_stub.start()
    return stopped_stub


@pytest.fixture
async def api(stopped_stub: ApiServerStub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[ApiServer]:
    """Return a connection to the stand-in."""
    monkeypatch.setenv("SSL_CERT_FILE", "/dev/null")  # reading the system's authorities takes 30 ms a test
    server = await connect(write_kubeconfig(tmp_path, stopped_stub.url, {"token": "secret"}))
    yield server
    await server.close()


def write_kubeconfig(folder: Path, url: str, user: dict[str, str]) -> str:
    """Write a kubeconfig for this server and return its path."""
    kubeconfig = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": url}}],
        "users": [{"name": "u", "user": user}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    path = folder / "kubeconfig"
    path.write_text(yaml.safe_dump(kubeconfig), encoding="utf-8")
    return str(path)
