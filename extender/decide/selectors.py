"""Whether labels match a selector: a node's (and its name) what a pod selects nodes by, a pod's what selects pods.

Mirrors k8s.io/component-helpers/scheduling/corev1/nodeaffinity (GetRequiredNodeAffinity) and apimachinery's labels: a
requirement that does not parse there (no values for In, text for Gt, ...) makes its whole term match nothing.
"""

from collections.abc import Iterable, Mapping

from extender.model.node import Node
from extender.model.pod import LabelSelector, NodeSelectorTerm, PodShape, Requirement

_INT64_MAX = 2**63 - 1
_LABEL_LENGTH = 63
"""Characters that a label's value may have; what is longer is none."""


def selects_node(shape: PodShape, node: Node) -> bool:
    """Whether the node has all labels of the node selector and matches one of the required terms, if there are any."""
    labels = node.labels
    for key, value in shape.node_selector:
        if labels.get(key) != value:
            return False
    return shape.required_terms is None or matches_any(shape.required_terms, node)


def matches_any(terms: Iterable[NodeSelectorTerm], node: Node) -> bool:
    """Whether the node matches one of the terms."""
    return any(_term_matches(term, node) for term in terms)


def selects_labels(selector: LabelSelector, labels: Mapping[str, str]) -> bool:
    """Whether the selector selects an object with these labels."""
    if selector is None:
        return False
    for requirement in selector:  # noqa: SIM110 - all() would make a generator per call
        if not _labels_match(requirement, labels):
            return False
    return True


def _term_matches(term: NodeSelectorTerm, node: Node) -> bool:
    for requirement in term.fields:
        if not _field_matches(requirement, node):
            return False
    for requirement in term.expressions:
        if not _labels_match(requirement, node.labels):
            return False
    return bool(term.expressions or term.fields)  # an empty term matches nothing


def _labels_match(requirement: Requirement, labels: Mapping[str, str]) -> bool:
    value = labels.get(requirement.key)
    wanted = requirement.values
    match requirement.operator:
        case "In":
            return value is not None and value in wanted
        case "NotIn":
            return bool(wanted) and value not in wanted
        case "Exists":
            return value is not None and not wanted
        case "DoesNotExist":
            return value is None and not wanted
        case "Gt" | "Lt":
            return value is not None and len(wanted) == 1 and _compares(value, requirement.operator, wanted[0])
        case _:
            return False


def _compares(value: str, operator: str, bound: str) -> bool:
    number, limit = _int64(value), _int64(bound)
    if number is None or limit is None:
        return False
    return number > limit if operator == "Gt" else number < limit


def _int64(text: str) -> int | None:
    """Return the number as Go's strconv.ParseInt(text, 10, 64) does; None where that is an error."""
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not (digits.isascii() and digits.isdigit()) or len(digits) > _LABEL_LENGTH:
        return None
    number = int(text)
    return number if -_INT64_MAX - 1 <= number <= _INT64_MAX else None


def _field_matches(requirement: Requirement, node: Node) -> bool:
    if len(requirement.values) != 1:
        return False
    actual = node.name if requirement.key == "metadata.name" else ""
    match requirement.operator:
        case "In":
            return actual == requirement.values[0]
        case "NotIn":
            return actual != requirement.values[0]
        case _:
            return False
