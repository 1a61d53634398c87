"""Two leaders, one lease: who decides, who stands by, and what becomes of what was decided before."""

import asyncio
import os
import signal
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from extender.config import LeaderElectionConfig
from extender.wire.leases import held_spec
from tests.apiserver_stub import ApiServerStub, no_answer
from tests.builders import gang_annotations, node_json, pod_json
from tests.conftest import write_kubeconfig
from tests.eventually import eventually
from tests.test_app import PODS, USUAL_GANGS, Extender, member, running

LEASES = "/apis/coordination.k8s.io/v1/namespaces/gang-extender/leases"
LEASE = f"{LEASES}/gang-scheduler"
DURATION_S = 6
SHORT_S = 3
BESIDE = LeaderElectionConfig()
SERVICE = LeaderElectionConfig(mode="service", resourceName="gang-scheduler", leaseDurationSeconds=SHORT_S)
OURS = f"{socket.gethostname()}_scheduler-1"
NewPort = Callable[[], int]


@pytest.fixture
def kubeconfig(stopped_stub: ApiServerStub, tmp_path: Path) -> str:
    return write_kubeconfig(tmp_path, stopped_stub.url, {"token": "secret"})


class Election:
    """What kube-schedulers write of their lease."""

    def __init__(self, stub: ApiServerStub) -> None:
        stub.installed.add(LEASES)
        self._stub = stub
        self._renewals = 0

    @property
    def spec(self) -> dict[str, Any]:
        return dict(self._stub.objects[LEASE]["spec"]) if LEASE in self._stub.objects else {}

    async def renew(self, holder: str) -> None:
        self._renewals += 1
        metadata = {"name": "gang-scheduler", "namespace": "gang-extender", "uid": "lease"}
        spec = held_spec(self.spec, holder, DURATION_S, float(self._renewals))
        await self._stub.put(LEASE, {"metadata": metadata, "spec": spec})


@pytest.fixture
async def election(stub: ApiServerStub) -> Election:
    await stub.put("/api/v1/nodes/n1", node_json("n1"))
    return Election(stub)


async def decides(extender: Extender) -> bool:
    answer = await extender.filter(pod_json("probe"), "n1")
    return not answer["Error"]


async def until_it_decides(extender: Extender) -> None:
    async with asyncio.timeout(10):
        while not await decides(extender):  # noqa: ASYNC110 - what is waited for is another server
            await asyncio.sleep(0.02)


async def test_while_another_scheduler_leads_verbs_answer_errors_and_nothing_is_written(
    stub: ApiServerStub, election: Election, kubeconfig: str, unused_tcp_port_factory: NewPort
) -> None:
    await election.renew("elsewhere_scheduler-2")
    held = member("w0", 1, spec={"schedulingGates": [{"name": "gang-extender.io/hold"}]})
    await stub.put(f"{PODS}/w0", held)
    async with running(kubeconfig, unused_tcp_port_factory, election=BESIDE) as extender:
        await extender.until_ready()
        assert "another one leads" in (await extender.filter(member("w0", 1), "n1"))["Error"]
        assert "another one leads" in (await extender.bind("w0", "n1"))["Error"]
        meta_victims = {"Pod": member("w0", 1), "NodeNameToMetaVictims": {"n1": {"Pods": []}}}
        assert not (await extender.ask("preempt", meta_victims))["NodeNameToMetaVictims"]
        await asyncio.sleep(0.3)
        assert {call.verb for call in stub.calls} <= {"list", "watch", "get"}


async def test_who_stood_by_decides_soon_after_his_scheduler_was_elected(
    election: Election, kubeconfig: str, unused_tcp_port_factory: NewPort
) -> None:
    await election.renew("elsewhere_scheduler-2")
    async with running(kubeconfig, unused_tcp_port_factory, election=BESIDE) as extender:
        await extender.until_ready()
        assert not await decides(extender)
        await election.renew(OURS)
        await until_it_decides(extender)


async def test_a_gang_that_came_while_it_stood_by_is_released_once_it_leads(
    stub: ApiServerStub, election: Election, kubeconfig: str, unused_tcp_port_factory: NewPort
) -> None:
    await election.renew("elsewhere_scheduler-2")
    async with running(kubeconfig, unused_tcp_port_factory, election=BESIDE) as extender:
        await extender.until_ready()
        await stub.put(f"{PODS}/w0", member("w0", 1, spec={"schedulingGates": [{"name": "gang-extender.io/hold"}]}))
        await asyncio.sleep(1.5)  # what has changed is let go of meanwhile
        await election.renew(OURS)
        await eventually(lambda: not stub.objects[f"{PODS}/w0"]["spec"]["schedulingGates"])


async def test_the_first_answer_knows_of_bindings_that_the_watch_has_not_told_yet(
    stub: ApiServerStub, election: Election, kubeconfig: str, unused_tcp_port_factory: NewPort
) -> None:
    await stub.put("/api/v1/nodes/n1", node_json("n1", allocatable={"nvidia.com/gpu": "1"}))
    await election.renew("elsewhere_scheduler-2")
    await stub.put(f"{PODS}/late", member("late", 1))
    async with running(kubeconfig, unused_tcp_port_factory, election=BESIDE) as extender:
        await extender.until_ready()
        # The one who led before binds it, and the watch is late.
        unheard = stub.objects[f"{PODS}/late"]
        unheard["spec"] = {**unheard["spec"], "nodeName": "n1"}
        await election.renew(OURS)
        await asyncio.sleep(0.5)
        assert not await decides(extender)
        await stub.put(f"{PODS}/late", unheard)
        another = pod_json("w0", metadata={"annotations": gang_annotations("h", 1)})
        async with asyncio.timeout(10):
            while (answer := await extender.filter(another, "n1"))["Error"]:  # noqa: ASYNC110 - as above
                await asyncio.sleep(0.02)
        assert answer["NodeNames"] == [], "the only GPU is taken"


async def test_a_lease_that_is_lost_ends_held_calls_and_what_was_planned(
    stub: ApiServerStub, election: Election, kubeconfig: str, unused_tcp_port_factory: NewPort
) -> None:
    for name in ("w0", "w1"):
        await stub.put(f"{PODS}/{name}", member(name, 2))
    await election.renew("elsewhere_scheduler-2")
    async with running(kubeconfig, unused_tcp_port_factory, election=BESIDE) as extender:
        await extender.until_ready()
        await election.renew(OURS)
        await until_it_decides(extender)
        assert (await extender.filter(member("w0", 2), "n1"))["NodeNames"] == ["n1"]
        held = asyncio.create_task(extender.bind("w0", "n1"))
        await asyncio.sleep(0.1)
        await election.renew("elsewhere_scheduler-3")
        assert (await asyncio.wait_for(held, 5))["Error"]
        lists = ["at the start", "when it began to lead", "when it began anew"]
        await eventually(lambda: [call.path for call in stub.calls_of("list")].count("/api/v1/pods") == len(lists))
        assert stub.calls_of("bind") == []


async def test_nothing_is_posted_once_the_lease_was_not_renewed_for_two_thirds_of_its_duration(
    stub: ApiServerStub, election: Election, kubeconfig: str, unused_tcp_port_factory: NewPort
) -> None:
    await stub.put(f"{PODS}/w0", member("w0", 1))
    await election.renew("elsewhere_scheduler-2")
    async with running(kubeconfig, unused_tcp_port_factory, election=BESIDE) as extender:
        await extender.until_ready()
        await election.renew(OURS)
        await until_it_decides(extender)
        await asyncio.sleep(DURATION_S * 2 / 3 + 0.1)
        assert (await extender.bind("w0", "n1"))["Error"]
        await election.renew(OURS)
        await until_it_decides(extender)
        assert stub.calls_of("bind") == []
        assert (await extender.filter(member("w0", 1), "n1"))["NodeNames"] == ["n1"]
        assert await extender.bind("w0", "n1") == {"Error": ""}


async def test_of_two_behind_a_service_one_is_ready_and_the_other_takes_over_when_it_is_gone(
    election: Election, kubeconfig: str, unused_tcp_port_factory: NewPort
) -> None:
    async with running(kubeconfig, unused_tcp_port_factory, election=SERVICE) as second:
        async with running(kubeconfig, unused_tcp_port_factory, election=SERVICE) as first:
            await eventually(lambda: bool(election.spec.get("holderIdentity")))
            await asyncio.sleep(0.5)
            ready = [each for each in (first, second) if await each.is_ready()]
            assert len(ready) == 1
            assert await decides(ready[0])
        await until_it_decides(second)
        assert await second.is_ready()
    assert election.spec["leaseTransitions"] <= 1, "nobody took it from one who renewed it"


@pytest.mark.usefixtures("election")
async def test_a_service_whose_lease_cannot_be_renewed_stops_deciding_before_it_runs_out(
    stub: ApiServerStub, kubeconfig: str, unused_tcp_port_factory: NewPort
) -> None:
    async with running(kubeconfig, unused_tcp_port_factory, election=SERVICE) as extender:
        await until_it_decides(extender)
        stub.answer_next("update", *[no_answer] * 3)
        await asyncio.sleep(SHORT_S * 0.9)
        assert not await decides(extender)
        assert not await extender.is_ready()


async def test_of_a_gang_that_goes_through_all_bindings_are_posted_though_it_is_told_to_stop(
    stub: ApiServerStub, election: Election, kubeconfig: str, unused_tcp_port_factory: NewPort
) -> None:
    slowly = asyncio.Event()

    async def bind_late(request: Any) -> Any:
        await slowly.wait()
        return await stub.act(request)

    stub.answer_next("bind", bind_late, bind_late)
    for name in ("w0", "w1"):
        await stub.put(f"{PODS}/{name}", member(name, 2))
    async with running(kubeconfig, unused_tcp_port_factory, USUAL_GANGS, SERVICE) as extender:
        await until_it_decides(extender)
        for name in ("w0", "w1"):
            assert (await extender.filter(member(name, 2), "n1"))["NodeNames"] == ["n1"]
        binds = [asyncio.create_task(extender.bind(name, "n1")) for name in ("w0", "w1")]
        await eventually(lambda: len(stub.calls_of("bind")) == 2)
        os.kill(os.getpid(), signal.SIGTERM)
        await asyncio.sleep(0.1)
        assert "being stopped" in (await extender.filter(member("w2", 1), "n1"))["Error"]
        assert election.spec["holderIdentity"], "the lease is kept until they are bound"
        slowly.set()
        assert [await bind for bind in binds] == [{"Error": ""}] * 2
        await eventually(lambda: election.spec["holderIdentity"] == "")
