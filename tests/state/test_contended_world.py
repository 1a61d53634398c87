"""The world of test_world, where room is contended: single pods come and go, and kube-scheduler preempts.

Gangs of several priorities want more than there is. kube-scheduler has candidates for preemption of its own, asks the
preempt verb, and kills exactly whom that answers; who is killed stands on its node for a while. Nodes are cordoned and
go. Whatever happens: nobody dies for a gang that would not run then, nobody dies who matters as much, room is kept
only for gangs that wait, and once nobody new comes, everybody who fits an empty cluster has his turn.
"""

from collections.abc import Collection, Iterable

from hypothesis import Phase, note, settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, rule
from msgspec import Struct, structs

from extender.model.claim import GangKey, Terms
from extender.model.disruption_budget import DisruptionBudget
from extender.model.gang import Gang
from extender.model.pod import Pod, Requirement
from extender.state.membership import key_of
from extender.state.reservations import Stage
from extender.verbs.preempt import Preempt
from extender.wire.extender_v1 import PreemptionArgs, Victims
from tests.builders import GPU, a_node, a_pod
from tests.state.test_world import Result, World

LEFTOVER_S = 300.0
"""After so long kube-scheduler tries again whoever sleeps, whatever it sleeps for."""


class Kind(Struct, frozen=True):
    """What every member of a gang has in common."""

    min_available: int
    priority: int = 0
    gpu: int = 1
    terms: Terms = Terms(waiting_s=60.0)


GANGS = {
    "a": Kind(2, priority=10),
    "b": Kind(3),
    "c": Kind(2, priority=20, gpu=2),
    "d": Kind(4, priority=0, terms=Terms(waiting_s=60.0, strict=False)),
    "e": Kind(1, priority=5, terms=Terms(waiting_s=60.0, groups=(GangKey("default/e"), GangKey("default/f")))),
    "f": Kind(2, priority=10, terms=Terms(waiting_s=60.0, groups=(GangKey("default/e"), GangKey("default/f")))),
}
BUDGET = DisruptionBudget("default", "x", (Requirement("app", "In", ("x",)),), 1)


def gpu_of(pod: Pod) -> int:
    return dict(pod.shape.requests)[GPU]


class Contended(World):
    """Three nodes and more, of two to four GPUs."""

    def __init__(self) -> None:
        self.cordoned: set[str] = set()
        self.woken_by_all: set[str] = set()
        self.slept_since: dict[str, float] = {}
        self.raced = False
        super().__init__()
        self._node(4)

    def begin(self, now_s: float) -> None:
        super().begin(now_s)
        self.rig.cluster.budgets.upsert(BUDGET)

    # --- what kube-scheduler sees
    def free(self, node: str) -> int:
        here = [pod for pod in self.truth.values() if (pod.node_name or self.assumed.get(pod.uid)) == node]
        return self.nodes.get(node, 0) - sum(map(gpu_of, here))

    def _free_for(self, pod: Pod, node: str) -> int:
        """kube-scheduler counts who is nominated and matters as much as if it were there."""
        nominated = [
            each for each in self.truth.values()
            if each.nominated_node == node and each.priority >= pod.priority and each.uid != pod.uid
            and not each.node_name and each.uid not in self.assumed
        ]  # fmt: skip
        return self.free(node) - sum(map(gpu_of, nominated))

    def _is_refused(self, pod: Pod, node: str) -> bool:
        return node in self.cordoned or (pod.gang is not None and (str(key_of(pod)), node) in self.refusing)

    def _fails(self, uid: str, node: str) -> bool:
        pod = self.truth[uid]
        return self._is_refused(pod, node) or self._free_for(pod, node) < gpu_of(pod)

    def _wake(self, *, everybody: bool = False) -> None:
        for uid, pod in self.truth.items():
            sleeps = not (pod.node_name or pod.held or uid in self.assumed or uid in self.backoff)
            if sleeps and (everybody or uid in self.woken_by_all):
                self.queue.add(uid)

    def _deliver_nominations(self) -> None:
        for nomination in self.rig.nominations[self.seen_nominations :]:
            pod = self.truth.get(nomination.uid)
            if pod is not None and not pod.node_name:
                assert not pod.held, "kube-scheduler does not know it yet"
                self._write(structs.replace(pod, nominated_node=nomination.node))
                self._wake_one(pod)
        self.seen_nominations = len(self.rig.nominations)

    def _finish_calls(self) -> None:
        failed = [uid for uid, (task, *_) in self.calls.items() if task.done() and task.result()]
        super()._finish_calls()
        if failed:  # kube-scheduler treats it as if an assigned pod were gone
            self._wake(everybody=True)

    def _wake_one(self, pod: Pod) -> None:
        if pod.uid in self.woken_by_all and pod.uid not in self.backoff and pod.uid not in self.assumed:
            self.queue.add(pod.uid)

    # --- kube-scheduler tries a pod
    def _try(self, uid: str, sample: list[str] | None = None) -> None:
        assert sample is None
        self.queue.discard(uid)
        pod = self.truth[uid]
        rounds = [[pod.nominated_node]] if pod.nominated_node in self.nodes else []
        rounds.append(sorted(self.nodes))
        rejected: set[str] = set()
        for names in rounds:
            offered = [name for name in names if not self._fails(uid, name)]
            if not offered:
                continue
            answer = self.rig.ask(pod, offered, pod.nominated_node)
            assert set(answer.accepted) <= set(offered)
            rejected = set(answer.rejected)
            if answer.accepted:
                self._assume(pod, answer.accepted[self.serial % len(answer.accepted)])
                return
        if rejected:
            self.woken_by_all.add(uid)
        else:
            self.woken_by_all.discard(uid)
        self.slept_since[uid] = self.rig.now_s
        self._post_filter(pod, rejected)

    def _assume(self, pod: Pod, node: str) -> None:
        self.woken_by_all.discard(pod.uid)
        if pod.gang is not None:
            self.assumed[pod.uid] = node
            self.raced = self.raced or self.rig.cluster.reservations.slot_of(pod.uid) is None
            return
        self.lag = [event for event in self.lag if not (isinstance(event, Pod) and event.uid == pod.uid)]
        self.truth[pod.uid] = structs.replace(pod, node_name=node, nominated_node="", started_at=self.rig.now_s)
        self.rig.cluster.upsert_pod(self.truth[pod.uid])
        self._wake()

    def _call(self, uid: str) -> None:
        self.raced = self.raced or self.rig.cluster.reservations.slot_of(uid) is None
        super()._call(uid)

    def _post_filter(self, pod: Pod, rejected: set[str]) -> None:
        """Preempt, where that can be, or let the pod sleep."""
        here = [each for each in self.truth.values() if each.node_name == pod.nominated_node and each.terminating]
        if pod.nominated_node and any(each.priority < pod.priority for each in here):
            self._write(structs.replace(pod, turned_away=True))
            return
        candidates = {
            node: Victims(tuple(victims))
            for node in sorted(set(self.nodes) - rejected)
            if (victims := self._default_victims(pod, node))
        }
        granted = self._ask_preempt(pod, candidates) if candidates else {}
        if not granted:
            self._write(structs.replace(pod, turned_away=True, nominated_node=""))
            return
        node = min(granted, key=lambda name: (granted[name].pdb_violations, len(granted[name].uids), name))
        self._write(structs.replace(pod, turned_away=True, nominated_node=node))
        for other in [each for each in self.truth.values() if each.nominated_node == node]:
            if other.priority < pod.priority and not other.node_name:
                self._write(structs.replace(other, nominated_node=""))
                self._wake_one(other)
        for uid in granted[node].uids:
            self._kill(uid)

    def _default_victims(self, pod: Pod, node: str) -> list[str]:
        lower = [
            each for each in self.truth.values()
            if (each.node_name or self.assumed.get(each.uid)) == node and each.priority < pod.priority
        ]  # fmt: skip
        free = self._free_for(pod, node) + sum(map(gpu_of, lower))
        victims = []
        for each in sorted(lower, key=lambda each: (-each.priority, each.created_at)):
            if free - gpu_of(each) >= gpu_of(pod):
                free -= gpu_of(each)
            else:
                victims.append(each.uid)
        return [] if self._is_refused(pod, node) or free < gpu_of(pod) else victims

    def _ask_preempt(self, pod: Pod, candidates: dict[str, Victims]) -> dict[str, Victims]:
        verb = Preempt(self.rig.cluster, self.rig.planner)
        granted = dict(verb.answer(PreemptionArgs(pod, candidates), self.rig.now_s))
        for node, killed in granted.items():
            assert killed.uids, "kube-scheduler takes no empty list"
            for uid in killed.uids:
                victim = self.truth.get(uid)
                if victim is None or (victim.node_name or self.assumed.get(uid)) != node:
                    return {}  # the watch lags; kube-scheduler does not know such a pod, and kills nobody
                assert victim.priority < pod.priority, f"{victim.name} matters as much as {pod.name}"
        key = key_of(pod)
        gang = self.rig.cluster.gangs.get(key) if key else None
        if granted and gang is not None and not gang.satisfied:
            self._judge(gang, granted)
        return granted

    def _judge(self, gang: Gang, granted: dict[str, Victims]) -> None:
        """Is the whole gang whole once the victims of its plan are gone, and not without these deaths?"""
        earmark = self.rig.cluster.earmarks.get(gang.key)
        assert earmark is not None
        dying = {uid for killed in granted.values() for uid in killed.uids}
        planned = {uid for part in earmark.parts.values() for uid in part}
        assert dying <= planned
        assert self._fits(gang, planned), f"{sorted(dying)} die for {gang.key}, which does not fit then"
        assert not self._fits(gang, ()), f"{sorted(dying)} die for {gang.key}, which fits"

    def _fits(self, gang: Gang, leaving: Collection[str]) -> bool:
        """Whether the gangs that are bound together fit by GPUs, those that terminate being gone."""
        past = None if leaving else self.rig.planner._pasts.get(gang.key)
        shut = self.cordoned | {node for node, _ in past.refused_until_s} if past else self.cordoned
        free = {name: 0 if name in shut else gpu for name, gpu in self.nodes.items()}
        for node, gpu in [*self._taken_by_pods(leaving), *self._taken_by_gangs(gang)]:
            free[node] = free.get(node, 0) - gpu
        return self._all_fit(gang, free)

    def _fits_alone(self, gang: Gang) -> bool:
        return self._all_fit(gang, dict(self.nodes), alone=True)

    def _taken_by_pods(self, leaving: Iterable[str]) -> list[tuple[str, int]]:
        return [
            (each.node_name, gpu_of(each)) for each in self.rig.cluster.pods.values()
            if each.occupies_node and not each.terminating and each.uid not in leaving
        ]  # fmt: skip

    def _taken_by_gangs(self, gang: Gang) -> list[tuple[str, int]]:
        """Return what other gangs hold, or come first to get, and where kube-scheduler has let members already."""
        cluster, keys = self.rig.cluster, {gang.key, *gang.groups}
        held = [
            (slot.node, dict(slot.shape.requests)[GPU])
            for reservation in cluster.reservations for slot in reservation.slots
            if reservation.key not in keys or slot.stage > Stage.PLANNED
        ]  # fmt: skip
        own = cluster.earmarks.get(gang.key)
        return held + [
            (placement.node, dict(placement.shape.requests)[GPU])
            for mark in cluster.earmarks.before(own.seniority if own else gang.seniority, gang.key)
            for placement in mark.placements if cluster.reservations.slot_of(placement.uid) is None
        ]  # fmt: skip

    def _all_fit(self, gang: Gang, free: dict[str, int], *, alone: bool = False) -> bool:
        cluster, keys = self.rig.cluster, {gang.key, *gang.groups}
        gangs = [each for key in keys if (each := cluster.gangs.get(key)) is not None]
        if len(gangs) < len(keys) or any(each.missing for each in gangs):
            return False
        for each in gangs:  # all members of gangs that are bound together ask for the same
            let_in = [slot for slot in cluster.reservations.slots_of(each.key) if slot.stage > Stage.PLANNED]
            for _ in range(each.min_available if alone else each.needed - len(let_in)):
                node = max(free, key=lambda name: free[name])
                free[node] -= GANGS[each.key[-1]].gpu
                if free[node] < 0:
                    return False
        return True

    def _kill(self, uid: str) -> None:
        pod = self.truth[uid]
        if pod.gang is not None:
            self.excused.add(str(key_of(pod)))
        if pod.node_name and not pod.terminating:
            self._write(structs.replace(pod, terminating=True))
            self._wake()
        elif not pod.node_name:
            self._gone(uid)

    def _gone(self, uid: str) -> None:
        pod = self.truth.pop(uid)
        if pod.gang is not None:
            self.excused.add(str(key_of(pod)))
        self.queue.discard(uid)
        self.backoff.pop(uid, None)
        self.woken_by_all.discard(uid)
        was_there = pod.node_name or uid in self.assumed
        if uid not in self.calls:
            self.assumed.pop(uid, None)
        self.lag.append((uid,))
        self._wake(everybody=bool(was_there))

    # --- rules
    @initialize(priorities=st.lists(st.sampled_from([-5, -5, 0, 5, 15]), max_size=10), gpu=st.integers(1, 2))
    def begin_busy(self, priorities: list[int], gpu: int) -> None:
        for priority in priorities:
            number = self._next()
            pod = a_pod(f"s{number:03}", gpu=gpu, priority=priority, created_at=number, labels={"app": "x"})
            self.truth[pod.uid] = pod
            node = max(self.nodes, key=self.free)
            if self.free(node) < gpu:
                del self.truth[pod.uid]
                return
            self._assume(pod, node)

    @rule(turns=st.integers(1, 4), seconds=st.sampled_from([0.0, 0.2, 6.0, 31.0]))
    def live_on(self, turns: int, seconds: float) -> None:
        """Everything goes its way for a while."""
        for _ in range(turns):
            self._everything_is_delivered()
            self.step()
        self._pass(seconds)

    @rule(gang=st.sampled_from(sorted(GANGS)), count=st.integers(1, 4), held=st.sampled_from([False, False, True]))
    def create(self, gang: str, count: int, held: bool) -> None:
        kind = GANGS[gang]
        for _ in range(count):
            number = self._next()
            pod = a_pod(
                f"{gang}{number:03}", gang=gang, min_available=kind.min_available, gpu=kind.gpu, terms=kind.terms,
                priority=kind.priority, created_at=number, held=held,
            )  # fmt: skip
            self._write(pod)
            if not held:
                self.queue.add(pod.uid)

    @rule(count=st.integers(1, 4), gpu=st.integers(1, 2), priority=st.sampled_from([-5, -5, 0, 5, 15]), data=st.data())
    def create_singles(self, count: int, gpu: int, priority: int, data: st.DataObject) -> None:
        for _ in range(count):
            number = self._next()
            labels = {"app": "x"} if data.draw(st.booleans()) else {}
            pod = a_pod(f"s{number:03}", gpu=gpu, priority=priority, created_at=number, labels=labels)
            self._write(pod)
            self.queue.add(pod.uid)

    @rule(count=st.integers(1, 8))
    def schedule_many(self, count: int) -> None:
        for uid in sorted(self.queue)[:count]:
            if uid in self.queue and uid in self.truth and uid not in self.assumed:
                self._try(uid)

    @rule(data=st.data())
    def schedule(self, data: st.DataObject) -> None:
        uid = self._pick(data, self.queue)
        if uid:
            self._try(uid)

    @rule(data=st.data())
    def end(self, data: st.DataObject) -> None:
        uid = self._pick(data, [pod.uid for pod in self.truth.values() if pod.node_name and pod.gang is None])
        if uid:
            self._gone(uid)

    @rule(data=st.data())
    def finish(self, data: st.DataObject) -> None:
        uid = self._pick(data, [pod.uid for pod in self.truth.values() if pod.terminating])
        if uid:
            self._gone(uid)

    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        uid = self._pick(data, self.truth)
        if uid:
            self._gone(uid)

    @rule(data=st.data())
    def terminate(self, data: st.DataObject) -> None:
        uid = self._pick(data, [pod.uid for pod in self.truth.values() if pod.node_name])
        if uid:
            self._kill(uid)

    @rule(data=st.data())
    def cordon(self, data: st.DataObject) -> None:
        self._cordon(data.draw(st.sampled_from(sorted(self.nodes))))

    def _cordon(self, name: str) -> None:
        self.cordoned ^= {name}
        self._upsert_node(name)
        self._wake(everybody=name not in self.cordoned)

    def _upsert_node(self, name: str) -> None:
        self.rig.cluster.upsert_node(a_node(name, gpu=self.nodes[name], unschedulable=name in self.cordoned))

    @rule(data=st.data())
    def lose_node(self, data: st.DataObject) -> None:
        if len(self.nodes) < 3:
            return
        name = data.draw(st.sampled_from(sorted(self.nodes)))
        del self.nodes[name]
        self.cordoned.discard(name)
        self.rig.cluster.remove_node(name)
        for uid in [uid for uid, pod in self.truth.items() if pod.node_name == name]:
            self._gone(uid)

    @rule(gpu=st.integers(1, 4))
    def join(self, gpu: int) -> None:
        if len(self.nodes) < 6:
            self._node(gpu)
            self._wake(everybody=True)

    @rule()
    def kill_and_start_again(self) -> None:
        World.kill_and_start_again(self)
        for name in self.nodes:
            self._upsert_node(name)
        self._deliver()

    def _settle(self, uid: str, result: Result) -> None:
        super()._settle(uid, result)
        pod = self.truth.get(uid)
        if pod is not None and pod.node_name and pod.node_name not in self.nodes:
            self._gone(uid)

    def _pass(self, seconds: float) -> None:
        super()._pass(seconds)
        for uid, since_s in tuple(self.slept_since.items()):
            pod = self.truth.get(uid)
            if pod is None or pod.node_name or uid in self.assumed:
                del self.slept_since[uid]
            elif since_s + LEFTOVER_S <= self.rig.now_s and not pod.held:
                self.queue.add(uid)

    @rule()
    def everything_settles(self) -> None:
        """From here on nobody new comes, nothing fails, and whoever runs ends after a while."""
        self.refusing.clear()
        for name in sorted(self.cordoned):
            self._cordon(name)
        runs_since: dict[str, int] = {}
        for turn in range(120):
            for _ in range(3):
                self._everything_is_delivered()
                self.step()
                self.fixed_point()
            self._pass(5.0)
            for uid, pod in tuple(self.truth.items()):
                gang = self.rig.cluster.gangs.get(GangKey(str(key_of(pod)))) if pod.gang else None
                if pod.terminating or (pod.node_name and (gang is None or gang.satisfied)):
                    if runs_since.setdefault(uid, turn) + 2 <= turn and uid in self.truth:
                        self._gone(uid)
                else:
                    runs_since.pop(uid, None)
            self._deliver()
            if not self._waiting():
                break
        self.step()
        note(f"quiet after {turn} turns")
        assert not self._waiting(), f"{self._waiting()} wait for ever"

    def _everything_is_delivered(self) -> None:
        self._write_releases()
        self._deliver()
        for uid in tuple(self.posts):
            self._settle(uid, "bound")
        for uid in sorted(self.queue, key=lambda uid: (-self.truth[uid].priority, self.truth[uid].created_at)):
            if uid in self.truth and uid in self.queue and uid not in self.assumed:
                self._try(uid)
        for uid in sorted(self.assumed):
            if uid not in self.calls and uid in self.truth:
                self._call(uid)

    def _waiting(self) -> list[str]:
        """Return who waits and would fit if it were alone."""
        waiting = []
        for pod in self.truth.values():
            gang = self.rig.cluster.gangs.get(GangKey(str(key_of(pod)))) if pod.gang else None
            fits = max(self.nodes.values()) >= gpu_of(pod) if pod.gang is None else False
            if gang is not None:
                fits = pod in gang.waiting and (gang.satisfied or self._fits_alone(gang))
            if fits and not pod.node_name and not pod.terminating:
                waiting.append(pod.name)
        return waiting

    # --- invariants
    @invariant()
    def never_partial(self) -> None:
        counts: dict[str, int] = {}
        for pod in self.truth.values():
            key = key_of(pod)
            if key is not None and (pod.node_name or pod.uid in self.posts):
                counts[key] = counts.get(key, 0) + 1
        for gang, count in counts.items():
            low = GANGS[gang[-1]].min_available
            assert gang in self.excused or count >= low, f"{gang} {count} < {low}"

    @invariant()
    def never_overcommitted(self) -> None:
        rooms = self.rig.cluster.snapshot().rooms
        for node, gpu in self.nodes.items():
            bound = sum(gpu_of(pod) for pod in self.truth.values() if pod.node_name == node)
            assert bound <= gpu
            assert rooms[node].taken.get(GPU, 0) <= gpu or self.lag or self.raced

    @invariant()
    def room_is_kept_for_gangs_that_wait(self) -> None:
        cluster = self.rig.cluster
        for earmark in cluster.earmarks:
            assert earmark.until_s > self.rig.now_s
            gangs = [cluster.gangs.get(key) for key in earmark.keys]
            assert all(gang is not None and not gang.missing for gang in gangs)
            assert any(gang is not None and gang.waiting and not gang.satisfied for gang in gangs)


TestContended = Contended.TestCase
TestContended.settings = settings(
    max_examples=60, stateful_step_count=40, deadline=None, phases=[Phase.explicit, Phase.reuse, Phase.generate]
)
