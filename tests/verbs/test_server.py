"""The HTTP side: what kube-scheduler sends and gets, and what nonsense gets."""

from typing import Any

import orjson
import pytest
from aiohttp.test_utils import TestClient
from aiohttp.web import Application, Request
from structlog.testing import capture_logs

from extender.decide.explain import NOT_SYNCED
from extender.effects.binding import Binding, BindOutcome
from extender.observe.metrics import Metrics
from extender.verbs.agreement import Agreement
from extender.verbs.health import Health
from extender.verbs.preempt import Preempt
from extender.verbs.server import Answers, Verbs, make_app
from tests.builders import a_node, gang_annotations, pod_json
from tests.rig import Rig

Client = TestClient[Request, Application]


class Watched:
    """Stands in for a reflector."""

    def __init__(self) -> None:
        self.synced = True
        self.fresh = True

    def is_fresh(self, now_s: float) -> bool:
        return self.fresh and now_s >= 0


class AlwaysBound:
    """Stands in for the binder."""

    async def bind(self, binding: Binding, *, deadline_s: float) -> BindOutcome:
        return BindOutcome("bound") if binding.node and deadline_s else BindOutcome("failed")


@pytest.fixture
def watched() -> Watched:
    return Watched()


@pytest.fixture
def metrics() -> Metrics:
    return Metrics("test")


@pytest.fixture
async def client(aiohttp_client: Any, watched: Watched, metrics: Metrics) -> Client:
    rig = Rig(a_node("n1"), a_node("n2"))
    health = Health(rig.cluster, {"pods": watched, "nodes": Watched()}, metrics, str)
    bind = rig.bind_with(AlwaysBound())
    answers = Answers(rig.filter, Preempt(rig.cluster, rig.planner), bind, Agreement(rig.cluster, metrics))
    verbs = Verbs(rig.cluster, answers, metrics, lambda: "" if health.is_ready() else NOT_SYNCED)
    client: Client = await aiohttp_client(make_app(verbs, health.routes(), metrics, max_body_bytes=20_000))
    return client


async def post(client: Client, verb: str, body: object) -> Any:
    answer = await client.post(f"/v1/{verb}", data=orjson.dumps(body))
    assert answer.status == 200
    assert "Content-Length" in answer.headers, "a chunked answer costs kube-scheduler its connection"
    return await answer.json()


def args_for(pod: dict[str, Any], *nodes: str) -> dict[str, Any]:
    return {"Pod": pod, "Nodes": None, "NodeNames": list(nodes)}


def a_member(min_available: int | str) -> dict[str, Any]:
    labels = {"training.kubeflow.org/replica-type": "worker"}
    return pod_json("w0", metadata={"annotations": gang_annotations("g", min_available), "labels": labels})


async def test_a_foreign_pod_gets_its_nodes_back(client: Client) -> None:
    result = await post(client, "filter", args_for(pod_json("single"), "n2", "n1"))
    assert result["NodeNames"] == ["n2", "n1"]
    assert result["Error"] == ""


async def test_a_rejected_gang_gets_one_reason_for_every_node(client: Client) -> None:
    result = await post(client, "filter", args_for(a_member(9), "n1"))
    assert result["NodeNames"] == []
    assert set(result["FailedAndUnresolvableNodes"]) == {"n1", "n2"}
    assert len(set(result["FailedAndUnresolvableNodes"].values())) == 1


async def test_a_gang_that_fits_gets_one_node(client: Client) -> None:
    result = await post(client, "filter", args_for(a_member(2), "n1", "n2"))
    assert len(result["NodeNames"]) == 1


@pytest.mark.parametrize("value", ["zero", "0", "-1", "1.5", ""])
async def test_a_min_available_that_is_no_positive_integer_is_the_reason(client: Client, value: str) -> None:
    result = await post(client, "filter", args_for(a_member(value), "n1"))
    (text,) = set(result["FailedAndUnresolvableNodes"].values())
    assert "gang.scheduling.koordinator.sh/min-available" in text
    assert result["NodeNames"] == []


async def test_prioritize_answers_a_list_with_a_whole_number_for_each_node(client: Client) -> None:
    result = await post(client, "prioritize", args_for(pod_json("single"), "n1", "n2"))
    assert result == [{"Host": "n1", "Score": 0}, {"Host": "n2", "Score": 0}]


async def test_preempt_vetoes_for_a_gang_that_would_not_be_whole(client: Client) -> None:
    victims = {"n1": {"Pods": [{"UID": "x"}], "NumPDBViolations": 0}}
    body = {"Pod": a_member(9), "NodeNameToVictims": None, "NodeNameToMetaVictims": victims}
    assert await post(client, "preempt", body) == {"NodeNameToMetaVictims": {}}
    body["Pod"] = pod_json("single")
    assert await post(client, "preempt", body) == {"NodeNameToMetaVictims": victims}


async def test_bind_answers_without_error_when_the_pod_is_bound(client: Client) -> None:
    await post(client, "filter", args_for(a_member(1), "n1", "n2"))
    unknown = {"PodName": "x", "PodNamespace": "default", "PodUID": "nobody", "Node": "n1"}
    assert "not known" in (await post(client, "bind", unknown))["Error"]


@pytest.mark.parametrize("verb", ["filter", "prioritize", "preempt", "bind"])
@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b"{}", b'{"Pod": 3}', b"\xff", b'{"Pod": {"metadata": {"name": 5}}}']
)
async def test_a_malformed_body_gets_400_a_sentence_and_one_log_line(client: Client, verb: str, body: bytes) -> None:
    with capture_logs() as logs:
        answer = await client.post(f"/v1/{verb}", data=body)
    assert answer.status == 400
    text = await answer.text()
    assert text.startswith("This is no ")
    assert "Traceback" not in text
    assert [line["event"] for line in logs] == ["malformed request"]


async def test_an_oversized_body_gets_413_and_one_log_line(client: Client) -> None:
    with capture_logs() as logs:
        answer = await client.post("/v1/filter", data=b" " * 30_000)
    assert answer.status == 413
    assert "server.maxBodyMib" in await answer.text()
    assert [line["event"] for line in logs] == ["oversized request"]


async def test_wrong_paths_and_methods_are_told_apart(client: Client) -> None:
    assert (await client.post("/v1/nothing")).status == 404
    assert (await client.get("/v1/filter")).status == 405


async def test_while_the_state_is_not_known_filter_and_bind_answer_an_error_and_preempt_vetoes(
    client: Client, watched: Watched
) -> None:
    watched.synced = False
    assert "not synced" in (await post(client, "filter", args_for(pod_json("single"), "n1")))["Error"]
    binding = {"PodName": "x", "PodNamespace": "default", "PodUID": "u", "Node": "n1"}
    assert "not synced" in (await post(client, "bind", binding))["Error"]
    victims = {"n1": {"Pods": [{"UID": "x"}], "NumPDBViolations": 0}}
    body = {"Pod": pod_json("single"), "NodeNameToMetaVictims": victims}
    assert await post(client, "preempt", body) == {"NodeNameToMetaVictims": {}}


async def test_an_unforeseen_failure_gets_500_without_a_traceback(client: Client, monkeypatch: Any) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("extender.verbs.server.prioritize", fail)
    with capture_logs() as logs:
        answer = await client.post("/v1/prioritize", data=orjson.dumps(args_for(pod_json("single"), "n1")))
    assert answer.status == 500
    assert "ZeroDivision" not in await answer.text()
    assert [line["event"] for line in logs] == ["a request failed"]


async def test_readyz_lists_every_watch_and_says_which_one_is_not_ready(client: Client, watched: Watched) -> None:
    assert (await client.get("/livez")).status == 200
    ready = await client.get("/readyz?verbose")
    assert ready.status == 200
    assert "[+]watch pods ok\n[+]watch nodes ok\n" in await ready.text()
    watched.fresh = False
    stale = await client.get("/readyz")
    assert stale.status == 503
    assert "[-]watch pods stale\n[+]watch nodes ok\n" in await stale.text()


async def test_metrics_count_gangs_reservations_and_verbs(client: Client) -> None:
    await post(client, "filter", args_for(a_member(2), "n1", "n2"))
    text = await (await client.get("/metrics")).text()
    assert 'gang_extender_gangs{state="placed"} 1.0' in text
    assert "gang_extender_reservations 2.0" in text
    assert 'gang_extender_verb_duration_seconds_count{result="200",verb="filter"} 1.0' in text


async def test_a_repeated_call_after_a_rejection_is_counted(client: Client, metrics: Metrics) -> None:
    for _ in range(3):
        await post(client, "filter", args_for(a_member(9), "n1"))
    assert metrics.registry.get_sample_value("gang_extender_repeat_filter_calls_total") == 2
