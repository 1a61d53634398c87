"""What is read of PodDisruptionBudgets (policy/v1)."""

from msgspec import Struct

from extender.model.disruption_budget import DisruptionBudget
from extender.wire.core_v1 import LabelSelector, ObjectMeta
from extender.wire.label_selector import selector_of


class _Wire(Struct, frozen=True, gc=False, rename="camel"):
    pass


class BudgetSpec(_Wire, frozen=True):
    """`spec` of a PodDisruptionBudget; its controller turns the rest of it into the status."""

    selector: LabelSelector | None = None


class BudgetStatus(_Wire, frozen=True):
    """`status` of a PodDisruptionBudget."""

    disruptions_allowed: int = 0
    disrupted_pods: dict[str, str] | None = None


class PodDisruptionBudget(_Wire, frozen=True):
    """A v1 PodDisruptionBudget."""

    metadata: ObjectMeta
    spec: BudgetSpec = BudgetSpec()
    status: BudgetStatus = BudgetStatus()


def disruption_budget_of(budget: PodDisruptionBudget) -> DisruptionBudget:
    """Return the budget as its controller last saw it."""
    meta, status = budget.metadata, budget.status
    return DisruptionBudget(
        namespace=meta.namespace,
        name=meta.name,
        selector=selector_of(budget.spec.selector),
        disruptions_allowed=status.disruptions_allowed,
        disrupted=frozenset(status.disrupted_pods or ()),
    )
