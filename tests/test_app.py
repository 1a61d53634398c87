"""The whole extender against a stand-in for kube-apiserver: it starts, works, recovers and stops."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import orjson
import pytest

from extender.app import serve
from extender.config import GangConfig, GangExtenderConfiguration, LeaderElectionConfig, ServerConfig
from extender.model.pod import HOLD_GATE
from tests.apiserver_stub import ApiServerStub
from tests.builders import gang_annotations, node_json, pod_json, uid_of
from tests.conftest import write_kubeconfig
from tests.eventually import eventually

PODS = "/api/v1/namespaces/default/pods"
USUAL_GANGS = GangConfig()
ALONE = LeaderElectionConfig(mode="none")


@pytest.fixture
def kubeconfig(stopped_stub: ApiServerStub, tmp_path: Path) -> str:
    return write_kubeconfig(tmp_path, stopped_stub.url, {"token": "secret"})


class Extender:
    """A running extender, as kube-scheduler and kubelet see it."""

    def __init__(self, verbs: str, probes: str, session: aiohttp.ClientSession) -> None:
        self._verbs = verbs
        self._probes = probes
        self._session = session

    async def ask(self, verb: str, body: object) -> Any:
        async with self._session.post(f"{self._verbs}/v1/{verb}", data=orjson.dumps(body)) as answer:
            return await answer.json()

    async def filter(self, pod: dict[str, Any], *nodes: str) -> Any:
        return await self.ask("filter", {"Pod": pod, "Nodes": None, "NodeNames": nodes})

    async def bind(self, name: str, node: str) -> Any:
        body = {"PodName": name, "PodNamespace": "default", "PodUID": uid_of(name), "Node": node}
        return await self.ask("bind", body)

    async def is_ready(self) -> bool:
        async with self._session.get(f"{self._probes}/readyz") as answer:
            return answer.status == 200

    async def until_ready(self) -> None:
        async with asyncio.timeout(5):
            while not await self.is_ready():  # noqa: ASYNC110 - what is waited for is another server
                await asyncio.sleep(0.01)


@asynccontextmanager
async def running(
    kubeconfig: str,
    new_port: Callable[[], int],
    gangs: GangConfig = USUAL_GANGS,
    election: LeaderElectionConfig = ALONE,
) -> AsyncIterator[Extender]:
    server = ServerConfig(port=new_port(), probeAddress="127.0.0.1", probePort=new_port())
    config = GangExtenderConfiguration(
        apiVersion="gang-extender.io/v1alpha1",
        kind="GangExtenderConfiguration",
        kubeconfig=kubeconfig,
        server=server,
        gangs=gangs,
        leaderElection=election,
    )
    task = asyncio.create_task(serve(config))
    async with aiohttp.ClientSession() as session:
        extender = Extender(f"http://127.0.0.1:{server.port}", f"http://127.0.0.1:{server.probe_port}", session)
        await eventually_listening(server.probe_port, task)
        yield extender
    if not task.done():
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


async def eventually_listening(port: int, task: asyncio.Task[None]) -> None:
    async with asyncio.timeout(5):
        while not task.done():
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                await asyncio.sleep(0.01)
            else:
                writer.close()
                await writer.wait_closed()
                return
    await task


def member(name: str, min_available: int, **parts: Any) -> dict[str, Any]:
    labels = {"training.kubeflow.org/replica-type": "worker"}
    return pod_json(name, metadata={"annotations": gang_annotations("g", min_available), "labels": labels}, **parts)


async def test_a_gang_of_two_is_let_through_held_and_bound_together(
    stub: ApiServerStub, kubeconfig: str, unused_tcp_port_factory: Callable[[], int]
) -> None:
    await stub.put("/api/v1/nodes/n1", node_json("n1"))
    for name in ("w0", "w1"):
        await stub.put(f"{PODS}/{name}", member(name, 2))
    async with running(kubeconfig, unused_tcp_port_factory) as extender:
        await extender.until_ready()
        for name in ("w0", "w1"):
            assert (await extender.filter(member(name, 2), "n1"))["NodeNames"] == ["n1"]
        first = asyncio.create_task(extender.bind("w0", "n1"))
        await asyncio.sleep(0.1)
        assert stub.calls_of("bind") == [], "nothing is posted for a part of the gang"
        assert await extender.bind("w1", "n1") == {"Error": ""}
        assert await first == {"Error": ""}
        assert len(stub.calls_of("bind")) == 2
        await eventually(lambda: any("GangPlaced" in str(call.body) for call in stub.calls_of("create")))


async def test_a_waiting_gang_is_nominated_when_a_node_joins(
    stub: ApiServerStub, kubeconfig: str, unused_tcp_port_factory: Callable[[], int]
) -> None:
    await stub.put("/api/v1/nodes/n1", node_json("n1", allocatable={"nvidia.com/gpu": "1"}))
    turned_away = {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]}
    async with running(kubeconfig, unused_tcp_port_factory) as extender:
        await extender.until_ready()
        for name in ("w0", "w1"):
            await stub.put(f"{PODS}/{name}", member(name, 2))
            assert (await extender.filter(member(name, 2), "n1"))["NodeNames"] == []
            await stub.put(f"{PODS}/{name}", member(name, 2, status=turned_away))
        await stub.put("/api/v1/nodes/n2", node_json("n2", allocatable={"nvidia.com/gpu": "1"}))
        await eventually(lambda: len(stub.calls_of("patch")) >= 2)
        nominations = sorted(call.path for call in stub.calls_of("patch"))
        assert nominations == [f"{PODS}/w0/status", f"{PODS}/w1/status"]


async def test_a_held_gang_loses_its_gates_when_a_node_joins(
    stub: ApiServerStub, kubeconfig: str, unused_tcp_port_factory: Callable[[], int]
) -> None:
    async with running(kubeconfig, unused_tcp_port_factory) as extender:
        await extender.until_ready()
        for name in ("w0", "w1"):
            await stub.put(f"{PODS}/{name}", member(name, 2, spec={"schedulingGates": [{"name": HOLD_GATE}]}))
        await stub.put("/api/v1/nodes/n1", node_json("n1"))
        specs = [stub.objects[f"{PODS}/{name}"]["spec"] for name in ("w0", "w1")]
        assert all(spec["schedulingGates"] for spec in specs)
        await eventually(lambda: not any(stub.objects[f"{PODS}/w{i}"]["spec"]["schedulingGates"] for i in range(2)))
        assert len(stub.calls_of("patch")) == 2


async def test_while_the_api_server_is_away_verbs_say_so_and_the_extender_recovers_by_itself(
    stopped_stub: ApiServerStub, kubeconfig: str, unused_tcp_port_factory: Callable[[], int]
) -> None:
    async with running(kubeconfig, unused_tcp_port_factory) as extender:
        assert not await extender.is_ready()
        assert "cache is not synced" in (await extender.filter(member("w0", 1), "n1"))["Error"]
        assert "cache is not synced" in (await extender.bind("w0", "n1"))["Error"]
        await stopped_stub.start()
        await stopped_stub.put("/api/v1/nodes/n1", node_json("n1"))
        await extender.until_ready()
        assert (await extender.filter(member("w0", 1), "n1"))["NodeNames"] == ["n1"]


async def test_a_taken_port_ends_the_start_with_an_error(
    stub: ApiServerStub, kubeconfig: str, unused_tcp_port_factory: Callable[[], int]
) -> None:
    taken = int(stub.url.rsplit(":", 1)[1])
    ports = iter([taken, unused_tcp_port_factory()])
    with pytest.raises(OSError, match=r"^server\.address and port: .* address already in use"):
        async with running(kubeconfig, lambda: next(ports)):
            pass


async def test_a_gang_may_be_declared_by_a_pod_group_alone_which_comes_last(
    stub: ApiServerStub, kubeconfig: str, unused_tcp_port_factory: Callable[[], int]
) -> None:
    pod_groups = "/apis/scheduling.x-k8s.io/v1alpha1"
    stub.installed.add(f"{pod_groups}/podgroups")
    await stub.put("/api/v1/nodes/n1", node_json("n1"))
    pod = pod_json("w0", metadata={"labels": {"scheduling.x-k8s.io/pod-group": "g"}})
    await stub.put(f"{PODS}/w0", pod)
    async with running(kubeconfig, unused_tcp_port_factory) as extender:
        await extender.until_ready()
        (text,) = set((await extender.filter(pod, "n1"))["FailedAndUnresolvableNodes"].values())
        assert 'the PodGroup "default/g" of scheduling.x-k8s.io' in text
        turned_away = {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]}
        await stub.put(f"{PODS}/w0", {**pod, "status": turned_away})
        group = {"metadata": {"name": "g", "namespace": "default", "uid": "u"}, "spec": {"minMember": 1}}
        await stub.put(f"{pod_groups}/namespaces/default/podgroups/g", group)
        await eventually(lambda: [call.path for call in stub.calls_of("patch")] == [f"{PODS}/w0/status"])


async def test_the_pods_of_a_job_without_gang_metadata_pass_through_where_that_is_switched_off(
    stub: ApiServerStub, kubeconfig: str, unused_tcp_port_factory: Callable[[], int]
) -> None:
    await stub.put("/api/v1/nodes/n1", node_json("n1"))
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "controller": True}
    pod = pod_json("w0", metadata={"ownerReferences": [owner]})
    async with running(kubeconfig, unused_tcp_port_factory) as extender:
        await extender.until_ready()
        assert (await extender.filter(pod, "n1"))["NodeNames"] == []
    off = GangConfig(fromJobs=False)
    async with running(kubeconfig, unused_tcp_port_factory, off) as extender:
        await extender.until_ready()
        assert (await extender.filter(pod, "n1"))["NodeNames"] == ["n1"]
