"""A write waits until we are sure that we lead, and a read does not."""

import asyncio

import pytest

from extender.apiserver import ApiServer
from extender.effects.binding import Binder, Binding
from extender.effects.fence import Fence
from extender.effects.lease import Lead
from extender.model.lease import LeaseRecord
from extender.observe.metrics import Metrics
from extender.state.leadership import Leadership
from tests.apiserver_stub import ApiServerStub
from tests.builders import pod_json, uid_of

POD = "/api/v1/namespaces/default/pods/w0"
BINDING = Binding("default", "w0", uid_of("w0"), "n1")


class Clock:
    """Stands in for the steady clock; it jumps when the process was stopped."""

    now_s = 100.0


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def lead(clock: Clock) -> Lead:
    lead = Lead(Leadership(lambda holder: holder == "us"), lambda: clock.now_s)
    lead.leadership.see(None, 99.0, 99.0)
    lead.leadership.see(LeaseRecord("us", 15.0, "1", 0), 100.0, 100.0)
    return lead


@pytest.fixture
def binder(api: ApiServer, lead: Lead, metrics: Metrics) -> Binder:
    return Binder(Fence(api, lambda: lead.until(lambda: lead.is_sure)), metrics)


def soon(seconds: float) -> float:
    return asyncio.get_running_loop().time() + seconds


async def test_who_leads_binds(stub: ApiServerStub, binder: Binder) -> None:
    await stub.put(POD, pod_json("w0"))
    assert (await binder.bind(BINDING, deadline_s=soon(5))).is_bound


async def test_who_was_stopped_for_longer_than_his_lease_posts_nothing_but_may_look(
    stub: ApiServerStub, binder: Binder, clock: Clock
) -> None:
    await stub.put(POD, pod_json("w0"))
    clock.now_s += 60.0
    assert (await binder.bind(BINDING, deadline_s=soon(0.2))).result == "failed"
    assert stub.calls_of("bind") == []
    assert len(stub.calls_of("get")) == 1


async def test_a_binding_that_waits_is_posted_when_the_lease_turns_out_to_be_ours_still(
    stub: ApiServerStub, binder: Binder, clock: Clock, lead: Lead
) -> None:
    await stub.put(POD, pod_json("w0"))
    clock.now_s += 60.0
    bound = asyncio.create_task(binder.bind(BINDING, deadline_s=soon(5)))
    await asyncio.sleep(0.05)
    assert stub.calls_of("bind") == []
    lead.leadership.see(LeaseRecord("us", 15.0, "1", 0), clock.now_s, clock.now_s)
    lead.leadership.see(LeaseRecord("us", 15.0, "2", 0), clock.now_s, clock.now_s)
    lead.tell()
    assert (await bound).is_bound
