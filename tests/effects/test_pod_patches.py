"""Patches of pods reach the API server, the latest of a pod's wins, and none that is out of date is written.

Nominations stand for all of them.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web

from extender.apiserver import ApiServer
from extender.effects import pod_patches
from extender.effects.nomination import Nomination
from extender.effects.pod_patches import PodPatches
from extender.observe.metrics import Metrics
from tests.apiserver_stub import Answer, ApiServerStub, answer, break_off
from tests.builders import pod_json, uid_of
from tests.eventually import eventually


def path_of(name: str) -> str:
    return f"/api/v1/namespaces/default/pods/{name}"


def a_nomination(name: str, node: str) -> Nomination:
    return Nomination("default", name, uid_of(name), node)


class Wanted:
    """What the planner wants; everything, unless it has changed its mind."""

    def __init__(self) -> None:
        self.dropped: set[Nomination] = set()

    def __call__(self, nomination: Nomination) -> bool:
        return nomination not in self.dropped


@pytest.fixture
def wanted() -> Wanted:
    return Wanted()


@pytest.fixture
def nominator(api: ApiServer, metrics: Metrics, wanted: Wanted) -> PodPatches[Nomination]:
    return PodPatches(api, metrics.nominations, wanted, first_pause_s=0.01)


@asynccontextmanager
async def running(nominator: PodPatches[Any]) -> AsyncIterator[None]:
    task: asyncio.Task[None] = asyncio.create_task(nominator.run())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])


def count(metrics: Metrics, result: str) -> float:
    return metrics.registry.get_sample_value("gang_extender_nominations_total", {"result": result}) or 0


async def test_a_pod_is_nominated_with_its_uid_as_precondition(
    stub: ApiServerStub, nominator: PodPatches[Nomination], metrics: Metrics
) -> None:
    await stub.put(path_of("w0"), pod_json("w0"))
    async with running(nominator):
        nominator.submit(a_nomination("w0", "n1"))
        await eventually(lambda: count(metrics, "written") == 1)
    assert stub.objects[path_of("w0")]["status"]["nominatedNodeName"] == "n1"
    [call] = stub.calls
    assert call.path == path_of("w0") + "/status"
    assert call.headers["Content-Type"] == "application/merge-patch+json"
    assert call.body == {"metadata": {"uid": uid_of("w0")}, "status": {"nominatedNodeName": "n1"}}


async def test_a_nomination_is_taken_back(
    stub: ApiServerStub, nominator: PodPatches[Nomination], metrics: Metrics
) -> None:
    await stub.put(path_of("w0"), pod_json("w0", status={"nominatedNodeName": "n1"}))
    async with running(nominator):
        nominator.submit(a_nomination("w0", ""))
        await eventually(lambda: count(metrics, "written") == 1)
    assert "nominatedNodeName" not in stub.objects[path_of("w0")]["status"]


async def test_a_namesake_created_since_is_left_alone(
    stub: ApiServerStub, nominator: PodPatches[Nomination], metrics: Metrics
) -> None:
    await stub.put(path_of("w0"), pod_json("w0", metadata={"uid": "another"}))
    async with running(nominator):
        nominator.submit(a_nomination("w0", "n1"))
        await eventually(lambda: count(metrics, "gone") == 1)
    assert "nominatedNodeName" not in stub.objects[path_of("w0")]["status"]


async def test_a_pod_that_is_deleted_is_not_tried_again(
    stub: ApiServerStub, nominator: PodPatches[Nomination], metrics: Metrics
) -> None:
    async with running(nominator):
        nominator.submit(a_nomination("w0", "n1"))
        await eventually(lambda: count(metrics, "gone") == 1)
    assert len(stub.calls) == 1


async def test_what_the_server_forbids_is_not_tried_again(
    stub: ApiServerStub, nominator: PodPatches[Nomination], metrics: Metrics
) -> None:
    stub.answer_next("patch", answer(403))
    async with running(nominator):
        nominator.submit(a_nomination("w0", "n1"))
        await eventually(lambda: count(metrics, "refused") == 1)
    assert len(stub.calls) == 1


@pytest.mark.parametrize("fault", [answer(500), answer(429), answer(409), break_off])
async def test_what_may_pass_is_tried_again(
    stub: ApiServerStub, nominator: PodPatches[Nomination], metrics: Metrics, fault: Answer
) -> None:
    await stub.put(path_of("w0"), pod_json("w0"))
    stub.answer_next("patch", fault, fault)
    async with running(nominator):
        nominator.submit(a_nomination("w0", "n1"))
        await eventually(lambda: count(metrics, "written") == 1)
    assert stub.objects[path_of("w0")]["status"]["nominatedNodeName"] == "n1"


async def test_a_server_that_stays_away_is_given_up(
    stopped_stub: ApiServerStub, nominator: PodPatches[Nomination], metrics: Metrics
) -> None:
    async with running(nominator):
        nominator.submit(a_nomination("w0", "n1"))
        await eventually(lambda: count(metrics, "failed") == 1)
    assert stopped_stub.calls == []


async def test_of_a_pods_nominations_the_latest_is_written(
    stub: ApiServerStub, nominator: PodPatches[Nomination], metrics: Metrics
) -> None:
    await stub.put(path_of("w0"), pod_json("w0"))
    for node in ("n1", "n2", "n3"):
        nominator.submit(a_nomination("w0", node))
    async with running(nominator):
        await eventually(lambda: count(metrics, "written") == 1)
    assert [call.body["status"]["nominatedNodeName"] for call in stub.calls] == ["n3"]


async def test_a_nomination_never_overtakes_one_of_the_same_pod(
    stub: ApiServerStub, nominator: PodPatches[Nomination], metrics: Metrics
) -> None:
    await stub.put(path_of("w0"), pod_json("w0"))

    async def act_slowly(request: web.Request) -> web.StreamResponse:
        await asyncio.sleep(0.05)
        return await stub.act(request)

    stub.answer_next("patch", act_slowly)
    async with running(nominator):
        nominator.submit(a_nomination("w0", "n1"))
        await eventually(lambda: len(stub.calls) == 1)
        nominator.submit(a_nomination("w0", "n2"))
        await eventually(lambda: count(metrics, "written") == 2)
    assert stub.most_at_once["patch"] == 1
    assert stub.objects[path_of("w0")]["status"]["nominatedNodeName"] == "n2"


async def test_a_nomination_that_is_out_of_date_is_not_written(
    stub: ApiServerStub, nominator: PodPatches[Nomination], metrics: Metrics, wanted: Wanted
) -> None:
    nominator.submit(a_nomination("w0", "n1"))
    wanted.dropped.add(a_nomination("w0", "n1"))
    async with running(nominator):
        await eventually(lambda: count(metrics, "stale") == 1)
    assert stub.calls == []


async def test_a_nomination_that_falls_out_of_date_between_tries_is_not_tried_again(
    stub: ApiServerStub, nominator: PodPatches[Nomination], metrics: Metrics, wanted: Wanted
) -> None:
    async def change_the_plan(request: web.Request) -> web.StreamResponse:
        wanted.dropped.add(a_nomination("w0", "n1"))
        return await answer(500)(request)

    stub.answer_next("patch", change_the_plan)
    async with running(nominator):
        nominator.submit(a_nomination("w0", "n1"))
        await eventually(lambda: count(metrics, "stale") == 1)
    assert len(stub.calls) == 1


async def test_a_gang_is_nominated_a_few_members_at_a_time(
    stub: ApiServerStub, nominator: PodPatches[Nomination], metrics: Metrics
) -> None:
    names = [f"w{number}" for number in range(50)]

    async def act_slowly(request: web.Request) -> web.StreamResponse:
        await asyncio.sleep(0.01)
        return await stub.act(request)

    stub.answer_next("patch", *[act_slowly] * len(names))
    for name in names:
        await stub.put(path_of(name), pod_json(name))
        nominator.submit(a_nomination(name, "n1"))
    async with running(nominator):
        await eventually(lambda: count(metrics, "written") == len(names))
    assert 1 < stub.most_at_once["patch"] <= 16


async def test_too_many_waiting_are_dropped_and_counted(
    stub: ApiServerStub, nominator: PodPatches[Nomination], metrics: Metrics, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pod_patches, "WAITING", 2)
    for name in ("w0", "w1", "w2"):
        await stub.put(path_of(name), pod_json(name))
        nominator.submit(a_nomination(name, "n1"))
    nominator.submit(a_nomination("w1", "n2"))
    async with running(nominator):
        await eventually(lambda: count(metrics, "written") == 2)
    assert count(metrics, "dropped") == 1
    assert stub.objects[path_of("w1")]["status"]["nominatedNodeName"] == "n2"
