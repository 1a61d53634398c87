"""The demo shows what it says, or ends with 1 and shows what happened instead."""

from collections.abc import Iterator
from contextlib import nullcontext

import pytest

from e2e import demo
from e2e.cluster import Cluster, Namespace


@pytest.fixture(autouse=True)
def on_this_control_plane(
    cluster: Cluster,
    namespace: Namespace,  # noqa: ARG001 - its end deletes the nodes
    elasticjob_operator: None,  # noqa: ARG001 - runs already
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[None]:
    monkeypatch.setattr(demo, "start_cluster", lambda **_: nullcontext(cluster))
    monkeypatch.setattr(demo, "start_elasticjob_operator", lambda _: None)
    yield
    Namespace(cluster, demo.NAMESPACE).delete()


def test_it_ends_with_0_once_it_has_shown_every_step(capsys: pytest.CaptureFixture[str]) -> None:
    status = demo.run()
    shown = capsys.readouterr().out
    assert status == 0, shown
    assert demo.EXPLANATION in shown
    assert "All of it was seen" in shown


def test_it_ends_with_1_and_shows_what_happened_where_a_step_is_not_seen(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(demo, "NAMESPACE", "demo-with-room")
    monkeypatch.setattr(demo, "_DEADLINE_S", 5.0)
    cluster.add_node("gpu-of-others", gpus=4, labels={"nvidia.com/gpu.present": "true"})
    assert demo.run() == 1
    shown = capsys.readouterr().out
    assert "Not seen" in shown
    assert "torch-mnist-gang-edljob-worker-3               1/1     Running" in shown
