"""The rig with the bind verb: kube-scheduler's bind calls are tasks, and Bindings are kept instead of posted."""

import asyncio
from collections.abc import Callable

from extender.effects.binding import Binding, BindOutcome
from extender.model.node import Node
from extender.model.pod import Pod
from extender.model.topology import Level
from extender.verbs.bind import LATE_S, PostsBindings
from extender.wire.extender_v1 import BindingArgs
from tests.rig import FreeLocks, Rig


class KeptBindings:
    """Stands in for the binder: remembers what was posted, and fails where told to."""

    def __init__(self) -> None:
        self.posted: list[str] = []
        self.annotations: dict[str, dict[str, str]] = {}
        self.failing: set[str] = set()
        self.unknown: set[str] = set()

    async def bind(self, binding: Binding, *, deadline_s: float) -> BindOutcome:
        assert deadline_s > 0
        if binding.name in self.failing:
            return BindOutcome("failed", "the API server said no")
        if binding.name in self.unknown:
            return BindOutcome("unknown", "the API server did not say")
        self.posted.append(binding.name)
        self.annotations[binding.name] = dict(binding.annotations)
        return BindOutcome("bound")


class BindRig(Rig):
    """A rig with the bind verb."""

    def __init__(self, *nodes: Node, levels: tuple[Level, ...] = ()) -> None:
        super().__init__(*nodes, levels=levels)
        self.binder = KeptBindings()
        self.post_with(self.binder)

    def post_with(self, binder: PostsBindings) -> None:
        self.verb = self.bind_with(binder)

    def lock_with(self, locks: FreeLocks) -> None:
        self.locks = locks
        self.post_with(self.binder)

    def call(self, pod: Pod, node: str, is_connected: Callable[[], bool] = lambda: True) -> asyncio.Task[str]:
        args = BindingArgs(pod.namespace, pod.name, pod.uid, node)
        return asyncio.create_task(self.verb.bind(args, is_connected, lambda: self.now_s))

    async def settle(self) -> None:
        """Let calls and cycle go on until nothing moves."""
        for _ in range(10):
            await asyncio.sleep(0)
            self.later()

    async def answer_to(self, call: asyncio.Task[str]) -> str:
        """Return the call's answer once the watch has had its time to show who is gone."""
        await self.settle()
        self.now_s += LATE_S
        return await call

    def let_through(self, *pods: Pod) -> list[str]:
        self.create(*pods)
        nodes = [self.node_for(pod) for pod in pods]
        assert all(nodes)
        return [node for node in nodes if node]
