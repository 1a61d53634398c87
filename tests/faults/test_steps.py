"""Which messages are the steps of a gang's life?"""

from typing import Any

import pytest

from e2e.cluster import EXTENDER, GANG_SCHEDULER
from e2e.faults.steps import API_SERVER, Kind, Life, Side, Step
from extender.model.pod import HOLD_GATE


def pod(name: str, node: str = "", *, held: bool = False) -> dict[str, Any]:
    gates = {"schedulingGates": [{"name": HOLD_GATE}]} if held else {}
    return {"metadata": {"name": name}, "spec": ({"nodeName": node} if node else {}) | gates}


def test_a_step_is_read_as_it_is_written() -> None:
    assert Step.parse("binding-answer-2") == Step("binding", "answer", 2)
    assert str(Step("binding", "answer", 2)) == "binding-answer-2"


@pytest.mark.parametrize(
    "name", ["binding-answer", "binding-event-1", "bound-answer-1", "lunch-answer-1", "bind-answer-x"]
)
def test_what_is_no_step_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        Step.parse(name)


@pytest.mark.parametrize(
    ("kind", "side", "sender", "receiver"),
    [
        ("filter", "request", GANG_SCHEDULER, EXTENDER),
        ("bind", "answer", EXTENDER, GANG_SCHEDULER),
        ("binding", "request", EXTENDER, API_SERVER),
        ("nomination", "answer", API_SERVER, EXTENDER),
        ("bound", "event", API_SERVER, EXTENDER),
    ],
)
def test_a_step_says_who_has_sent_what_whom(kind: Kind, side: Side, sender: str, receiver: str) -> None:
    step = Step(kind, side, 1)
    assert (step.sender, step.receiver) == (sender, receiver)


def test_a_step_is_described_in_words() -> None:
    assert Step("binding", "request", 2).describe() == "2nd Binding is sent, before the API server gets it"
    assert Step("bind", "answer", 4).describe() == "4th bind call was done, before kube-scheduler hears"


def test_a_watch_tells_of_a_member_that_it_exists_then_that_it_may_run_then_that_it_is_bound() -> None:
    life = Life(frozenset({"a-0"}))
    told = [life.kind_of_event(each) for each in (pod("a-0", held=True), pod("a-0"), pod("a-0"), pod("a-0", "n"))]
    assert told == ["added", "ungated", None, "bound"]


def test_messages_of_a_kind_are_counted() -> None:
    life = Life(frozenset({"a-0"}))
    assert [str(life.take("filter", "request")) for _ in range(2)] == ["filter-request-1", "filter-request-2"]
    assert str(life.take("filter", "answer")) == "filter-answer-1"
    assert life.count("filter", "request") == 2
