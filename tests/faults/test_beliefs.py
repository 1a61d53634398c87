"""Posts against better knowledge are told of, and those that could not be helped are not."""

import pytest

from e2e.client import Object
from e2e.faults.beliefs import Beliefs
from e2e.nodes import make_node

POD: Object = {"metadata": {"name": "p", "namespace": "a", "uid": "u"}, "spec": {"containers": []}}
FREE, CORDONED = make_node("n"), {**make_node("n"), "spec": {"unschedulable": True}}


@pytest.fixture
def beliefs() -> Beliefs:
    beliefs = Beliefs()
    beliefs.tell("n", FREE, 0)
    return beliefs


def against(beliefs: Beliefs) -> list[str]:
    return list(beliefs.against({"u": POD}))


def test_a_post_long_after_it_was_told_of_the_cordon_is_wrong(beliefs: Beliefs) -> None:
    beliefs.tell("n", CORDONED, 10)
    beliefs.post("u", "n", 11.5)
    assert len(against(beliefs)) == 1


def test_a_post_just_after_or_before_it_was_told_or_once_the_node_is_free_again_is_not(beliefs: Beliefs) -> None:
    beliefs.post("u", "n", 9)
    assert against(beliefs) == []
    beliefs.tell("n", CORDONED, 40)
    beliefs.post("u", "n", 40.5)
    assert against(beliefs) == []
    beliefs.tell("n", FREE, 70)
    beliefs.post("u", "n", 70.2)
    assert against(beliefs) == []


def test_what_is_tried_again_was_decided_before_but_a_new_post_is_not(beliefs: Beliefs) -> None:
    beliefs.post("u", "n", 9)
    beliefs.tell("n", CORDONED, 10)
    beliefs.post("u", "n", 20)
    assert against(beliefs) == []
    beliefs.post("u", "n", 60)
    assert len(against(beliefs)) == 1


def test_a_node_that_a_list_does_not_name_any_more_is_gone(beliefs: Beliefs) -> None:
    beliefs.tell_all({}, 10)
    beliefs.post("u", "n", 20)
    assert len(against(beliefs)) == 1
