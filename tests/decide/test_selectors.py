"""Node selectors and required node affinity, as kube-scheduler matches them."""

import pytest

from extender.decide.selectors import selects_node
from extender.model.pod import NodeSelectorTerm, Requirement
from tests.builders import a_node, a_shape

NODE = a_node("n1", labels={"zone": "a", "cores": "8", "empty": "", "word": "eight", "huge": "9223372036854775808"})


@pytest.mark.parametrize(
    ("selector", "selected"),
    [
        ({}, True),
        ({"zone": "a"}, True),
        ({"zone": "a", "cores": "8"}, True),
        ({"zone": "a", "cores": "9"}, False),
        ({"empty": ""}, True),
        ({"absent": ""}, False),
    ],
)
def test_the_node_selector_wants_every_label(selector: dict[str, str], *, selected: bool) -> None:
    assert selects_node(a_shape(node_selector=selector), NODE) == selected


@pytest.mark.parametrize(
    ("key", "operator", "values", "matched"),
    [
        ("zone", "In", ("b", "a"), True),
        ("zone", "In", ("b",), False),
        ("zone", "In", (), False),
        ("absent", "In", ("a",), False),
        ("zone", "NotIn", ("a",), False),
        ("zone", "NotIn", ("b",), True),
        ("absent", "NotIn", ("b",), True),
        ("zone", "NotIn", (), False),
        ("empty", "Exists", (), True),
        ("absent", "Exists", (), False),
        ("zone", "Exists", ("a",), False),
        ("absent", "DoesNotExist", (), True),
        ("empty", "DoesNotExist", (), False),
        ("absent", "DoesNotExist", ("a",), False),
        ("cores", "Gt", ("7",), True),
        ("cores", "Gt", ("8",), False),
        ("cores", "Gt", ("-1",), True),
        ("cores", "Lt", ("+10",), True),
        ("cores", "Lt", ("8",), False),
        ("cores", "Lt", ("9223372036854775807",), True),
        ("cores", "Lt", ("9223372036854775808",), False),
        ("huge", "Gt", ("1",), False),
        ("word", "Gt", ("1",), False),
        ("absent", "Lt", ("1",), False),
        ("cores", "Gt", ("7", "6"), False),
        ("cores", "Gt", (), False),
        ("cores", "Gt", ("7.5",), False),
        ("cores", "Gt", ("\u0667",), False),
        ("cores", "Gt", ("1" * 5000,), False),
        ("zone", "Like", ("a",), False),
    ],
)
def test_a_requirement_on_labels(key: str, operator: str, values: tuple[str, ...], *, matched: bool) -> None:
    term = NodeSelectorTerm(expressions=(Requirement(key, operator, values),))
    assert selects_node(a_shape(required_terms=(term,)), NODE) == matched


@pytest.mark.parametrize(
    ("key", "operator", "values", "matched"),
    [
        ("metadata.name", "In", ("n1",), True),
        ("metadata.name", "In", ("n2",), False),
        ("metadata.name", "In", ("n1", "n2"), False),
        ("metadata.name", "NotIn", ("n2",), True),
        ("metadata.name", "NotIn", ("n1",), False),
        ("metadata.name", "NotIn", (), False),
        ("metadata.name", "Exists", (), False),
        ("metadata.name", "Exists", ("n1",), False),
        ("metadata.uid", "In", ("n1",), False),
    ],
)
def test_a_requirement_on_the_name(key: str, operator: str, values: tuple[str, ...], *, matched: bool) -> None:
    term = NodeSelectorTerm(fields=(Requirement(key, operator, values),))
    assert selects_node(a_shape(required_terms=(term,)), NODE) == matched


IN_A = Requirement("zone", "In", ("a",))
IN_B = Requirement("zone", "In", ("b",))
BY_NAME = Requirement("metadata.name", "In", ("n1",))
OTHER_NAME = Requirement("metadata.name", "In", ("n2",))


@pytest.mark.parametrize(
    ("terms", "selected"),
    [
        ((), False),
        ((NodeSelectorTerm(),), False),
        ((NodeSelectorTerm(), NodeSelectorTerm((IN_A,))), True),
        ((NodeSelectorTerm((IN_B,)), NodeSelectorTerm((IN_A,))), True),
        ((NodeSelectorTerm((IN_A, IN_B)),), False),
        ((NodeSelectorTerm((IN_A,), (BY_NAME,)),), True),
        ((NodeSelectorTerm((IN_A,), (OTHER_NAME,)),), False),
        ((NodeSelectorTerm((IN_B,), (BY_NAME,)),), False),
    ],
)
def test_one_term_must_match_whole_and_an_empty_one_matches_nothing(
    terms: tuple[NodeSelectorTerm, ...], *, selected: bool
) -> None:
    assert selects_node(a_shape(required_terms=terms), NODE) == selected


def test_selector_and_affinity_must_both_match() -> None:
    matching = (NodeSelectorTerm((IN_A,)),)
    assert selects_node(a_shape(node_selector={"zone": "a"}, required_terms=matching), NODE)
    assert not selects_node(a_shape(node_selector={"zone": "b"}, required_terms=matching), NODE)
