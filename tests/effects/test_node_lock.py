"""A node is locked for one pod at a time, whatever the API server and other schedulers do meanwhile."""

import asyncio
from datetime import UTC, datetime

import pytest
from aiohttp import web

from extender.apiserver import ApiServer
from extender.effects.node_lock import ENDING_S, NodeLocks
from extender.wire.cards.node_lock import LockUse
from tests.apiserver_stub import ApiServerStub, answer, break_off, no_answer
from tests.builders import a_pod, node_json

NODE = "/api/v1/nodes/n1"
LOCK = "hami.io/mutex.lock"
NOW_S = 1_767_323_045.0
NOW = "2026-01-02T03:04:05Z"
POD = a_pod("w0")
OURS = f"{NOW},default,w0"
THEIRS = f"{NOW},team,other"


class World:
    """What the locks ask: the time, and whose lock still counts."""

    def __init__(self) -> None:
        self.now_s = NOW_S
        self.uses = {("n1", "team", "other"): LockUse.WANTED}

    def use(self, node: str, namespace: str, name: str) -> LockUse:
        return self.uses.get((node, namespace, name), LockUse.OVER)


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def locks(api: ApiServer, world: World) -> NodeLocks:
    return NodeLocks(api, world.use, lambda: world.now_s, first_pause_s=0.01)


async def put_lock(stub: ApiServerStub, text: str | None) -> None:
    annotations = {"keep": "me"} if text is None else {"keep": "me", LOCK: text}
    await stub.put(NODE, node_json("n1", metadata={"annotations": annotations}))


def lock_of(stub: ApiServerStub) -> str | None:
    annotations: dict[str, str] = stub.objects[NODE]["metadata"]["annotations"]
    assert annotations["keep"] == "me"
    return annotations.get(LOCK)


async def take(locks: NodeLocks, within_s: float = 3.0) -> str:
    return await locks.take(LOCK, "n1", POD, deadline_s=asyncio.get_running_loop().time() + within_s)


async def test_a_free_node_is_locked_by_one_patch_of_the_version_that_was_read(
    stub: ApiServerStub, locks: NodeLocks
) -> None:
    await put_lock(stub, None)
    version = stub.objects[NODE]["metadata"]["resourceVersion"]
    assert await take(locks) == ""
    assert lock_of(stub) == OURS
    (patch,) = stub.calls_of("patch")
    assert patch.headers["Content-Type"] == "application/merge-patch+json"
    assert patch.body == {"metadata": {"resourceVersion": version, "annotations": {LOCK: OURS}}}


async def test_another_living_pods_lock_is_waited_for(stub: ApiServerStub, locks: NodeLocks) -> None:
    await put_lock(stub, THEIRS)
    taking = asyncio.create_task(take(locks))
    await asyncio.sleep(0.1)
    assert not taking.done()
    assert lock_of(stub) == THEIRS
    await put_lock(stub, None)
    assert await taking == ""
    assert lock_of(stub) == OURS


async def test_who_waits_in_vain_is_told_for_whom(stub: ApiServerStub, locks: NodeLocks) -> None:
    await put_lock(stub, THEIRS)
    assert await take(locks, within_s=0.1) == "it is locked for a pod of another namespace"
    assert lock_of(stub) == THEIRS


async def test_only_a_pod_of_the_same_namespace_is_named(stub: ApiServerStub, locks: NodeLocks, world: World) -> None:
    world.uses = {("n1", "default", "sibling"): LockUse.WANTED}
    await put_lock(stub, f"{NOW},default,sibling")
    assert await take(locks, within_s=0.1) == 'it is locked for pod "default/sibling"'


async def test_the_lock_of_a_pod_that_does_not_use_it_is_overwritten(
    stub: ApiServerStub, locks: NodeLocks, world: World
) -> None:
    await put_lock(stub, THEIRS)
    world.uses.clear()
    assert await take(locks) == ""
    assert lock_of(stub) == OURS


async def test_a_lock_that_is_about_to_be_released_is_overwritten_only_when_that_does_not_happen(
    stub: ApiServerStub, locks: NodeLocks, world: World
) -> None:
    await put_lock(stub, THEIRS)
    world.uses["n1", "team", "other"] = LockUse.ENDING
    taking = asyncio.create_task(take(locks))
    await asyncio.sleep(0.05)
    world.now_s += ENDING_S - 0.1
    await asyncio.sleep(0.2)
    assert lock_of(stub) == THEIRS
    world.now_s += 0.2
    assert await taking == ""


async def test_our_own_lock_from_before_a_restart_is_taken_over(stub: ApiServerStub, locks: NodeLocks) -> None:
    await put_lock(stub, "2026-01-02T03:04:00Z,default,w0")
    assert await take(locks) == ""
    assert lock_of(stub) == OURS


@pytest.mark.parametrize("text", ["", "soon", "soon,team,other", f"{NOW},team", f"{NOW},a,b,c", "2026-01-02T03:04:05"])
async def test_a_lock_that_makes_no_sense_locks_nothing(stub: ApiServerStub, locks: NodeLocks, text: str) -> None:
    await put_lock(stub, text)
    assert await take(locks) == ""


@pytest.mark.parametrize("owner", [",team,other", ""])
async def test_a_lock_counts_for_five_minutes(stub: ApiServerStub, locks: NodeLocks, owner: str) -> None:
    def at(age_s: float) -> str:
        return datetime.fromtimestamp(NOW_S - age_s, UTC).strftime("%Y-%m-%dT%H:%M:%S+00:00") + owner

    await put_lock(stub, at(299))
    assert "is locked" in await take(locks, within_s=0.1)
    await put_lock(stub, at(301))
    assert await take(locks) == ""


async def test_who_locks_the_node_between_look_and_patch_is_seen(stub: ApiServerStub, locks: NodeLocks) -> None:
    await put_lock(stub, None)

    async def overtake(request: web.Request) -> web.StreamResponse:
        await put_lock(stub, THEIRS)
        return await stub.act(request)

    stub.answer_next("patch", overtake)
    assert await take(locks, within_s=0.3) == "it is locked for a pod of another namespace"
    assert lock_of(stub) == THEIRS


async def test_faults_of_the_api_server_are_outlasted(stub: ApiServerStub, locks: NodeLocks) -> None:
    await put_lock(stub, None)
    stub.answer_next("get", answer(503, "not now"), break_off)
    stub.answer_next("patch", answer(500, "oops"), break_off, stub.act_unheard)
    assert await take(locks) == ""
    assert lock_of(stub) == OURS


async def test_an_api_server_that_is_silent_is_no_yes(stub: ApiServerStub, locks: NodeLocks) -> None:
    await put_lock(stub, None)
    stub.answer_next("get", no_answer)
    assert await take(locks, within_s=0.1) == "the API server did not answer in time"


async def test_what_the_server_forbids_is_not_tried_again(stub: ApiServerStub, locks: NodeLocks) -> None:
    await put_lock(stub, None)
    stub.answer_next("patch", answer(403, "you may not"))
    assert await take(locks) == "you may not"
    assert len(stub.calls_of("patch")) == 1


async def test_a_node_that_is_gone_is_not_locked(stub: ApiServerStub, locks: NodeLocks) -> None:
    assert stub.objects == {}
    assert await take(locks) == "not found"


async def test_our_lock_is_released_and_nobody_elses(stub: ApiServerStub, locks: NodeLocks) -> None:
    await put_lock(stub, OURS)
    await locks.release(LOCK, "n1", POD)
    assert lock_of(stub) is None
    await put_lock(stub, THEIRS)
    await locks.release(LOCK, "n1", POD)
    assert lock_of(stub) == THEIRS
    assert len(stub.calls_of("patch")) == 1


async def test_a_heartbeat_between_look_and_patch_does_not_keep_the_lock(stub: ApiServerStub, locks: NodeLocks) -> None:
    await put_lock(stub, OURS)

    async def overtake(request: web.Request) -> web.StreamResponse:
        await put_lock(stub, OURS)
        return await stub.act(request)

    stub.answer_next("patch", overtake)
    await locks.release(LOCK, "n1", POD)
    assert lock_of(stub) is None


async def test_a_release_that_fails_raises_nothing(stub: ApiServerStub, locks: NodeLocks) -> None:
    await put_lock(stub, OURS)
    stub.answer_next("get", answer(500, "oops"), no_answer)
    stub.answer_next("patch", answer(500, "oops"))
    for _ in range(3):
        await locks.release(LOCK, "n1", POD)
    assert lock_of(stub) == OURS
