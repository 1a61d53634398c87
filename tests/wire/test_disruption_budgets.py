"""PodDisruptionBudgets as the API server sends them become the model's."""

import json
from typing import Any

from msgspec import Raw

from extender.model.disruption_budget import DisruptionBudget
from extender.model.pod import Requirement
from extender.wire.kube import DISRUPTION_BUDGETS

SELECTOR = {
    "matchLabels": {"app": "db"},
    "matchExpressions": [{"key": "tier", "operator": "NotIn", "values": ["x"]}],
}


def read(**parts: Any) -> DisruptionBudget:
    metadata = {"name": "b", "namespace": "team", "uid": "u", "resourceVersion": "7"}
    return DISRUPTION_BUDGETS.read(Raw(json.dumps({"metadata": metadata, **parts}).encode())).object


def test_a_budget_is_what_its_controller_last_saw() -> None:
    spec = {"selector": SELECTOR, "minAvailable": "50%", "unhealthyPodEvictionPolicy": "AlwaysAllow"}
    status = {
        "disruptionsAllowed": 2,
        "disruptedPods": {"db0": "2026-01-02T03:04:05Z"},
        "currentHealthy": 4,
        "conditions": [{"type": "DisruptionAllowed", "status": "True"}],
    }
    selector = (Requirement("app", "In", ("db",)), Requirement("tier", "NotIn", ("x",)))
    assert read(spec=spec, status=status) == DisruptionBudget("team", "b", selector, 2, frozenset({"db0"}))


def test_a_budget_that_no_controller_has_seen_allows_nothing() -> None:
    fresh = read(spec={"selector": {}}, status={"disruptedPods": None})
    assert fresh == DisruptionBudget("team", "b", (), 0)
    assert read() == DisruptionBudget("team", "b")
