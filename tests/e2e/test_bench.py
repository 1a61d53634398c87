"""The benches, for a few seconds each: do they count, and is nothing badly wrong? By counts and generous bounds."""

import time
from pathlib import Path

import orjson
import pytest

from e2e.bench.churn import updated
from e2e.bench.contenders import CONTENDERS
from e2e.bench.full_cluster import measure_full_cluster
from e2e.bench.report import Row, percentile, table, write
from e2e.bench.throughput import Shape, measure_throughput
from e2e.bench.time_to_whole import EVENTS, Waits, measure_time_to_whole
from e2e.bench.waiting_load import filter_calls, measure_waiting_load
from e2e.cluster import EXTENDER, GANG_SCHEDULER, Cluster, Namespace

LOOP = 10.0
"""Filter calls a second for each pod that waits: one whose text flaps is asked for sixty times a second."""

LONGER_THAN_BACKOFF_S = 12.0
"""Within it kube-scheduler tries each pod again that an event wakes."""


def test_pods_that_wait_are_asked_for_again_and_not_in_a_loop(cluster: Cluster, namespace: Namespace) -> None:
    load = measure_waiting_load(cluster, namespace, pods=20, for_s=5, updates_per_s=5)
    assert 0 < load.filter_calls_per_s < LOOP * load.waiting


def test_what_pods_that_wait_are_told_stays_the_same_however_often_they_are_tried(
    cluster: Cluster, namespace: Namespace
) -> None:
    load = measure_waiting_load(cluster, namespace, pods=20, for_s=2, updates_per_s=5)
    before = told(namespace)
    assert len({pod for pod, _ in before}) == load.waiting
    calls = filter_calls(cluster)
    with updated(namespace, "running", 5):
        time.sleep(LONGER_THAN_BACKOFF_S)
    assert filter_calls(cluster) > calls + load.waiting, "they were tried again"
    assert told(namespace) == before


def told(namespace: Namespace) -> set[tuple[str, str]]:
    """Return who was told what, by kube-scheduler or by the extender."""
    path = f"{namespace.path}/events?fieldSelector=reason%3DFailedScheduling"
    return {(each["involvedObject"]["name"], each["message"]) for each in namespace.cluster.api.get(path)["items"]}


def test_pods_that_wait_in_a_quiet_cluster_are_left_alone(cluster: Cluster, namespace: Namespace) -> None:
    load = measure_waiting_load(cluster, namespace, pods=20, for_s=5, updates_per_s=0)
    assert load.filter_calls <= load.waiting


@pytest.mark.parametrize("event", EVENTS)
def test_a_gang_is_whole_soon_after_what_it_lacked_has_come(cluster: Cluster, namespace: Namespace, event: str) -> None:
    seconds = measure_time_to_whole(
        cluster, namespace, event=event, tries=3, seed=1, waits=Waits(0.2, 1.0), updates_per_s=5
    )
    assert len(seconds) == 3
    assert 0 < percentile(seconds, 50) < 5


@pytest.mark.controlplane
@pytest.mark.timeout(240)
def test_contenders_bind_the_same_gangs_in_turn_and_each_pays_for_its_own_writes() -> None:
    names = ("plain", "no-op", "hold")
    shape, members = Shape(2, 3), 6
    measured = measure_throughput(
        {name: CONTENDERS[name] for name in names}, shapes=[shape], nodes=[20], arrivals=["burst"], rounds=1
    )
    plain, no_op, hold = ({key: row[key] for key in row} for row in measured)
    assert [row["contender"] for row in (plain, no_op, hold)] == list(names)
    assert plain["writes/pod"] == 3, "the pod, its binding, and the event that says so"
    assert float(hold["writes/pod"]) >= 4, "and the gate that is taken off"
    assert (plain["filters/pod"], no_op["filters/pod"]) == (0, 1)
    assert plain["extender MiB"] == 0 < float(hold["extender MiB"])
    assert float(hold["nodes/gang"]) == 1, f"{shape.members} members go on one node"
    assert all(row["bound"] == members and float(row["pods/s"]) > members / 60 for row in (plain, no_op, hold))


@pytest.mark.controlplane
@pytest.mark.timeout(240)
def test_both_start_on_a_full_cluster_in_turn_and_bind_gangs_there() -> None:
    rows = list(measure_full_cluster(nodes=20, pods_per_node=3, rounds=1))
    assert [row["process"] for row in rows] == [GANG_SCHEDULER, EXTENDER]
    for row in rows:
        assert row["pods"] == "60"
        assert 0 < float(row["CPU s until ready"]) < 2 * float(row["ready s"])
        assert float(row["MiB"]) > 10


def test_figures_are_shown_under_each_other_and_kept(tmp_path: Path) -> None:
    rows: list[Row] = [{"event": "node added", "p50 s": 0.25}, {"event": "room freed", "p50 s": 10.0}]
    assert table(rows) == "event       p50 s\nnode added  0.25 \nroom freed  10   "
    write(tmp_path / "figures.json", rows)
    assert orjson.loads((tmp_path / "figures.json").read_bytes()) == rows


def test_percentiles() -> None:
    hundred_and_one = [float(number) for number in range(101)]
    assert [percentile(hundred_and_one, percent) for percent in (50, 99)] == [50, 99]
    assert percentile([3.0], 99) == 3
