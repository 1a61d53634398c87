"""A PodGroup's status is written, and seldom."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from extender.apiserver import ApiServer
from extender.effects.podgroup_status import PodGroupStatusWriter
from extender.model.claim import GangKey
from extender.model.pod_group import KOORDINATOR, VOLCANO, GroupStatus, PodGroup, StatusReport
from extender.observe.metrics import Metrics
from extender.watch.sources import POD_GROUP_PATHS
from tests.apiserver_stub import ApiServerStub, answer
from tests.eventually import eventually

OUT_OF_DATE = 99
"""So many run in a report that is not current when it is asked about."""


def is_current(report: StatusReport) -> bool:
    return report.status.running != OUT_OF_DATE


@pytest.fixture
async def writer(stub: ApiServerStub, api: ApiServer, metrics: Metrics) -> AsyncIterator[PodGroupStatusWriter]:
    for version in (POD_GROUP_PATHS[KOORDINATOR], POD_GROUP_PATHS[VOLCANO]):
        metadata = {"name": "g", "namespace": "default", "uid": "u"}
        await stub.put(f"{version}/namespaces/default/podgroups/g", {"metadata": metadata})
    writer = PodGroupStatusWriter(api, metrics, POD_GROUP_PATHS, is_current, settling_s=0.02, lost_s=0.02)
    task: asyncio.Task[None] = asyncio.create_task(writer.run())
    yield writer
    task.cancel()
    await asyncio.wait([task])


def a_report(api: str, running: int, uid: str = "u") -> StatusReport:
    return StatusReport(PodGroup(api, GangKey("default/g"), uid=uid), GroupStatus("Running", 4, running, 1, 2))


async def have_one_refused(stub: ApiServerStub, writer: PodGroupStatusWriter, metrics: Metrics) -> None:
    """Refuse a status, which is out of date by then."""
    stub.answer_next("patch", answer(403))
    writer.submit(a_report(VOLCANO, OUT_OF_DATE))
    await eventually(lambda: results(metrics, "refused") == 1)


def results(metrics: Metrics, result: str) -> float:
    name = "gang_extender_pod_group_statuses_total"
    return metrics.registry.get_sample_value(name, {"result": result}) or 0


async def test_the_status_is_written_with_the_uid_and_only_with_what_the_api_has(
    stub: ApiServerStub, writer: PodGroupStatusWriter, metrics: Metrics
) -> None:
    writer.submit(a_report(VOLCANO, 3))
    await eventually(lambda: results(metrics, "written") == 1)
    (patch,) = stub.calls_of("patch")
    assert patch.path == f"{POD_GROUP_PATHS[VOLCANO]}/namespaces/default/podgroups/g/status"
    status = {"phase": "Running", "running": 3, "succeeded": 1, "failed": 2}
    assert patch.body == {"metadata": {"uid": "u"}, "status": status}


async def test_changes_in_quick_succession_are_one_write(
    stub: ApiServerStub, writer: PodGroupStatusWriter, metrics: Metrics
) -> None:
    for running in range(5):
        writer.submit(a_report(VOLCANO, running))
    await eventually(lambda: results(metrics, "written") == 1)
    assert [patch.body["status"]["running"] for patch in stub.calls_of("patch")] == [4]


async def test_where_there_is_no_status_subresource_the_object_is_written(
    stub: ApiServerStub, writer: PodGroupStatusWriter, metrics: Metrics
) -> None:
    stub.answer_next("patch", answer(404))
    writer.submit(a_report(KOORDINATOR, 3))
    await eventually(lambda: results(metrics, "written") == 1)
    assert [patch.path.rsplit("/", 1)[1] for patch in stub.calls_of("patch")] == ["status", "g"]
    assert stub.calls_of("patch")[1].body["status"]["scheduled"] == 4


async def test_a_namesake_created_since_is_left_alone(writer: PodGroupStatusWriter, metrics: Metrics) -> None:
    writer.submit(a_report(VOLCANO, 3, uid="older"))
    await eventually(lambda: results(metrics, "gone") == 1)


async def test_an_api_server_that_is_busy_is_asked_again(
    stub: ApiServerStub, writer: PodGroupStatusWriter, metrics: Metrics
) -> None:
    stub.answer_next("patch", answer(503), answer(429))
    writer.submit(a_report(VOLCANO, 3))
    await eventually(lambda: results(metrics, "written") == 1)
    assert len(stub.calls_of("patch")) == 3


async def test_a_status_that_was_refused_is_written_when_the_right_is_there(
    stub: ApiServerStub, writer: PodGroupStatusWriter, metrics: Metrics
) -> None:
    """An operator makes no pods before it reads Inqueue."""
    stub.answer_next("patch", *[answer(403)] * 3)
    writer.submit(a_report(VOLCANO, 3))
    await eventually(lambda: results(metrics, "written") == 1)
    assert results(metrics, "refused") == 3


async def test_a_status_that_was_refused_and_is_out_of_date_by_now_is_left(
    stub: ApiServerStub, writer: PodGroupStatusWriter, metrics: Metrics
) -> None:
    await have_one_refused(stub, writer, metrics)
    await asyncio.sleep(0.1)
    assert len(stub.calls_of("patch")) == 1


async def test_a_missing_right_is_no_reason_to_stop(
    stub: ApiServerStub, writer: PodGroupStatusWriter, metrics: Metrics
) -> None:
    await have_one_refused(stub, writer, metrics)
    writer.submit(a_report(VOLCANO, 4))
    await eventually(lambda: results(metrics, "written") == 1)
