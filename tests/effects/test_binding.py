"""A pod is bound, or we know why not, whatever the API server does; and never do we say yes without a Binding."""

import asyncio

import pytest
from aiohttp import web

from extender.apiserver import ApiServer
from extender.effects.binding import Binder, Binding, BindOutcome
from extender.observe.metrics import Metrics
from tests.apiserver_stub import Answer, ApiServerStub, answer, break_off, no_answer
from tests.builders import pod_json, uid_of

POD = "/api/v1/namespaces/default/pods/w0"
BINDING = Binding("default", "w0", uid_of("w0"), "n1", {"gpu": "3"})


@pytest.fixture
async def pending(stub: ApiServerStub) -> ApiServerStub:
    """Return an API server that has the pod, unbound."""
    await stub.put(POD, pod_json("w0"))
    return stub


@pytest.fixture
def binder(api: ApiServer, metrics: Metrics) -> Binder:
    return Binder(api, metrics, first_pause_s=0.01)


async def bind(binder: Binder, within_s: float = 3.0) -> BindOutcome:
    return await binder.bind(BINDING, deadline_s=asyncio.get_running_loop().time() + within_s)


def node_of_pod(stub: ApiServerStub) -> str:
    node: str = stub.objects[POD]["spec"].get("nodeName", "")
    return node


async def test_a_pending_pod_is_bound_in_one_request_with_its_uid_and_annotations(
    pending: ApiServerStub, binder: Binder, metrics: Metrics
) -> None:
    assert await bind(binder) == BindOutcome("bound")
    assert node_of_pod(pending) == "n1"
    [call] = pending.calls
    assert call.body["metadata"] == {"name": "w0", "uid": uid_of("w0"), "annotations": {"gpu": "3"}}
    assert call.body["target"] == {"apiVersion": "v1", "kind": "Node", "name": "n1"}
    assert metrics.registry.get_sample_value("gang_extender_bindings_total", {"result": "bound"}) == 1


async def test_a_pod_on_that_node_already_counts_as_bound(pending: ApiServerStub, binder: Binder) -> None:
    await pending.put(POD, pod_json("w0", spec={"nodeName": "n1"}))
    assert await bind(binder) == BindOutcome("bound")


async def test_a_pod_on_another_node_is_refused_in_the_servers_words(pending: ApiServerStub, binder: Binder) -> None:
    await pending.put(POD, pod_json("w0", spec={"nodeName": "n2"}))
    assert await bind(binder) == BindOutcome("refused", 'pod is already assigned to node "n2"')
    assert len(pending.calls_of("bind")) == 1


async def test_a_pod_that_is_deleted_is_gone(stub: ApiServerStub, binder: Binder) -> None:
    assert (await bind(binder)).result == "gone"
    assert len(stub.calls) == 1


async def test_a_namesake_created_since_is_not_bound(pending: ApiServerStub, binder: Binder) -> None:
    await pending.put(POD, pod_json("w0", metadata={"uid": "another"}))
    assert (await bind(binder)).result == "gone"
    assert node_of_pod(pending) == ""


async def test_a_namesake_that_is_on_the_node_is_not_our_pod(pending: ApiServerStub, binder: Binder) -> None:
    await pending.put(POD, pod_json("w0", metadata={"uid": "another"}, spec={"nodeName": "n1"}))
    assert (await bind(binder)).result == "gone"


async def test_what_the_server_forbids_is_not_tried_again(pending: ApiServerStub, binder: Binder) -> None:
    pending.answer_next("bind", answer(403, "you may not"))
    assert await bind(binder) == BindOutcome("refused", "you may not")
    assert len(pending.calls) == 1


@pytest.mark.parametrize("fault", [answer(500), answer(503), answer(429), break_off])
async def test_what_may_pass_is_tried_again(pending: ApiServerStub, binder: Binder, fault: Answer) -> None:
    pending.answer_next("bind", fault, fault)
    assert (await bind(binder)).is_bound
    assert node_of_pod(pending) == "n1"
    assert len(pending.calls_of("bind")) == 3


async def test_a_busy_server_is_left_alone_for_as_long_as_it_asks(pending: ApiServerStub, binder: Binder) -> None:
    pending.answer_next("bind", answer(429, **{"Retry-After": "1"}))
    assert (await bind(binder, within_s=0.2)).result == "failed"
    assert len(pending.calls_of("bind")) == 1


async def test_a_binding_whose_answer_was_lost_counts(pending: ApiServerStub, binder: Binder) -> None:
    pending.answer_next("bind", pending.act_unheard)
    assert await bind(binder) == BindOutcome("bound")
    assert [call.verb for call in pending.calls] == ["bind", "bind", "get"]


async def test_a_binding_whose_answer_does_not_come_in_time_counts(pending: ApiServerStub, binder: Binder) -> None:
    async def act_and_hang(request: web.Request) -> web.StreamResponse:
        await pending.put(POD, pod_json("w0", spec={"nodeName": "n1"}))
        return await no_answer(request)

    pending.answer_next("bind", act_and_hang)
    assert await bind(binder, within_s=0.1) == BindOutcome("bound")


async def test_a_server_that_does_nothing_in_time_has_failed(pending: ApiServerStub, binder: Binder) -> None:
    pending.answer_next("bind", no_answer)
    assert (await bind(binder, within_s=0.1)).result == "failed"
    assert node_of_pod(pending) == ""


async def test_a_pod_that_is_taken_while_the_server_says_nothing_is_not_bound(
    pending: ApiServerStub, binder: Binder
) -> None:
    pending.answer_next("bind", no_answer)
    await pending.put(POD, pod_json("w0", spec={"nodeName": "n2"}))
    assert not (await bind(binder, within_s=0.1)).is_bound


async def test_without_any_answer_nobody_knows(stopped_stub: ApiServerStub, binder: Binder, metrics: Metrics) -> None:
    assert (await bind(binder, within_s=0.1)).result == "unknown"
    assert stopped_stub.calls == []
    assert metrics.registry.get_sample_value("gang_extender_bindings_total", {"result": "unknown"}) == 1


async def test_a_conflict_that_cannot_be_looked_into_is_not_a_yes(pending: ApiServerStub, binder: Binder) -> None:
    await pending.put(POD, pod_json("w0", spec={"nodeName": "n1"}))
    pending.answer_next("get", answer(403, "you may not"))
    assert (await bind(binder)).result == "unknown"


async def test_a_gang_is_bound_together_a_few_members_at_a_time(
    stub: ApiServerStub, api: ApiServer, metrics: Metrics
) -> None:
    names = [f"w{number}" for number in range(50)]
    for name in names:
        await stub.put(f"/api/v1/namespaces/default/pods/{name}", pod_json(name))

    async def act_slowly(request: web.Request) -> web.StreamResponse:
        await asyncio.sleep(0.01)
        return await stub.act(request)

    stub.answer_next("bind", *[act_slowly] * len(names))
    binder = Binder(api, metrics)
    deadline_s = asyncio.get_running_loop().time() + 3
    bindings = [Binding("default", name, uid_of(name), "n1") for name in names]
    outcomes = await asyncio.gather(*(binder.bind(binding, deadline_s=deadline_s) for binding in bindings))
    assert all(outcome.is_bound for outcome in outcomes)
    assert 1 < stub.most_at_once["bind"] <= 16
