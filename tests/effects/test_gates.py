"""Our gate is taken off the pod that is meant, and no other gate, whatever the API server answers first."""

from collections.abc import AsyncIterator

import pytest
from structlog.testing import capture_logs

from extender.apiserver import ApiServer
from extender.effects.gates import Release
from extender.effects.pod_patches import PodPatches
from extender.model.pod import HOLD_GATE
from extender.observe.metrics import Metrics
from tests.apiserver_stub import ApiServerStub, answer
from tests.builders import pod_json, uid_of
from tests.effects.test_pod_patches import path_of, running
from tests.eventually import eventually

OTHER = "example.com/quota"


@pytest.fixture
async def releases(api: ApiServer, metrics: Metrics) -> AsyncIterator[PodPatches[Release]]:
    patches: PodPatches[Release] = PodPatches(api, metrics.releases, lambda _: True, first_pause_s=0.01)
    async with running(patches):
        yield patches


def a_release(name: str) -> Release:
    return Release("default", name, uid_of(name))


def count(metrics: Metrics, result: str) -> float:
    return metrics.registry.get_sample_value("gang_extender_releases_total", {"result": result}) or 0


async def test_only_our_gate_is_taken_off_and_only_from_the_pod_with_this_uid(
    stub: ApiServerStub, releases: PodPatches[Release], metrics: Metrics
) -> None:
    gates = [{"name": HOLD_GATE}, {"name": OTHER}]
    await stub.put(path_of("w0"), pod_json("w0", spec={"schedulingGates": gates}))
    await stub.put(path_of("w1"), pod_json("w1", metadata={"uid": "another"}, spec={"schedulingGates": gates}))

    releases.submit(a_release("w0"))
    releases.submit(a_release("w1"))
    await eventually(lambda: (count(metrics, "written"), count(metrics, "gone")) == (1, 1))

    assert stub.objects[path_of("w0")]["spec"]["schedulingGates"] == [{"name": OTHER}]
    assert stub.objects[path_of("w1")]["spec"]["schedulingGates"] == gates
    assert {call.headers["Content-Type"] for call in stub.calls} == {"application/strategic-merge-patch+json"}


async def test_what_we_may_not_do_is_said_once_with_the_api_servers_words(
    stub: ApiServerStub, releases: PodPatches[Release], metrics: Metrics
) -> None:
    forbidden = answer(403, 'pods "w0" is forbidden: User "gang-extender" cannot patch resource "pods"')
    stub.answer_next("patch", *[forbidden] * 3)
    with capture_logs() as logs:
        for index in range(3):
            releases.submit(a_release(f"w{index}"))
        await eventually(lambda: count(metrics, "refused") == 3)
    assert len(stub.calls) == 3, "nothing is tried again by itself"
    (said,) = (entry for entry in logs if entry["log_level"] == "warning")
    assert (said["event"], said["result"]) == ("release lost", "refused")
    assert 'cannot patch resource "pods"' in said["text"]
