"""Bind calls of pods that ask for GPUs: the Binding says which, and no two calls use one twice."""

import asyncio
import json

import pytest
from msgspec import structs

from extender.effects.binding import Binding, BindOutcome
from extender.model.device import CardDialect, CardManager, CardNeed, CardRequest, CardShare
from extender.model.node import Node
from extender.model.pod import Pod, PodShape
from extender.wire.cards.handshakes import given_cards
from tests.bind_rig import BindRig, KeptBindings
from tests.builders import GIB, a_node, a_pod, a_shape, a_share, some_cards, whole_gpus
from tests.rig import BINDING_S, FreeLocks
from tests.wire.cards.given_pods import bound_pod, inventory

HALF = a_shape(gpu=0, cards=a_share(500))
ALL_OF_A_CARD = a_shape(gpu=0, cards=a_share(0, memory_bytes=16 * GIB, dialect=CardDialect.GPUSHARE))
WHOLE = a_shape(gpu=1, cards=a_share(1000, dialect=CardDialect.WHOLE))


def a_gpu_node(name: str, cards: int = 2, manager: CardManager = CardManager.OWN) -> Node:
    return a_node(name, gpu=cards, inventory=some_cards(cards, prefix=f"GPU-{name}", manager=manager))


class SlowBindings(KeptBindings):
    """Answers when it is let."""

    def __init__(self) -> None:
        super().__init__()
        self.answers = asyncio.Event()

    async def bind(self, binding: Binding, *, deadline_s: float) -> BindOutcome:
        await self.answers.wait()
        return await super().bind(binding, deadline_s=deadline_s)


def visible(rig: BindRig, pod: Pod) -> str:
    return rig.binder.annotations[pod.name]["gang-extender.io/visible-devices"]


def used(rig: BindRig, node: str) -> dict[str, int]:
    return {key: use.core_milli for key, use in rig.cluster.snapshot().rooms[node].taken_cards.items()}


async def test_a_gangs_members_are_bound_on_the_cards_that_were_planned_for_them() -> None:
    rig = BindRig(a_gpu_node("n1"))
    pods = [a_pod(f"w{i}", gang="g", min_available=4, shape=HALF) for i in range(4)]
    nodes = rig.let_through(*pods)
    planned = {pod.name: rig.slot(pod).cards[0].uuid for pod in pods}
    calls = [rig.call(pod, node) for pod, node in zip(pods, nodes, strict=True)]
    await rig.settle()
    assert [await call for call in calls] == [""] * 4
    assert {pod.name: visible(rig, pod) for pod in pods} == planned
    record = json.loads(rig.binder.annotations["w0"]["gang-extender.io/devices"])
    assert (record["node"], record["cards"][0]["milli"]) == ("n1", 500)


async def test_a_share_of_a_card_for_a_pod_without_a_gang() -> None:
    rig = BindRig(a_gpu_node("n1"))
    pod = a_pod("single", shape=HALF)
    (node,) = rig.let_through(pod)
    call = rig.call(pod, node)
    await rig.settle()
    assert await call == ""
    assert visible(rig, pod) == "GPU-n1-0"


@pytest.mark.parametrize("is_gone", [False, True], ids=["bound", "deleted"])
async def test_a_call_that_hears_late_what_became_of_its_pod_holds_no_room_for_it(*, is_gone: bool) -> None:
    """An earlier post was landed, or the pod was deleted, while this call waited for the room to get free."""
    rig = BindRig(a_gpu_node("n1", cards=2, manager=CardManager.KOORDINATOR))
    crowd = a_pod("crowd", shape=a_shape(gpu=2, cards=whole_gpus(2)), node="n1")
    pod = a_pod("single", shape=WHOLE)
    rig.create(crowd, pod)
    call = rig.call(pod, "n1")
    await rig.settle()
    assert not call.done()
    if is_gone:
        rig.delete(pod)
    else:
        rig.bind(pod, "n1")
    rig.delete(crowd)
    await rig.answer_to(call)
    await rig.settle()
    assert rig.reserved() == 0


async def test_no_room_is_held_for_a_further_member_that_is_being_deleted_while_its_call_waits() -> None:
    """The API server binds no such pod, and a finalizer may keep it there for long."""
    rig = BindRig(a_gpu_node("n1", cards=2, manager=CardManager.KOORDINATOR))
    crowd = a_pod("crowd", shape=a_shape(gpu=2, cards=whole_gpus(2)), node="n1", gang="g", min_available=1)
    pod = a_pod("late", shape=WHOLE, gang="g", min_available=1)
    rig.create(crowd, a_pod("w0", gpu=0, node="n1", gang="g", min_available=1), pod)
    rig.later()
    rig.binder.failing = {"late"}
    call = rig.call(pod, "n1")
    await rig.settle()
    assert not call.done()
    rig.terminate(pod)
    rig.delete(crowd)
    await rig.answer_to(call)
    assert rig.reserved() == 0


async def test_after_a_restart_nobody_is_bound_on_the_card_that_a_gang_in_part_still_needs() -> None:
    """The call comes before the first cycle."""
    node = a_gpu_node("n1", cards=2, manager=CardManager.KOORDINATOR)
    before, rig = BindRig(node), BindRig(node)
    first, second = (a_pod(f"w{i}", gang="g", min_available=2, shape=WHOLE) for i in range(2))
    nodes = before.let_through(first, second)
    single = a_pod("single", shape=WHOLE)
    rig.create(before.bind(first, nodes[0]), second, single)

    assert await rig.call(single, "n1") != ""
    assert rig.node_for(second) == "n1"


async def test_of_two_calls_for_the_last_whole_card_one_is_refused() -> None:
    rig = BindRig(a_gpu_node("n1", cards=1, manager=CardManager.KOORDINATOR))
    first, second = a_pod("first", shape=WHOLE), a_pod("second", shape=WHOLE)
    rig.create(first, second)
    calls = [rig.call(first, "n1"), rig.call(second, "n1")]
    assert await rig.answer_to(calls[1]) == (
        'node "n1" has no room for pod "default/second" any more: Insufficient nvidia.com/gpu'
    )
    assert await calls[0] == ""
    assert rig.binder.posted == ["first"]


async def test_a_whole_card_is_held_until_the_binding_is_seen() -> None:
    rig = BindRig(a_gpu_node("n1", manager=CardManager.KOORDINATOR))
    pod = a_pod("single", shape=WHOLE)
    rig.create(pod)
    assert await rig.call(pod, "n1") == ""
    assert used(rig, "n1") == {"GPU-n1-0": 1000}
    rig.bind(pod, "n1")
    assert used(rig, "n1") == {"GPU-n1-0": 1000}
    assert rig.reserved() == 0
    rig.delete(pod)
    assert used(rig, "n1") == {}


async def test_a_whole_card_is_free_again_when_the_binding_fails() -> None:
    rig = BindRig(a_gpu_node("n1", cards=1, manager=CardManager.KOORDINATOR))
    pod, other = a_pod("single", shape=WHOLE), a_pod("other", shape=WHOLE)
    rig.create(pod, other)
    rig.binder.failing = {"single"}
    assert await rig.call(pod, "n1") == "the API server said no"
    assert rig.reserved() == 0
    assert await rig.call(other, "n1") == ""


async def test_where_the_kubelet_picks_the_cards_kube_scheduler_may_see_sooner_that_one_is_free() -> None:
    rig = BindRig(a_gpu_node("n1", cards=1))
    gone, next_one = a_pod("gone", shape=WHOLE), a_pod("next", shape=WHOLE)
    rig.create(gone, next_one)
    rig.bind(gone, "n1")
    call = rig.call(next_one, "n1")
    await rig.settle()
    assert not call.done()
    rig.delete(gone)
    assert await call == ""
    assert rig.binder.annotations == {"next": {}}
    rig.bind(next_one, "n1")
    assert rig.cluster.snapshot().rooms["n1"].unknown_cards == 1


async def test_the_kubelet_must_not_pick_where_shares_were_chosen_since() -> None:
    rig = BindRig(a_gpu_node("n1"))
    whole, half = a_pod("whole", shape=WHOLE), a_pod("half", shape=HALF)
    rig.create(whole)
    rig.let_through(half)
    refusal = await rig.call(whole, "n1")
    assert refusal.startswith('node "n1" has no room for pod "default/whole" any more: ')
    assert rig.binder.posted == []


async def test_a_pod_is_not_bound_on_a_card_that_broke_while_it_waited_for_its_turn() -> None:
    node = a_gpu_node("n1", cards=2, manager=CardManager.GPUSHARE)
    rig = BindRig(node)
    pods = [a_pod(f"w{i}", gang="g", min_available=2, shape=ALL_OF_A_CARD) for i in range(2)]
    nodes = rig.let_through(*pods)
    calls = [rig.call(pod, name) for pod, name in zip(pods, nodes, strict=True)]
    await rig.settle()
    assert rig.binder.posted == ["w0"]
    (share,) = rig.slot(pods[1]).cards
    assert node.inventory is not None
    cards = tuple(structs.replace(card, healthy=card.key != share.uuid) for card in node.inventory.cards)
    rig.cluster.upsert_node(structs.replace(node, inventory=structs.replace(node.inventory, cards=cards)))
    rig.bind(pods[0], "n1")
    await rig.settle()
    assert await calls[0] == ""
    assert "have changed since some were chosen" in await calls[1]
    assert rig.binder.posted == ["w0"]


class SlowLocks(FreeLocks):
    """Stands in for the locks of nodes: they are taken when others have released theirs."""

    def __init__(self) -> None:
        super().__init__()
        self.free = asyncio.Event()

    async def take(self, lock: str, node: str, pod: Pod, *, deadline_s: float) -> str:
        await self.free.wait()
        return await super().take(lock, node, pod, deadline_s=deadline_s)


async def test_a_pod_is_not_bound_on_a_card_that_broke_while_it_waited_for_the_nodes_lock() -> None:
    node = a_gpu_node("n1", cards=1, manager=CardManager.HAMI)
    rig = BindRig(node)
    locks = SlowLocks()
    rig.lock_with(locks)
    pod = a_pod("w0", gang="g", min_available=1, shape=WHOLE)
    rig.let_through(pod)
    call = rig.call(pod, "n1")
    await rig.settle()
    assert node.inventory is not None
    cards = tuple(structs.replace(card, healthy=False) for card in node.inventory.cards)
    rig.cluster.upsert_node(structs.replace(node, inventory=structs.replace(node.inventory, cards=cards)))
    locks.free.set()
    await rig.settle()
    assert "have changed since some were chosen" in await call
    assert (rig.binder.posted, locks.released) == ([], ["w0"])


async def test_a_pod_is_not_bound_to_a_node_that_went_while_it_waited_for_its_turn() -> None:
    rig = BindRig(a_gpu_node("n1", cards=2, manager=CardManager.GPUSHARE))
    pods = [a_pod(f"w{i}", gang="g", min_available=2, shape=ALL_OF_A_CARD) for i in range(2)]
    nodes = rig.let_through(*pods)
    calls = [rig.call(pod, name) for pod, name in zip(pods, nodes, strict=True)]
    await rig.settle()
    rig.cluster.remove_node("n1")
    rig.bind(pods[0], "n1")
    await rig.settle()
    assert "have changed since some were chosen" in await calls[1]
    assert rig.binder.posted == ["w0"]


@pytest.mark.parametrize("shape", [WHOLE, HALF])
async def test_a_pod_is_not_bound_to_a_node_that_is_gone_where_nobody_could_say_its_cards(shape: PodShape) -> None:
    rig = BindRig(a_gpu_node("n1", manager=CardManager.KOORDINATOR if shape is WHOLE else CardManager.OWN))
    pod = a_pod("single", shape=shape)
    rig.create(pod)
    assert rig.ask(pod).accepted
    rig.cluster.remove_node("n1")
    assert await rig.call(pod, "n1")
    assert rig.binder.posted == []


async def test_a_card_is_not_given_away_while_its_pod_may_still_be_bound_there() -> None:
    nodes = [a_gpu_node(name, cards=1, manager=CardManager.KOORDINATOR) for name in ("n1", "n2")]
    rig = BindRig(*nodes)
    binder = SlowBindings()
    rig.post_with(binder)
    pod, other = a_pod("single", shape=WHOLE), a_pod("other", shape=WHOLE)
    rig.create(pod, other)
    first = rig.call(pod, "n1")
    await rig.settle()
    again = rig.call(pod, "n2")  # of a kube-scheduler that knows nothing of the first call
    await rig.settle()
    assert 'may be bound to node "n1" by now' in await again
    assert used(rig, "n1") == {"GPU-n1-0": 1000}
    assert "any more" in await rig.answer_to(rig.call(other, "n1"))
    binder.answers.set()
    assert await first == ""
    assert used(rig, "n2") == {}


async def test_a_call_that_is_repeated_after_the_pod_was_bound_is_answered_without_another_card() -> None:
    rig = BindRig(a_gpu_node("n1", manager=CardManager.KOORDINATOR))
    pod = a_pod("single", shape=WHOLE)
    rig.create(pod)
    await rig.call(pod, "n1")
    rig.bind(pod, "n1")
    assert await rig.call(rig.cluster.pods[pod.uid], "n1") == ""
    assert used(rig, "n1") == {"GPU-n1-0": 1000}


async def test_a_pod_whose_fate_is_unknown_keeps_its_card_until_its_time_is_over() -> None:
    rig = BindRig(a_gpu_node("n1", cards=1, manager=CardManager.KOORDINATOR))
    pod = a_pod("single", shape=WHOLE)
    rig.create(pod)
    rig.binder.unknown = {"single"}
    await rig.call(pod, "n1")
    assert used(rig, "n1") == {"GPU-n1-0": 1000}
    rig.later(BINDING_S + 1)
    assert used(rig, "n1") == {}


async def test_a_pod_whose_fate_is_unknown_is_tried_on_no_other_node_meanwhile() -> None:
    rig = BindRig(*[a_gpu_node(name, cards=1, manager=CardManager.KOORDINATOR) for name in ("n1", "n2")])
    pod = a_pod("single", shape=WHOLE)
    rig.create(pod)
    rig.binder.unknown = {"single"}
    await rig.call(pod, "n1")
    assert rig.node_for(pod) == "n1"
    assert 'may be bound to node "n1" by now' in await rig.call(pod, "n2")
    assert list(rig.ask(pod, ["n2"]).accepted) == ["n2"], "it is refused at bind, in an attempt that ends soon"
    rig.binder.unknown = set()
    assert await rig.call(pod, "n1") == ""
    assert used(rig, "n2") == {}


DIALECTS = {
    CardManager.OWN: CardDialect.KAI,
    CardManager.HAMI: CardDialect.HAMI,
    CardManager.GPUSHARE: CardDialect.GPUSHARE,
    CardManager.VOLCANO_VGPU: CardDialect.VOLCANO_VGPU,
    CardManager.VOLCANO_GPU: CardDialect.VOLCANO_GPU,
    CardManager.KOORDINATOR: CardDialect.KOORDINATOR,
}


@pytest.mark.parametrize(("manager", "dialect"), DIALECTS.items())
async def test_a_binding_that_is_seen_is_no_news_whoever_takes_the_card_to_the_container(
    manager: CardManager, dialect: CardDialect
) -> None:
    """Else every gang that waits would be planned again whenever a pod is bound."""
    uuids = manager not in (CardManager.GPUSHARE, CardManager.VOLCANO_GPU)
    rig = BindRig(a_node("n1", inventory=inventory(manager, uuids=uuids)))
    request = CardRequest(dialect, (CardNeed(memory_bytes=2 * GIB),))
    pod = a_pod("w0", gang="g", min_available=1, shape=a_shape(gpu=0, cards=request))
    (node,) = rig.let_through(pod)
    call = rig.call(pod, node)
    await rig.settle()
    assert await call == ""
    assert not rig.cluster.changes.room_freed
    seen = given_cards(bound_pod(rig.binder.annotations["w0"]), request)
    rig.create(structs.replace(pod, node_name="n1", cards=seen))
    assert not rig.cluster.changes.room_freed
    assert sum(use.memory_bytes for use in rig.cluster.snapshot().rooms["n1"].taken_cards.values()) == 2 * GIB


async def test_what_somebody_else_does_to_a_node_frees_nothing_of_a_pod_that_may_be_bound_there() -> None:
    rig = BindRig(a_gpu_node("n1"))
    pod, half = a_pod("single", shape=WHOLE), a_pod("half", shape=HALF)
    rig.create(pod)
    rig.binder.unknown = {"single"}
    assert await rig.call(pod, "n1")
    share = CardShare(0, "GPU-n1-0", 500)
    foreign = structs.replace(a_pod("foreign", shape=HALF, node="n1", scheduler_name="other"), cards=(share,))
    rig.create(foreign)
    rig.delete(foreign)
    rig.create(half)
    await rig.settle()
    assert rig.node_for(half) is None, "the kubelet may have given the other one any of the cards"
    rig.later(BINDING_S + 1)
    assert rig.node_for(half) == "n1"
