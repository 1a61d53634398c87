"""A PodDisruptionBudget: how many of the pods that it selects may be killed now."""

from msgspec import Struct

from extender.model.pod import LabelSelector


class DisruptionBudget(Struct, frozen=True):
    """One budget: `disruptions_allowed` more pods may go. The pods `disrupted`, by name, were counted, though there."""

    namespace: str
    name: str
    selector: LabelSelector = None
    disruptions_allowed: int = 0
    disrupted: frozenset[str] = frozenset()

    @property
    def key(self) -> str:
        """Return `namespace/name`."""
        return budget_key(self.namespace, self.name)


def budget_key(namespace: str, name: str) -> str:
    """Return the key of a budget."""
    return f"{namespace}/{name}"
