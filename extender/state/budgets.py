"""Which PodDisruptionBudgets are there?

No gang is planned anew for them: they choose among victims, and never forbid one.
"""

from collections.abc import Collection, Iterable

from extender.model.disruption_budget import DisruptionBudget


class Budgets:
    """By their key."""

    def __init__(self) -> None:
        self._by_key: dict[str, DisruptionBudget] = {}

    def values(self) -> Collection[DisruptionBudget]:
        """Return them all."""
        return self._by_key.values()

    def replace(self, budgets: Iterable[DisruptionBudget]) -> None:
        """Take a full list."""
        self._by_key = {budget.key: budget for budget in budgets}

    def upsert(self, budget: DisruptionBudget) -> None:
        """Add or change one."""
        self._by_key[budget.key] = budget

    def remove(self, key: str) -> None:
        """Forget one."""
        self._by_key.pop(key, None)
