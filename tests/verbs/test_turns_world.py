"""Whatever happens in whatever order: no plugin is sent two pods that it cannot tell apart, and calls are answered."""

import asyncio
from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from extender.model.device import CardDialect, CardManager, CardNeed, CardRequest
from extender.model.node import Node
from extender.model.pod import Pod
from extender.verbs.bind import TURN_AFTER_S
from tests.bind_rig import BindRig
from tests.builders import GIB, a_node, a_pod, a_shape, some_cards
from tests.rig import BINDING_S

NODES = ("n1", "n2")
STEPS = ("come", "come", "come", "show", "show", "take up", "delete", "finish", "fail", "unknown", "repeat", "later")


def a_gpushare_node(name: str) -> Node:
    return a_node(
        name, inventory=some_cards(2, memory_bytes=8 * GIB, manager=CardManager.GPUSHARE, prefix=f"GPU-{name}")
    )


class World:
    """Two nodes with gpushare's plugin, pods of two sizes, and an API server and a plugin that are played."""

    def __init__(self) -> None:
        self.rig = BindRig(*map(a_gpushare_node, NODES))
        self.calls: dict[str, tuple[asyncio.Task[str], float]] = {}
        self.nodes: dict[str, str] = {}
        """Where each pod was let through to last."""
        self.made = 0

    @property
    def pods(self) -> list[Pod]:
        return sorted(self.rig.cluster.pods.values(), key=lambda pod: pod.name)

    def bound_unseen(self) -> list[Pod]:
        """Return the pods that the API server has bound and no watch has shown."""
        return [pod for pod in self.pods if pod.name in self.rig.binder.posted and not pod.node_name]

    def step(self, what: str, which: int) -> None:
        match what:
            case "come":
                self.made += 1
                request = CardRequest(CardDialect.GPUSHARE, (CardNeed(memory_bytes=(1 + which % 2) * GIB),))
                pod = a_pod(f"p{self.made:03}", shape=a_shape(gpu=0, cards=request))
                self.rig.create(pod)
                self._let_through(pod)
            case "repeat":
                idle = [pod for pod in self.pods if not pod.node_name and pod.name not in self.rig.binder.posted]
                if idle:
                    self._let_through(_one(idle, which))
            case "show" if self.bound_unseen():
                pod = _one(self.bound_unseen(), which)
                slot = self.rig.cluster.reservations.slot_of(pod.uid)
                assert slot is not None, "its room is kept until it is seen"
                self.rig.create(structs.replace(pod, node_name=slot.node, cards=slot.cards, awaits_plugin=True))
            case "take up" | "finish":
                bound = [pod for pod in self.pods if pod.node_name and not pod.finished]
                if bound:
                    pod = _one(bound, which)
                    self.rig.create(structs.replace(pod, awaits_plugin=False, finished=what == "finish"))
            case "delete" if self.pods:
                self.rig.delete(_one(self.pods, which))
            case "fail" | "unknown":
                names = {f"p{self.made - which % 3:03}"}
                self.rig.binder.failing, self.rig.binder.unknown = (names, set()) if what == "fail" else (set(), names)
            case "later":
                self.rig.later(float(which))
            case _:  # there is nobody to do it to
                pass

    def _let_through(self, pod: Pod) -> None:
        """Ask for the pod, again perhaps, and have it bound where it may go, as kube-scheduler does."""
        node = self.nodes[pod.name] if pod.name in self.calls else self.rig.node_for(pod)
        if node is not None:
            self.nodes[pod.name] = node
            self.calls[pod.name] = self.rig.call(pod, node), self.rig.now_s

    def check(self) -> None:
        for name in NODES:
            room = self.rig.cluster.snapshot().rooms[name]
            assert all(use.memory_bytes <= 8 * GIB for use in room.taken_cards.values())
        on_the_way = Counter(
            (pod.node_name or self.nodes[pod.name], pod.shape)
            for pod in self.pods
            if (pod.node_name and pod.awaits_plugin and not pod.finished) or pod in self.bound_unseen()
        )
        assert all(count == 1 for count in on_the_way.values()), "the plugin could take one for the other"
        for name, (task, came_s) in tuple(self.calls.items()):
            assert task.done() or self.rig.now_s < came_s + BINDING_S + TURN_AFTER_S, "kube-scheduler would give up"
            if task.done():
                task.result()
                del self.calls[name]


def _one(pods: list[Pod], which: int) -> Pod:
    return pods[which % len(pods)]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(STEPS), st.integers(0, 20)), min_size=10, max_size=60))
def test_no_two_pods_of_a_size_are_on_their_way_to_a_node(steps: list[tuple[str, int]]) -> None:
    async def live() -> None:
        world = World()
        for what, which in steps:
            world.step(what, which)
            await world.rig.settle()
            world.check()
        world.rig.later(BINDING_S + TURN_AFTER_S)
        await world.rig.settle()
        world.check()
        assert not world.calls, "every call is answered"

    asyncio.run(live())
