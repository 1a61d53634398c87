"""Do gangs that are packed serve a day's jobs better? A short part of the bench, with the same stream every time."""

import zlib
from functools import cache
from itertools import pairwise
from pathlib import Path
from random import Random
from statistics import fmean, median

import pytest

from e2e.bench.bar_chart import draw_bars
from e2e.bench.job_placers import PLACERS
from e2e.bench.report import percentile, table
from e2e.bench.stream import GPUS, REMOTE_SPEED, Outcome, measure_stream, play
from e2e.bench.training_jobs import COMPRESSION, Job, draw_jobs

OURS, SPREAD, POD_BY_POD = "gang, packed (ours)", "gang, spread", "pods, spread"


@cache
def played(placer: str) -> Outcome:
    return play(draw_jobs(Random("short"), 300), PLACERS[placer], nodes=8)  # noqa: S311 - chance that can be repeated


def test_the_same_seed_gives_the_same_table() -> None:
    first, second = (table(list(measure_stream(nodes=[8], jobs=60, seeds=[7]))) for _ in range(2))
    other = table(list(measure_stream(nodes=[8], jobs=60, seeds=[8])))
    assert first == second != other


@pytest.mark.parametrize("placer", sorted(PLACERS.keys() - {POD_BY_POD}))
def test_a_gang_never_holds_gpus_that_it_cannot_use_and_all_become_whole(placer: str) -> None:
    assert played(placer).idle_gpu_s == pytest.approx(0)
    assert played(placer).never_whole == 0


def test_gangs_that_are_packed_get_no_less_done_and_sit_no_farther_apart_than_those_that_are_spread() -> None:
    ours, spread = played(OURS), played(SPREAD)
    assert ours.useful >= spread.useful
    assert ours.across_nodes <= spread.across_nodes
    assert ours.across_racks <= spread.across_racks


@pytest.mark.parametrize("placer", [OURS, "ours, rack preferred"])
def test_hardly_a_worker_of_ours_is_apart_from_its_parameter_server_without_need(placer: str) -> None:
    ours = played(placer)
    assert ours.across_at_least <= ours.across_nodes <= ours.across_at_least + 0.05


def test_two_jobs_that_each_hold_a_part_wait_for_ever_unless_they_are_gangs() -> None:
    small = [Job(0, at=0, workers=1, runtime_s=10), Job(1, at=0, workers=1, runtime_s=11)]
    elder = Job(2, at=1, workers=GPUS, runtime_s=10)
    younger = Job(3, at=10.5, workers=GPUS, runtime_s=10)  # gets what is free at 11: the elder backs off longer
    deadlock = play([*small, elder, younger], PLACERS[POD_BY_POD], nodes=1)
    assert deadlock.never_whole == 2
    assert deadlock.idle_gpu_s == pytest.approx(2 * 9 + 3 * 0.5)
    assert play([*small, elder, younger], PLACERS[POD_BY_POD], nodes=1, longest_backoff_s=0).never_whole == 0
    for placer in PLACERS.keys() - {POD_BY_POD}:
        assert play([*small, elder, younger], PLACERS[placer], nodes=1).never_whole == 0


def test_a_worker_apart_from_its_parameter_server_slows_its_job_down() -> None:
    job = Job(0, at=1, workers=2 * GPUS, runtime_s=90)
    outcome = play([job], PLACERS[OURS], nodes=2)
    assert outcome.across_nodes == 0.5
    assert outcome.completion_s == pytest.approx((90 / (0.5 + 0.5 * REMOTE_SPEED),))


def test_the_jobs_are_like_the_traces() -> None:
    jobs = [job for seed in range(20) for job in draw_jobs(Random(seed), 1158)]  # noqa: S311 - as above
    streams = [jobs[start : start + 1158] for start in range(0, len(jobs), 1158)]
    between = [later.at - job.at for stream in streams for job, later in pairwise(stream)]
    assert fmean(between) == pytest.approx(74.5, rel=0.05)
    assert (median(between), percentile(between, 90)) == pytest.approx((35, 196), rel=0.1)
    of_eight = [job.runtime_s * COMPRESSION for job in jobs if job.workers == 8]
    assert [percentile(of_eight, p) for p in (25, 50, 75, 90)] == pytest.approx([480, 3900, 14520, 174180], rel=0.15)
    load = fmean(sum(job.workers * job.runtime_s for job in stream) / stream[-1].at for stream in streams)
    assert load == pytest.approx(1186 / COMPRESSION, rel=0.1)


def test_the_chart_is_a_png_with_a_bar_as_long_as_its_value(tmp_path: Path) -> None:
    path = tmp_path / "bars.png"
    draw_bars(path, [{"rule": "a", "x %": 1.0}, {"rule": "b", "x %": 4.0}], ["rule"])
    data = path.read_bytes()
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    start = data.index(b"IDAT") + 4
    pixels = zlib.decompress(data[start : start + int.from_bytes(data[start - 8 : start - 4], "big")])
    first, second = (pixels.count(bytes(colour)) for colour in ((213, 94, 0), (230, 159, 0)))
    assert second == pytest.approx(4 * first, rel=0.1)
