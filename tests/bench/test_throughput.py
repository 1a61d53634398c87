"""What the bench of throughput makes of what it was told."""

from pathlib import Path

from e2e.bench.expenses import MachineTime, machine_time, writes_counted
from e2e.bench.report import Row, medians
from e2e.bench.sightings import Sightings
from e2e.bench.throughput import Outcome, Shape, speed

METRICS = """\
# TYPE apiserver_request_total counter
apiserver_request_total{code="201",dry_run="",resource="pods",subresource="",verb="POST"} 20
apiserver_request_total{code="201",dry_run="",resource="pods",subresource="binding",verb="POST"} 20
apiserver_request_total{code="201",dry_run="",resource="events",subresource="",verb="POST"} 3
apiserver_request_total{code="200",dry_run="",resource="pods",subresource="status",verb="PATCH"} 1e+03
apiserver_request_total{code="409",dry_run="",resource="pods",subresource="binding",verb="POST"} 7
apiserver_request_total{code="201",dry_run="All",resource="pods",subresource="",verb="POST"} 7
apiserver_request_total{code="200",dry_run="",resource="pods",subresource="",verb="DELETE"} 7
apiserver_request_total{code="200",dry_run="",resource="pods",subresource="",verb="LIST"} 7
apiserver_request_total{code="200",dry_run="",resource="leases",subresource="",verb="PUT"} 7
"""


def test_writes_are_those_that_succeeded_and_are_about_pods() -> None:
    assert writes_counted(METRICS) == 20 + 20 + 3 + 1000


def test_the_clock_runs_from_the_first_write_to_the_last_pod_bound() -> None:
    outcome = Outcome(
        bound=8, stolen_percent=7, begun_s={"a": 10, "b": 11}, whole_s={"a": 14, "b": 12}, nodes={"a": 1, "b": 1}
    )
    figures = {"pods/s": 2, "bound": 8, "stolen %": 7, "whole p50 s": 2.5, "whole p99 s": 3.97}
    assert speed(outcome) == figures


def test_stolen_is_what_the_host_took_of_the_time_between() -> None:
    before, after = MachineTime(all_ticks=1000, stolen_ticks=300), MachineTime(all_ticks=1400, stolen_ticks=360)
    assert after.stolen_percent_since(before) == 15
    assert 0 <= machine_time().stolen_percent_since(MachineTime(0, 0)) < 100


def test_of_several_rounds_the_medians_are_shown_and_the_range_of_one_figure() -> None:
    rows: list[Row] = [
        {"contender": name, "round": str(number), "pods/s": speed, "MiB": 5.0}
        for number, speeds in enumerate([(3.0, 30.0), (1.0, 20.0), (2.0, 10.0)])
        for name, speed in zip(("plain", "ours"), speeds, strict=True)
    ]
    assert medians(rows, ["contender"], "pods/s") == [
        {"contender": "plain", "pods/s": 2, "least pods/s": 1, "most pods/s": 3, "MiB": 5},
        {"contender": "ours", "pods/s": 20, "least pods/s": 10, "most pods/s": 30, "MiB": 5},
    ]


def test_what_is_seen_is_read_as_it_is_written_even_by_halves(tmp_path: Path) -> None:
    file = tmp_path / "log"
    file.write_text("watching\n1.5 gang-0-0 node-1\n2.5 gang-0")
    seen = Sightings(file)
    assert seen.read() == {"gang-0-0": 1.5}
    with file.open("a") as more:
        more.write("-1 node-2\n")
    assert seen.read() == {"gang-0-0": 1.5, "gang-0-1": 2.5}
    assert seen.node == {"gang-0-0": "node-1", "gang-0-1": "node-2"}
    seen.close()


def test_shapes_are_gangs_and_their_members() -> None:
    assert Shape.of("50x20") == Shape(gangs=50, members=20)
    assert str(Shape(50, 20)) == "50x20"
