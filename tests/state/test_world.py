"""A small world around the extender, in which anything happens in any order.

It has an API server whose watch lags, a kube-scheduler with a view of its own (queue, back-off, assumed pods, lost
connections, filters that refuse nodes for reasons we do not know), and posts that fail. Some pods are held by our
gate, whose removal may get lost, and the extender is killed and started again. Whatever happens: no gang is ever bound
in part but for a failed post or a deleted member, no node is overcommitted, no call is held for ever, the cycle comes
to rest, and once the world is fair again no gang waits that fits.
"""

import asyncio
from collections import Counter
from typing import Any, Literal

from hypothesis import Phase, note, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from msgspec import structs

from extender.effects.binding import Binding, BindOutcome
from extender.model.claim import GangClaim, GangKey
from extender.model.gang import Gang
from extender.model.pod import Pod
from extender.state.reservations import Stage
from extender.wire.extender_v1 import BindingArgs
from tests.builders import GPU, a_node, a_pod
from tests.rig import Rig

Result = Literal["bound", "failed", "gone"]

MIN_AVAILABLE = {"a": 2, "b": 3, "c": 4}
"""By gang; the world has room for some of them."""


def gang_of(pod: Pod) -> str:
    """Return the key of the pod's gang; empty where it has none."""
    return pod.gang.key if isinstance(pod.gang, GangClaim) else ""


class World(RuleBasedStateMachine):
    """The world of up to a hundred nodes, all of which kube-scheduler offers."""

    samples = False

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.begin(1000.0)
        self.serial = 0
        self.nodes: dict[str, int] = {}
        self.truth: dict[str, Pod] = {}
        self.lag: list[Any] = []  # watch events not yet delivered
        self.assumed: dict[str, str] = {}
        self.queue: set[str] = set()
        self.backoff: dict[str, float] = {}
        self.calls: dict[str, tuple[asyncio.Task[str], list[bool], str, float]] = {}
        self.posts: dict[str, tuple[asyncio.Future[BindOutcome], Binding]] = {}
        self.refusing: set[tuple[str, str]] = set()
        self.excused: set[str] = set()
        self.tasks: list[asyncio.Task[str]] = []
        for _ in range(3):
            self._node(2)
        if self.samples:
            for _ in range(100):
                self._node(0)

    def begin(self, now_s: float) -> None:
        """Start an extender that knows nothing yet."""
        self.rig = Rig()
        self.rig.now_s = now_s
        self.verb = self.rig.bind_with(self)
        self.seen_nominations = 0

    def teardown(self) -> None:
        for task in self.tasks:
            task.cancel()
        self.loop.run_until_complete(self._end())
        self.loop.close()

    async def _end(self) -> None:
        await asyncio.gather(*self.tasks, return_exceptions=True)

    # --- the binder
    async def bind(self, binding: Binding, *, deadline_s: float) -> BindOutcome:
        assert deadline_s > self.rig.now_s
        future: asyncio.Future[BindOutcome] = self.loop.create_future()
        self.posts[binding.uid] = (future, binding)
        return await future

    def pump(self) -> None:
        for _ in range(4):
            self.loop.run_until_complete(asyncio.sleep(0))
        self._finish_calls()

    def step(self, seconds: float = 0.0) -> None:
        self.rig.now_s += seconds
        self.rig.cycle.step(self.rig.now_s)
        self.pump()
        self._deliver_nominations()

    # --- the world's own moves
    def _next(self) -> int:
        self.serial += 1
        return self.serial

    def _node(self, gpu: int) -> None:
        name = f"n{self._next():03}"
        self.nodes[name] = gpu
        self.rig.cluster.upsert_node(a_node(name, gpu=gpu))

    def _write(self, pod: Pod) -> None:
        self.truth[pod.uid] = pod
        self.lag.append(pod)

    def _deliver(self, count: int | None = None) -> None:
        now, self.lag = (self.lag, []) if count is None else (self.lag[:count], self.lag[count:])
        for event in now:
            if isinstance(event, Pod):
                self.rig.cluster.upsert_pod(event)
            else:
                self.rig.cluster.remove_pod(event[0])

    def _deliver_nominations(self) -> None:
        for nomination in self.rig.nominations[self.seen_nominations :]:
            pod = self.truth.get(nomination.uid)
            if pod is not None and not pod.node_name:
                assert not pod.held, "kube-scheduler does not know it yet"
                self._write(structs.replace(pod, nominated_node=nomination.node))
                if pod.uid not in self.backoff and pod.uid not in self.assumed:
                    self.queue.add(pod.uid)
        self.seen_nominations = len(self.rig.nominations)

    def _write_releases(self, count: int | None = None) -> None:
        asked = self.rig.releases[:count]
        del self.rig.releases[:count]
        for release in asked:
            pod = self.truth.get(release.uid)
            if pod is not None and pod.held and self.rig.cycle.releases.is_wanted(release.uid):
                self._write(structs.replace(pod, held=False))
                self.queue.add(pod.uid)

    def _finish_calls(self) -> None:
        for uid, (task, _, _, _) in tuple(self.calls.items()):
            if task.done():
                problem = task.result()
                del self.calls[uid]
                self.assumed.pop(uid, None)
                pod = self.truth.get(uid)
                if problem and pod is not None and not pod.node_name:
                    self._write(structs.replace(pod, turned_away=True, nominated_node=""))
                    self.backoff[uid] = self.rig.now_s + 5
                if not problem:
                    assert pod is None or pod.node_name, "success without a Binding"
                    self._wake()

    def _wake(self) -> None:
        self.queue.update(
            uid for uid, pod in self.truth.items()
            if not (pod.node_name or pod.held or uid in self.assumed or uid in self.backoff)
        )  # fmt: skip

    def free(self, node: str) -> int:
        used = sum(pod.node_name == node for pod in self.truth.values())
        used += sum(
            where == node and not self.truth[uid].node_name for uid, where in self.assumed.items() if uid in self.truth
        )
        return self.nodes[node] - used

    def _fails(self, uid: str, node: str) -> bool:
        return (gang_of(self.truth[uid]), node) in self.refusing or self.free(node) < 1

    def _try(self, uid: str, sample: list[str] | None = None) -> None:
        self.queue.discard(uid)
        pod = self.truth[uid]
        nominated = pod.nominated_node
        rounds = []
        if nominated and nominated in self.nodes and not self._fails(uid, nominated):
            rounds.append([nominated])
        rounds.append([n for n in (sample or sorted(self.nodes)) if not self._fails(uid, n)])
        for offered in rounds:
            if not offered:
                continue
            answer = self.rig.ask(pod, offered, nominated)
            assert set(answer.accepted) <= set(offered)
            if answer.accepted:
                self.assumed[uid] = answer.accepted[0]
                return
        self._write(structs.replace(pod, turned_away=True, nominated_node=""))

    def _pick(self, data: st.DataObject, uids: Any) -> str | None:
        names = sorted(uids)
        return data.draw(st.sampled_from(names)) if names else None

    # --- rules
    @rule(gang=st.sampled_from("abc"), count=st.integers(1, 3), held=st.booleans())
    def create(self, gang: str, count: int, held: bool) -> None:
        low = MIN_AVAILABLE[gang]
        for _ in range(count):
            number = self._next()
            pod = a_pod(f"{gang}{number:03}", gang=gang, min_available=low, created_at=number, held=held)
            self._write(pod)
            if not held:
                self.queue.add(pod.uid)

    @rule(count=st.integers(1, 2))
    def write_releases(self, count: int) -> None:
        self._write_releases(count)

    @rule()
    def lose_releases(self) -> None:
        self.rig.releases.clear()

    @rule()
    def kill_and_start_again(self) -> None:
        for uid in tuple(self.posts):
            self._settle(uid, "bound")
        for uid, (task, *_) in self.calls.items():
            task.cancel()
            self.assumed.pop(uid, None)
            self.backoff[uid] = self.rig.now_s + 5
        self.calls.clear()
        self.lag.clear()
        self.begin(self.rig.now_s)
        for name, gpu in self.nodes.items():
            self.rig.cluster.upsert_node(a_node(name, gpu=gpu))
        self.rig.cluster.replace_pods(self.truth.values())

    @rule(data=st.data())
    def schedule(self, data: st.DataObject) -> None:
        uid = self._pick(data, self.queue)
        if uid:
            sample = None
            if self.samples:
                sample = data.draw(st.lists(st.sampled_from(sorted(self.nodes)), min_size=1, max_size=5, unique=True))
            self._try(uid, sample)

    @rule(data=st.data())
    def call_bind(self, data: st.DataObject) -> None:
        uid = self._pick(data, [u for u in self.assumed if u not in self.calls])
        if uid:
            self._call(uid)

    def _call(self, uid: str) -> None:
        pod, connected = self.truth[uid], [True]
        args = BindingArgs(pod.namespace, pod.name, uid, self.assumed[uid])
        task = self.loop.create_task(self.verb.bind(args, lambda: connected[0], lambda: self.rig.now_s))
        self.tasks.append(task)
        self.calls[uid] = (task, connected, self.assumed[uid], self.rig.now_s)
        self.pump()

    @rule(data=st.data())
    def connection_lost(self, data: st.DataObject) -> None:
        """kube-scheduler restarts for this pod: the old call goes on without it."""
        uid = self._pick(data, [u for u in self.calls if u not in self.posts])
        if uid:
            self.calls.pop(uid)[1][0] = False
            self.assumed.pop(uid)
            if uid in self.truth:
                self.queue.add(uid)

    @rule(data=st.data(), result=st.sampled_from(["bound", "bound", "bound", "failed"]))
    def settle_post(self, data: st.DataObject, result: Result) -> None:
        uid = self._pick(data, self.posts)
        if uid:
            self._settle(uid, result)

    def _settle(self, uid: str, result: Result) -> None:
        future, binding = self.posts.pop(uid)
        pod = self.truth.get(uid)
        if pod is None:
            result = "gone"
        if result == "bound" and pod is not None:
            assert not pod.node_name or pod.node_name == binding.node
            self._write(structs.replace(pod, node_name=binding.node))
        if result == "failed" and pod is not None:
            self.excused.add(gang_of(pod))
        future.set_result(BindOutcome(result, "" if result == "bound" else "no"))
        self.pump()

    @rule(count=st.integers(1, 4))
    def watch(self, count: int) -> None:
        self._deliver(count)

    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        uid = self._pick(data, self.truth)
        if uid:
            pod = self.truth.pop(uid)
            self.excused.add(gang_of(pod))
            self.queue.discard(uid)
            self.backoff.pop(uid, None)
            if uid not in self.calls:
                self.assumed.pop(uid, None)
            self.lag.append((uid,))
            if pod.node_name:
                self._wake()

    @rule(gang=st.sampled_from("abc"), data=st.data())
    def refuse(self, gang: str, data: st.DataObject) -> None:
        self.refusing.add((f"default/{gang}", data.draw(st.sampled_from(sorted(self.nodes)))))

    @rule()
    def refuse_no_more(self) -> None:
        self.refusing.clear()

    @rule(gpu=st.integers(1, 3))
    def join(self, gpu: int) -> None:
        if sum(1 for g in self.nodes.values() if g) < 6:
            self._node(gpu)
            self._wake()

    @rule(seconds=st.sampled_from([0.0, 0.5, 6.0, 12.0, 31.0, 61.0]))
    def wait(self, seconds: float) -> None:
        self._pass(seconds)

    def _pass(self, seconds: float) -> None:
        if seconds > 14:  # a post ends within 17 s
            for uid in tuple(self.posts):
                self._settle(uid, "bound")
        self.step(seconds)
        for uid, until in tuple(self.backoff.items()):
            if until <= self.rig.now_s:
                del self.backoff[uid]
                if uid in self.truth:
                    self.queue.add(uid)

    @rule()
    def everything_settles(self) -> None:
        """From here on the world is fair: nothing fails, nothing is refused, only what the extender does wakes."""
        self.refusing.clear()
        for _ in range(25):
            for _ in range(4):
                self._write_releases()
                self._deliver()
                for uid in tuple(self.posts):
                    self._settle(uid, "bound")
                for uid in sorted(self.queue):
                    if uid in self.truth and uid not in self.assumed:
                        self._try(uid)
                for uid in sorted(self.assumed):
                    if uid not in self.calls and uid in self.truth:
                        self._call(uid)
                self.step()
            self._pass(5.0)
        self._check_gangs()

    def _check_gangs(self) -> None:
        free = {n: self.free(n) for n in self.nodes}
        room = sum(free.values())
        for key in sorted(self.rig.cluster.gangs):
            gang = self.rig.cluster.gangs.get(key)
            if gang is None or gang.satisfied or gang.present < gang.min_available:
                assert gang is None or not gang.waiting or self._told(gang)
                continue
            need = gang.min_available - len(gang.bound)
            others = sum(len(held.slots) for held in self.rig.cluster.reservations if held.key != key)
            kept = self._kept_for_those_before(gang, free)
            note(f"{key} need {need} of {room} - {others} - {kept}")
            assert need > room - others - kept, f"{key} fits and waits for ever"
            assert self._told(gang)
        for pod in self.truth.values():
            gang = self.rig.cluster.gangs.get(GangKey(gang_of(pod)))
            assert not pod.held or gang is None or not gang.satisfied, f"{pod.name} is held for ever"

    def _kept_for_those_before(self, gang: Gang, free: dict[str, int]) -> int:
        marks = self.rig.cluster.earmarks.before(gang.seniority, gang.key)
        kept = Counter(placement.node for mark in marks for placement in mark.placements)
        return sum(min(count, free[node]) for node, count in kept.items())

    def _told(self, gang: Gang) -> bool:
        standing = self.rig.planner.standings.get(gang.key)
        return standing is not None or self.rig.cluster.reservations.get(gang.key) is not None or gang.satisfied

    # --- invariants
    @invariant()
    def never_partial(self) -> None:
        counts: dict[str, int] = {}
        for pod in self.truth.values():
            if pod.node_name or pod.uid in self.posts:
                counts[gang_of(pod)] = counts.get(gang_of(pod), 0) + 1
        for key, count in counts.items():
            low = MIN_AVAILABLE[key[-1]]
            assert key in self.excused or count >= low, f"{key} {count} < {low}"

    @invariant()
    def never_overcommitted(self) -> None:
        for node in self.nodes:
            bound = sum(pod.node_name == node for pod in self.truth.values())
            assert bound <= self.nodes[node]
            assert self.rig.cluster.snapshot().rooms[node].taken.get(GPU, 0) <= self.nodes[node] or self.lag

    @invariant()
    def fixed_point(self) -> None:
        cycle = self.rig.cycle
        for _ in range(5):
            cycle.step(self.rig.now_s)
        before = (len(self.rig.nominations), len(self.rig.announcements))
        changes = self.rig.cluster.changes
        busy = changes.room_freed or changes._to_plan or changes._gangs
        assert not busy, "still busy after five steps"
        cycle.step(self.rig.now_s)
        assert before == (len(self.rig.nominations), len(self.rig.announcements))
        deadline = self.rig.planner.next_deadline_s()
        assert deadline is None or deadline > self.rig.now_s, "deadline in the past"
        self.pump()
        self._deliver_nominations()

    @invariant()
    def no_call_is_held_for_ever(self) -> None:
        for uid, (_task, _c, _n, since) in self.calls.items():
            assert uid in self.posts or self.rig.now_s - since <= 73, "held for too long"

    @invariant()
    def held_slots_have_a_call(self) -> None:
        for held in self.rig.cluster.reservations:
            for slot in held.slots:
                if slot.stage is Stage.BINDING and slot.holder in self.truth:
                    pod = self.truth[slot.holder]
                    assert slot.holder in self.posts or pod.node_name, "BINDING for ever"


class Sampled(World):
    """The same on more than a hundred nodes, of which kube-scheduler offers a few at a time."""

    samples = True


TestWorld = World.TestCase
TestWorld.settings = settings(
    max_examples=80, stateful_step_count=50, deadline=None, phases=[Phase.explicit, Phase.reuse, Phase.generate]
)
TestSampled = Sampled.TestCase
TestSampled.settings = settings(
    max_examples=20, stateful_step_count=50, deadline=None, phases=[Phase.explicit, Phase.reuse, Phase.generate]
)
