"""Whose deaths would break a PodDisruptionBudget: judged as kube-scheduler judges victims."""

from extender.decide.budgets import violating
from extender.model.disruption_budget import DisruptionBudget
from extender.model.pod import LabelSelector, Pod, Requirement
from tests.builders import a_pod

DB = (Requirement("app", "In", ("db",)),)


def a_budget(
    allowed: int, *, selector: LabelSelector = DB, namespace: str = "default", name: str = "b", disrupted: str = ""
) -> DisruptionBudget:
    return DisruptionBudget(namespace, name, selector, allowed, frozenset(disrupted.split()))


def dbs(count: int, namespace: str = "default") -> list[Pod]:
    return [a_pod(f"db{i}", namespace=namespace, labels={"app": "db"}) for i in range(count)]


def names(pods: list[Pod], *budgets: DisruptionBudget) -> list[str]:
    exceeded = violating(pods, budgets)
    return [pod.name for pod in pods if pod.uid in exceeded]


def test_as_many_may_die_as_the_budget_allows_and_the_order_says_which() -> None:
    pods = dbs(3)
    assert names(pods, a_budget(2)) == ["db2"]
    assert names(pods[::-1], a_budget(2)) == ["db0"]
    assert names(pods, a_budget(0)) == ["db0", "db1", "db2"]
    assert names(pods) == []


def test_only_pods_that_the_budget_selects_in_its_own_namespace_count() -> None:
    other = a_pod("web", labels={"app": "web"})
    assert names([other, *dbs(1), *dbs(1, "far")], a_budget(0)) == ["db0"]


def test_a_pod_without_labels_breaks_no_budget() -> None:
    assert names([a_pod("bare")], a_budget(0, selector=(Requirement("app", "DoesNotExist"),))) == []


def test_a_budget_without_a_selector_or_with_an_empty_one_is_about_nobody() -> None:
    assert names(dbs(1), a_budget(0, selector=None), a_budget(0, selector=())) == []


def test_a_pod_that_is_counted_as_disrupted_is_not_counted_again() -> None:
    assert names(dbs(3), a_budget(1, disrupted="db0")) == ["db2"]


def test_a_pod_under_two_budgets_uses_both_up_and_breaks_either() -> None:
    assert names(dbs(3), a_budget(1, name="strict"), a_budget(2, name="lax")) == ["db1", "db2"]
    web = a_pod("web", labels={"app": "web"})
    all_apps = a_budget(1, name="all", selector=(Requirement("app", "Exists"),))
    assert names([*dbs(2), web], a_budget(0), all_apps) == ["db0", "db1", "web"]
