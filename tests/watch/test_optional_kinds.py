"""A kind that the cluster may not have: it is missed by nobody, comes without a restart, and goes without a trace."""

import asyncio
from collections.abc import AsyncIterator
from itertools import pairwise

import pytest

from extender.apiserver import ApiServer
from extender.model.claim import GangKey
from extender.model.device import CardPolicy
from extender.model.pod_group import PodGroup
from extender.observe.metrics import Metrics
from extender.state.cluster import Cluster
from extender.watch.reflector import Pace, Reflector
from extender.watch.sources import devices, jobs, pod_groups
from tests.apiserver_stub import ApiServerStub, Json, answer
from tests.builders import a_node, a_pod
from tests.eventually import eventually

PACE = Pace(first_pause_s=0.005, longest_pause_s=0.01, silence_s=0.5, absent_s=0.05)
KOORDINATOR = "/apis/scheduling.sigs.k8s.io/v1alpha1"
VOLCANO = "/apis/scheduling.volcano.sh/v1beta1"
DEVICES = "/apis/scheduling.koordinator.sh/v1alpha1/devices"
MNIST = f"{KOORDINATOR}/namespaces/default/podgroups/mnist"


@pytest.fixture
def state() -> Cluster:
    state = Cluster(["gang-scheduler"])
    state.upsert_pod(a_pod("w0", gang="mnist", min_available=None))
    return state


@pytest.fixture
async def reflector(api: ApiServer, metrics: Metrics, state: Cluster) -> AsyncIterator[Reflector[PodGroup]]:
    reflector = Reflector(pod_groups(state, "scheduling.sigs.k8s.io"), api, metrics, PACE)
    task: asyncio.Task[None] = asyncio.create_task(reflector.run())
    yield reflector
    task.cancel()
    await asyncio.wait([task])


def pod_group(min_member: int) -> Json:
    return {"metadata": {"name": "mnist", "namespace": "default", "uid": "u"}, "spec": {"minMember": min_member}}


def declared(state: Cluster) -> int | None:
    gang = state.gangs.get(GangKey("default/mnist"))
    return gang.min_available if gang else None


@pytest.mark.usefixtures("stub")
async def test_a_kind_that_is_not_installed_is_synced_and_fresh(reflector: Reflector[PodGroup]) -> None:
    await eventually(lambda: reflector.synced)
    await asyncio.sleep(0.6)
    assert reflector.is_fresh(asyncio.get_running_loop().time())


async def test_it_is_asked_for_every_so_often_and_not_more(stub: ApiServerStub, reflector: Reflector[PodGroup]) -> None:
    await eventually(lambda: reflector.synced)
    await eventually(lambda: len(stub.calls_of("list")) >= 4)
    times_s = [call.at_s for call in stub.calls_of("list")]
    assert all(later_s - before_s >= PACE.absent_s for before_s, later_s in pairwise(times_s))
    assert not stub.calls_of("watch")


async def test_one_that_is_installed_later_is_picked_up(
    stub: ApiServerStub, reflector: Reflector[PodGroup], state: Cluster
) -> None:
    await eventually(lambda: reflector.synced)
    assert declared(state) is None
    stub.installed.add(f"{KOORDINATOR}/podgroups")
    await stub.put(MNIST, pod_group(3))
    await eventually(lambda: declared(state) == 3)
    await stub.put(MNIST, pod_group(2))
    await eventually(lambda: declared(state) == 2)


@pytest.mark.usefixtures("reflector")
async def test_the_objects_of_one_that_is_removed_are_gone_and_it_may_come_back(
    stub: ApiServerStub, state: Cluster
) -> None:
    stub.installed.add(f"{KOORDINATOR}/podgroups")
    await stub.put(MNIST, pod_group(3))
    await eventually(lambda: declared(state) == 3)
    await stub.uninstall(f"{KOORDINATOR}/podgroups")
    await eventually(lambda: declared(state) is None)
    await eventually(lambda: len(stub.calls_of("list")) >= 4)
    stub.installed.add(f"{KOORDINATOR}/podgroups")
    await stub.put(MNIST, pod_group(4))
    await eventually(lambda: declared(state) == 4)


async def test_objects_that_went_unseen_with_their_kind_are_gone(
    stub: ApiServerStub, reflector: Reflector[PodGroup], state: Cluster
) -> None:
    stub.installed.add(f"{KOORDINATOR}/podgroups")
    await stub.put(MNIST, pod_group(3))
    await eventually(lambda: declared(state) == 3)
    stub.lose(MNIST)
    stub.installed.clear()
    await stub.end_watches()
    await eventually(lambda: declared(state) is None)
    assert reflector.synced


@pytest.mark.usefixtures("reflector")
async def test_another_groups_pod_groups_of_the_same_name_declare_nothing(stub: ApiServerStub, state: Cluster) -> None:
    stub.installed.update({f"{KOORDINATOR}/podgroups", f"{VOLCANO}/podgroups"})
    await stub.put(f"{VOLCANO}/namespaces/default/podgroups/mnist", pod_group(9))
    await stub.put(MNIST, pod_group(3))
    await eventually(lambda: declared(state) == 3)


async def test_an_answer_that_is_no_404_is_waited_out(
    stub: ApiServerStub, api: ApiServer, metrics: Metrics, state: Cluster
) -> None:
    stub.answer_next("list", *[answer(403)] * 1000)
    reflector = Reflector(jobs(state, "TFJob"), api, metrics, PACE)
    task: asyncio.Task[None] = asyncio.create_task(reflector.run())
    await eventually(lambda: len(stub.calls_of("list")) >= 3)
    task.cancel()
    await asyncio.wait([task])
    assert not reflector.synced, "a right that is missing must not look like a kind that is"


async def test_koordinators_devices_are_watched_where_there_are_any(
    stub: ApiServerStub, api: ApiServer, metrics: Metrics, state: Cluster
) -> None:
    state.upsert_node(a_node("n1"))
    reflector = Reflector(devices(state, CardPolicy()), api, metrics, PACE)
    task: asyncio.Task[None] = asyncio.create_task(reflector.run())
    await eventually(lambda: reflector.synced)
    stub.installed.add(DEVICES)
    gpu = {"type": "gpu", "id": "GPU-0", "minor": 0, "health": True}
    await stub.put(f"{DEVICES}/n1", {"metadata": {"name": "n1", "uid": "u"}, "spec": {"devices": [gpu]}})
    await eventually(lambda: state.snapshot().rooms["n1"].node.inventory is not None)
    await stub.uninstall(DEVICES)
    await eventually(lambda: state.snapshot().rooms["n1"].node.inventory is None)
    task.cancel()
    await asyncio.wait([task])
