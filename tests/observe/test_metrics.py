"""What /metrics shows."""

import re
from pathlib import Path

from prometheus_client import generate_latest

from extender.observe.metrics import Metrics

README = Path(__file__).parents[2] / "README.md"


def test_every_metric_is_ours_by_name_and_says_what_it_is(metrics: Metrics) -> None:
    found = list(metrics.registry.collect())
    assert all(metric.name.startswith("gang_extender_") and metric.documentation.endswith(".") for metric in found)
    assert len(found) >= 11


def test_the_readme_names_every_metric_and_no_other(metrics: Metrics) -> None:
    suffixes = {"counter": "_total", "info": "_info"}
    found = {metric.name + suffixes.get(metric.type, "") for metric in metrics.registry.collect()}
    assert set(re.findall(r"gang_extender_\w+", README.read_text())) == found


def test_what_is_counted_can_be_read(metrics: Metrics) -> None:
    metrics.verb_duration.labels("filter", "accepted").observe(0.0004)
    metrics.watch_reconnects.labels("pods", "expired").inc()
    text = generate_latest(metrics.registry).decode()
    assert 'gang_extender_build_info{python="' in text
    assert 'gang_extender_verb_duration_seconds_bucket{le="0.001",result="accepted",verb="filter"} 1.0' in text
    assert 'gang_extender_watch_reconnects_total{reason="expired",resource="pods"} 1.0' in text


def test_two_sets_of_metrics_do_not_mix() -> None:
    one, other = Metrics("1"), Metrics("2")
    one.held_binds.inc()
    assert other.registry.get_sample_value("gang_extender_held_binds") == 0
