"""Which of these pods' deaths would break a PodDisruptionBudget?

Mirrors filterPodsWithPDBViolation of kube-scheduler's DefaultPreemption, by which it tells better victims from worse.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable

from extender.decide.selectors import selects_labels
from extender.model.disruption_budget import DisruptionBudget
from extender.model.pod import Pod, PodUid


def violating(pods: Iterable[Pod], budgets: Iterable[DisruptionBudget]) -> set[PodUid]:
    """Return those of the pods that would exceed a budget if all were killed in this order.

    A pod that a budget counts as disrupted already costs nothing there, and one that exceeds it still uses it up.
    """
    by_namespace: dict[str, list[DisruptionBudget]] = defaultdict(list)
    for budget in budgets:
        if budget.selector:  # one that is empty selects nothing here, though elsewhere it selects everything
            by_namespace[budget.namespace].append(budget)
    used: Counter[str] = Counter()
    exceeded = set()
    for pod in pods:
        for budget in by_namespace.get(pod.namespace, ()) if pod.labels else ():
            if pod.name not in budget.disrupted and selects_labels(budget.selector, pod.labels):
                used[budget.key] += 1
                if used[budget.key] > budget.disruptions_allowed:
                    exceeded.add(pod.uid)
    return exceeded
