"""The state: whatever comes and goes, in whatever order, what is taken of each node is what the pods and slots say."""

from collections import Counter
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from msgspec import structs

from extender.model.claim import GangKey
from extender.model.disruption_budget import DisruptionBudget
from extender.model.namespace import Namespace
from extender.model.pod import AffinityTerm, Pod, Relations, Requirement
from extender.model.pod_group import KOORDINATOR, PodGroup
from extender.model.resources import PODS
from extender.state.reservations import Stage
from tests.builders import GPU, a_node, a_pod, a_shape
from tests.rig import BINDING_S, Rig


def gpus_taken(rig: Rig, node: str) -> int:
    return rig.cluster.snapshot().rooms[node].taken.get(GPU, 0)


def test_a_bound_pod_takes_room_until_it_is_gone_and_a_finished_one_does_not() -> None:
    rig = Rig(a_node("n1"))
    pod = a_pod("p", node="n1")
    rig.create(pod)
    rig.create(structs.replace(pod, terminating=True))
    assert gpus_taken(rig, "n1") == 1
    rig.delete(pod)
    assert gpus_taken(rig, "n1") == 0
    rig.create(a_pod("done", node="n1", finished=True))
    assert gpus_taken(rig, "n1") == 0


def test_a_pod_seen_before_its_node_counts_as_soon_as_the_node_appears() -> None:
    rig = Rig()
    rig.create(a_pod("p", node="late"))
    rig.cluster.upsert_node(a_node("late"))
    assert gpus_taken(rig, "late") == 1


def test_a_node_that_went_and_came_back_has_the_same_taken() -> None:
    rig = Rig(a_node("n1"))
    rig.create(a_pod("p", node="n1"))
    rig.cluster.remove_node("n1")
    rig.cluster.upsert_node(a_node("n1"))
    assert gpus_taken(rig, "n1") == 1


def test_a_new_list_forgets_what_it_does_not_name() -> None:
    rig = Rig(a_node("n1"), a_node("n2"))
    rig.create(a_pod("p", node="n1"), a_pod("q", node="n1"))
    rig.cluster.replace_pods([a_pod("q", node="n1")])
    rig.cluster.replace_nodes([a_node("n1")])
    assert gpus_taken(rig, "n1") == 1
    assert list(rig.cluster.snapshot().rooms) == ["n1"]


def test_a_filter_call_after_its_pods_deletion_does_not_bring_the_pod_back() -> None:
    rig = Rig(a_node("n1"))
    pod = a_pod("w", gang="g", min_available=1)
    rig.create(pod)
    rig.delete(pod)
    rig.ask(pod)
    assert pod.uid not in rig.cluster.pods
    assert rig.reserved() == 0


def test_a_snapshot_stays_as_it_is_while_the_state_goes_on() -> None:
    rig = Rig(a_node("n1"))
    before = rig.cluster.snapshot()
    rig.create(a_pod("p", node="n1"))
    assert before.rooms["n1"].taken.get(GPU, 0) == 0
    assert rig.cluster.snapshot().generation > before.generation


def test_room_passes_from_the_slot_to_the_bound_pod_without_being_counted_twice() -> None:
    rig = Rig(a_node("n1", gpu=2))
    pods = [a_pod(f"w{i}", gang="g", min_available=2) for i in range(2)]
    rig.create(*pods)
    for pod in pods:
        rig.bind(pod, rig.node_for(pod))
        assert gpus_taken(rig, "n1") == 2
    assert rig.reserved() == 0


def test_a_gang_whose_planned_node_goes_is_planned_elsewhere() -> None:
    rig = Rig(a_node("n1", gpu=2))
    pods = [a_pod(f"w{i}", gang="g", min_available=2) for i in range(2)]
    rig.create(*pods)
    rig.later()
    rig.cluster.upsert_node(a_node("n2", gpu=2))
    rig.cluster.remove_node("n1")
    rig.later()
    assert {slot.node for held in rig.cluster.reservations for slot in held.slots} == {"n2"}


def test_a_deleted_gang_leaves_no_reservation() -> None:
    rig = Rig(a_node("n1", gpu=4))
    pods = [a_pod(f"w{i}", gang="g", min_available=4) for i in range(2)]
    rig.create(*pods)
    rig.node_for(pods[0])
    rig.delete(*pods)
    rig.later()
    assert rig.reserved() == 0
    assert gpus_taken(rig, "n1") == 0


def test_a_late_answer_to_an_older_post_changes_nothing_for_room_on_another_node() -> None:
    rig = Rig(a_node("n1", gpu=1), a_node("n2", gpu=1))
    pod = a_pod("w", gang="g", min_available=1)
    rig.create(pod)
    node = rig.node_for(pod)
    slot = rig.slot(pod)
    slot.stage = Stage.BINDING
    rig.cluster.reservations.fall_back(pod.uid, "n2" if node == "n1" else "n1", rig.now_s)
    assert [[slot.stage for slot in held.slots] for held in rig.cluster.reservations] == [[Stage.BINDING]]
    rig.cluster.reservations.fall_back(pod.uid, slot.node, rig.now_s)
    assert [[slot.stage for slot in held.slots] for held in rig.cluster.reservations] == [[Stage.PLANNED]]


def test_a_member_that_changes_its_gang_while_its_binding_is_posted_takes_its_room_along() -> None:
    rig = Rig(a_node("n1", gpu=4))
    pod = a_pod("w", gang="g", min_available=1)
    rig.create(pod)
    rig.node_for(pod)
    rig.slot(pod).stage = Stage.BINDING
    moved = a_pod("w", gang="h", min_available=2)
    other = a_pod("v", gang="h", min_available=2)
    rig.create(moved, other)
    rig.later()
    assert gpus_taken(rig, "n1") == 2
    rig.delete(moved, other)
    rig.later()
    assert (rig.reserved(), gpus_taken(rig, "n1")) == (0, 0)


def test_a_namespaces_new_labels_may_let_a_waiting_gang_in() -> None:
    team = (Requirement("team", "In", ("a",)),)
    beside = Relations(affinity=(AffinityTerm("host", (Requirement("app", "Exists"),), (), team),))
    rig = Rig(a_node("n1", labels={"host": "n1"}))
    rig.create(a_pod("db", namespace="data", node="n1", gpu=0, labels={"app": "db"}))
    member = a_pod("w0", gang="g", min_available=1, shape=a_shape(relations=beside))
    rig.create(member)
    assert rig.node_for(member) is None

    rig.cluster.upsert_namespace(Namespace("data", {"team": "a"}))
    rig.later()
    assert rig.node_for(member) == "n1"

    rig.cluster.remove_namespace("data")
    assert rig.cluster.snapshot().namespaces == {}


def test_labels_of_a_running_pod_that_change_are_seen_by_selectors() -> None:
    rig = Rig(a_node("n1"))
    pod = a_pod("p", node="n1", labels={"app": "db"})
    rig.create(pod)
    rig.create(structs.replace(pod, labels={"app": "web"}))
    assert [other.tags.labels for other in rig.cluster.snapshot().rooms["n1"].pods] == [{"app": "web"}]


def test_budgets_come_change_and_go() -> None:
    rig = Rig()
    kept, gone = DisruptionBudget("team", "kept"), DisruptionBudget("team", "gone")
    rig.cluster.budgets.replace([kept, gone])
    rig.cluster.budgets.remove(gone.key)
    changed = structs.replace(kept, disruptions_allowed=1)
    rig.cluster.budgets.upsert(changed)
    assert list(rig.cluster.budgets.values()) == [changed]
    rig.cluster.budgets.replace([])
    assert not rig.cluster.budgets.values()


class AnyOrder(RuleBasedStateMachine):
    """Nodes and pods of three gangs come and go, are asked for, bound and deleted, in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.rig = Rig()
        self.nodes: dict[str, int] = {}
        self.serial = 0

    @initialize()
    def start(self) -> None:
        self.add_node(2)
        self.add_node(2)

    @rule(gpu=st.integers(0, 4))
    def add_node(self, gpu: int) -> None:
        name = f"n{self._next()}"
        self.nodes[name] = gpu
        self.rig.cluster.upsert_node(a_node(name, gpu=gpu))

    @rule(data=st.data())
    def remove_node(self, data: st.DataObject) -> None:
        if len(self.nodes) > 1:
            name = data.draw(st.sampled_from(sorted(self.nodes)))
            del self.nodes[name]
            self.rig.cluster.remove_node(name)

    @rule(
        gang=st.sampled_from("abc"),
        min_available=st.none() | st.integers(1, 4),
        gpu=st.integers(0, 2),
        gated=st.booleans(),
        rank=st.sampled_from(["", "0", "1"]),
    )
    def create(self, gang: str, min_available: int | None, gpu: int, gated: bool, rank: str) -> None:
        number = self._next()
        pod = a_pod(
            f"w{number}",
            gang=gang,
            min_available=min_available,
            gpu=gpu,
            role="ps" if gpu == 0 else "worker",
            rank=rank,
            created_at=number,
            gated=gated,
        )
        self.rig.create(pod)

    @rule(gang=st.sampled_from("abc"), min_available=st.integers(0, 4))
    def declare(self, gang: str, min_available: int) -> None:
        self.rig.cluster.upsert_pod_group(PodGroup(KOORDINATOR, GangKey(f"default/{gang}"), min_available))

    @rule()
    def uninstall_pod_groups(self) -> None:
        self.rig.cluster.replace_pod_groups(KOORDINATOR, [])

    @rule(data=st.data(), complete=st.booleans())
    def ask(self, data: st.DataObject, complete: bool) -> None:
        pod = self._draw(data, lambda pod: not pod.node_name and not pod.gated)
        if pod is None:
            return
        names = sorted(self.nodes)
        offered = names if complete else data.draw(st.lists(st.sampled_from(names), unique=True, min_size=1))
        answer = self.rig.ask(pod, offered)
        assert set(answer.accepted) <= set(offered)
        assert answer.accepted or set(answer.rejected) >= set(offered), "every node is explained"
        gang = self.rig.cluster.gangs.get(GangKey(f"default/{self._gang(pod)}"))
        assert gang is not None or not answer.accepted, "nobody goes whose gang is not declared"
        if answer.accepted and gang is not None and not gang.satisfied:
            assert self.rig.ask(pod, offered).accepted == answer.accepted, "a repeated call is answered the same"

    @rule(data=st.data())
    def bind(self, data: st.DataObject) -> None:
        pod = self._draw(data, self._may_bind)
        if pod is not None:
            slot = self.rig.cluster.reservations.slot_of(pod.uid)
            assert slot is not None
            self.rig.bind(pod, slot.node)

    @rule(data=st.data(), how=st.sampled_from(["terminating", "finished", "turned_away"]))
    def change(self, data: st.DataObject, how: str) -> None:
        pod = self._draw(data, lambda _: True)
        if pod is not None:
            change: dict[str, Any] = {how: True}
            self.rig.create(structs.replace(pod, **change))

    @rule(data=st.data())
    def lift_gate(self, data: st.DataObject) -> None:
        pod = self._draw(data, lambda pod: pod.gated)
        if pod is not None:
            self.rig.create(structs.replace(pod, gated=False))

    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        pod = self._draw(data, lambda _: True)
        if pod is not None:
            self.rig.delete(pod)

    @rule(seconds=st.sampled_from([0.0, 1.0, 11.0, 31.0, BINDING_S + 1]))
    def wait(self, seconds: float) -> None:
        self.rig.later(seconds)

    @invariant()
    def what_is_taken_is_what_pods_and_slots_say(self) -> None:
        expected: Counter[tuple[str, str]] = Counter()
        for pod in self.rig.cluster.pods.values():
            if pod.occupies_node:
                for name, amount in pod.shape.requests:
                    expected[pod.node_name, name] += amount
        for held in self.rig.cluster.reservations:
            for slot in held.slots:
                for name, amount in slot.shape.requests:
                    expected[slot.node, name] += amount
        for node, room in self.rig.cluster.snapshot().rooms.items():
            for name in (GPU, PODS):
                assert room.taken.get(name, 0) == expected[node, name]

    @invariant()
    def no_node_is_over_its_size(self) -> None:
        for node, room in self.rig.cluster.snapshot().rooms.items():
            assert room.taken.get(GPU, 0) <= self.nodes[node]

    @invariant()
    def every_slot_belongs_to_a_member_that_waits_or_is_awaited(self) -> None:
        for held in self.rig.cluster.reservations:
            for slot in held.slots:
                holder = self.rig.cluster.pods.get(slot.holder)
                assert not slot.holder or (holder is not None and not holder.node_name)

    @invariant()
    def no_gang_below_min_available_keeps_room_after_a_cycle_that_it_cannot_use(self) -> None:
        self.rig.later()
        for held in self.rig.cluster.reservations:
            gang = self.rig.cluster.gangs.get(held.key)
            assert gang is not None
            ran = gang.ran and gang.match_policy == "once-satisfied"  # min-available may have been raised since
            assert ran or len(gang.bound) + len(held.slots) >= gang.min_available

    def _may_bind(self, pod: Pod) -> bool:
        slot = self.rig.cluster.reservations.slot_of(pod.uid)
        return slot is not None and slot.stage >= Stage.ACCEPTED

    def _draw(self, data: st.DataObject, fits: Any) -> Pod | None:
        pods = sorted((pod for pod in self.rig.cluster.pods.values() if fits(pod)), key=lambda pod: pod.name)
        return data.draw(st.sampled_from(pods)) if pods else None

    def _gang(self, pod: Pod) -> str:
        assert pod.gang is not None
        return pod.gang.key.removeprefix("default/")

    def _next(self) -> int:
        self.serial += 1
        return self.serial


TestAnyOrder = AnyOrder.TestCase
TestAnyOrder.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
