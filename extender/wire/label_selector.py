"""How a label selector is read. Mirrors LabelSelectorAsSelector of apimachinery."""

from extender.model.pod import LabelSelector, Requirement
from extender.wire import core_v1


def selector_of(selector: core_v1.LabelSelector | None) -> LabelSelector:
    """Return what it asks of labels; one that is absent selects nothing, an empty one everything."""
    if selector is None:
        return None
    exact = [Requirement(key, "In", (value,)) for key, value in sorted((selector.match_labels or {}).items())]
    return (*exact, *(selector.match_expressions or ()))
