"""Are cards charged to whom they were given, whatever happens in whatever order?

Pods come in several dialects, alone and in gangs; bindings fail or are not heard of; pods end, and cards break, vanish,
shrink or are swapped under them; nodes go and come back; the extender is killed and started again. Always:

- No card has more than its size on it. Where it vanished, broke or shrank under what runs there, or somebody else put
  too much on it, nothing new comes until there is room again; what was posted already may still arrive.
- Where the kubelet picks cards, none are chosen, and the other way round.
- What is charged is what bound pods have and what is reserved, nothing else: an extender that starts anew on the
  objects that this one has seen charges the same, but for the reservations.
- Whatever is planned still fits, on healthy cards.

LEDGER_STEPS says how many steps to take; `make soak` takes many.
"""

import os
from collections.abc import Mapping

import pytest
from hypothesis import HealthCheck, Phase, note, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from extender.decide.devices import still_holds
from extender.model.device import CardManager, CardUse
from extender.model.node import NodeRoom
from extender.state.cluster import Cluster
from extender.state.reservations import Stage
from tests.card_world import CardWorld, Fate, Gpu, Manager, read_pod, replaced, uses_of

STEPS = int(os.environ.get("LEDGER_STEPS", "2000"))
STEPS_A_RUN, USUAL_STEPS = 50, 35
"""At most, and as many as a run has at least on average: some end sooner."""
MOST_PODS = 16
"""So many are there before no new ones come; the cards are full with fewer."""
FATES: list[Fate] = ["bound", "bound", "failed", "bound, but nobody hears of it", "failed, but nobody hears of it"]
DIALECTS = ["KubeShare 1", "KubeShare 2", "HAMi", "gpushare", "whole"]
MANAGERS: Mapping[str, Manager] = {"n1": "own", "n2": "HAMi", "n3": "gpushare", "n4": "own"}

GPU_FATES = ["breaks", "shrinks", "is swapped", "vanishes", "all are mended", "all are mended"]

_DIALECT = st.sampled_from(DIALECTS)
_TENTHS = st.sampled_from([1, 3, 5, 5, 6, 10])
_MEMBERS = st.sampled_from([0, 0, 1, 2, 3])
"""Of a gang; 0 for a pod without one."""

taken_steps = 0


class Ledger(RuleBasedStateMachine):
    """Four nodes of two cards."""

    def __init__(self) -> None:
        super().__init__()
        self.world = CardWorld({name: (m, [Gpu(f"GPU-{name}-{i}") for i in range(2)]) for name, m in MANAGERS.items()})
        self.serial = 0
        self.allowed: dict[tuple[str, str], CardUse] = {}
        """Of each card: its size, or what was on it when that became less."""

    def teardown(self) -> None:
        world = self.world
        try:
            for uid in tuple(world.posts):
                world.settle(uid, "bound")
            for uid in tuple(world.pods):
                world.delete(uid)
            world.deliver()
            world.wait(1000.0)
            self.charged_is_what_is_there()
            assert world.rig.reserved() == 0
            assert not any(room.taken or room.taken_cards for room in world.rig.cluster.snapshot().rooms.values())
        finally:
            world.close()

    def _pick(self, data: st.DataObject, these: list[str]) -> str | None:
        return data.draw(st.sampled_from(sorted(these))) if these else None

    # --- pods
    @initialize(asked=st.lists(st.tuples(_DIALECT, _TENTHS, _MEMBERS), min_size=4, max_size=8))
    def begin(self, asked: list[tuple[str, int, int]]) -> None:
        """Have some pods on their way already."""
        for dialect, tenths, members in asked:
            self._create(dialect, tenths, members)
        self.world.deliver()
        self._bind_all()

    @rule(dialect=_DIALECT, tenths=_TENTHS, members=_MEMBERS, count=st.integers(1, 3), known=st.booleans())
    def create(self, dialect: str, tenths: int, members: int, count: int, known: bool) -> None:
        """Pods without a gang, or gangs, and filter may be the first to tell of them."""
        for _ in range(count if len(self.world.pods) < MOST_PODS else 0):
            self._create(dialect, tenths, members)
        if known:
            self.world.deliver()
        for uid in self.world.waiting():
            self.world.try_pod(uid)

    def _create(self, dialect: str, tenths: int, members: int) -> None:
        self.serial += 1
        gang = f"g{self.serial}" if members else ""
        for number in range(max(1, members)):
            self.world.create(f"p{self.serial:03}-{number}", dialect, tenths, gang, members)

    @rule(data=st.data(), at_once=st.booleans())
    def delete(self, data: st.DataObject, at_once: bool) -> None:
        """Delete a pod at once, or end it first where it is on a node."""
        uid = self._pick(data, list(self.world.pods))
        if uid and not at_once and self.world.pods[uid]["spec"].get("nodeName"):
            self.world.change(uid, deletionTimestamp="2026-01-02T03:04:05Z")
        elif uid and uid not in self.world.posts:
            self.world.delete(uid)

    @rule(data=st.data(), phase=st.sampled_from(["Running", "Running", "Succeeded", "Failed"]))
    def run_or_end(self, data: st.DataObject, phase: str) -> None:
        """Let the kubelet start it, whose plugin has taken it up then, or let it end."""
        uid = self._pick(data, [uid for uid, body in self.world.pods.items() if body["spec"].get("nodeName")])
        now = self.world.pods[uid]["status"]["phase"] if uid else ""
        if uid and phase == "Running" and now == "Pending":
            self.world.run(uid)
        elif uid and phase != "Running" and now in ("Pending", "Running"):
            self.world.change(uid, status={"phase": phase})

    @rule(gpu=st.sampled_from([f"GPU-{name}-{i}" for name in ("n1", "n4") for i in range(2)]), tenths=_TENTHS)
    def somebody_else_places_a_pod(self, gpu: str, tenths: int) -> None:
        """Give a card to a pod behind our back; what is too much then is not our doing."""
        name = gpu.split("-")[1]
        inventory = self.world.node(name).inventory if name in self.world.nodes else None
        if inventory is None or any(not pod.cards for pod in self.world.on_nodes()[name]):
            return
        self.serial += 1
        self.world.put_foreign(f"foreign{self.serial}", gpu, tenths)
        for key, use in uses_of(self.world.on_nodes()[name], inventory).items():
            self.allowed[name, key] = _each(max, self.allowed.get((name, key), CardUse()), use)

    @rule(count=st.integers(1, 4))
    def deliver(self, count: int) -> None:
        self.world.deliver(count)
        self.world.pump()

    # --- kube-scheduler
    @rule(data=st.data())
    def ask_and_call(self, data: st.DataObject) -> None:
        """One pod is tried; its bind call comes, or one that was due."""
        uid = self._pick(data, self.world.waiting())
        if uid:
            self.world.try_pod(uid)
        uid = self._pick(data, self.world.to_bind())
        if uid:
            self.world.call_bind(uid)

    @rule(fates=st.lists(st.sampled_from(FATES), max_size=6), heard=st.booleans())
    def ask_and_call_for_all(self, fates: list[Fate], heard: bool) -> None:
        """Try and bind whoever waits, and settle some of these bindings before the watch tells of any, or after."""
        self._bind_all()
        self.settle_some(fates)
        if heard:
            self.world.deliver()
            self.world.pump()

    def _bind_all(self) -> None:
        for uid in self.world.waiting():
            self.world.try_pod(uid)
        for uid in self.world.to_bind():
            self.world.call_bind(uid)

    @rule(fates=st.lists(st.sampled_from(FATES), min_size=1, max_size=4))
    def settle_some(self, fates: list[Fate]) -> None:
        for fate in fates:
            if self.world.posts:
                self.world.settle(min(self.world.posts), fate)

    @rule()
    def everything_is_bound(self) -> None:
        while self.world.posts:
            self.world.settle(next(iter(self.world.posts)), "bound")
        self.world.deliver()
        self.world.pump()

    # --- time, the extender, cards
    @rule(seconds=st.sampled_from([0.5, 12.0, 31.0, 61.0, 100.0]))
    def wait(self, seconds: float) -> None:
        self.world.wait(seconds)

    @rule()
    def restart(self) -> None:
        self.world.restart()

    @rule(name=st.sampled_from(sorted(MANAGERS)), index=st.integers(0, 1), fate=st.sampled_from(GPU_FATES))
    def change_cards(self, name: str, index: int, fate: str) -> None:
        """Something happens to a card, or all are mended."""
        manager, gpus = self.world.gpus[name]
        self.serial += 1
        match fate:
            case "breaks":
                gpus = replaced(gpus, index, healthy=False)
            case "shrinks":
                gpus = replaced(gpus, index, gib=8)
            case "is swapped":
                gpus = replaced(gpus, index, uuid=f"GPU-{name}-{self.serial}")
            case "vanishes":
                gpus = gpus[:-1]
            case _:
                gpus = [Gpu(f"GPU-{name}-{number}") for number in range(2)]
        self.world.gpus[name] = (manager, gpus)
        if name in self.world.nodes:
            self.world.show_node(name)
            self.world.pump()

    @rule(name=st.sampled_from(sorted(MANAGERS)), comes_back=st.booleans())
    def node_goes(self, name: str, comes_back: bool) -> None:
        """And may be back at once, or later."""
        if name in self.world.nodes:
            self.world.drop_node(name)
            self.world.pump()
        if comes_back or name not in self.world.nodes:
            self.world.show_node(name)
            self.world.pump()

    # --- what always holds
    @invariant()
    def counts(self) -> None:
        global taken_steps  # noqa: PLW0603 - how many there were is printed at the end
        taken_steps += 1

    @invariant()
    def no_card_has_more_than_its_size_on_it(self) -> None:
        for name, pods in self.world.on_nodes().items():
            inventory = self.world.node(name).inventory
            if inventory is None:
                continue
            sizes = {
                card.key: CardUse(card.core_milli, card.memory_bytes, card.slots or 1000)
                for card in inventory.cards
                if card.healthy
            }
            uses = uses_of(pods, inventory)
            for key in {*sizes, *uses, *(key for node, key in self.allowed if node == name)}:
                size, use = sizes.get(key, CardUse()), uses.get(key, CardUse())
                before = self.allowed.get((name, key), size)
                allowed = _each(max, size, _each(min, before, use))
                assert _each(max, use, allowed) == allowed, f"{name} {key}: {use} of {size}, {before} before"
                self.allowed[name, key] = allowed

    @invariant()
    def the_kubelet_and_we_do_not_choose_on_the_same_node(self) -> None:
        for name, pods in self.world.on_nodes().items():
            inventory = self.world.node(name).inventory
            if inventory is not None:
                chosen = [pod.name for pod in pods if pod.cards]
                hidden = [
                    pod.name for pod in pods
                    if not pod.cards and any(key in inventory.kubelet_resources for key, _ in pod.shape.requests)
                ]  # fmt: skip
                assert not (chosen and hidden), f"{name}: {chosen} {hidden}"
                assert not hidden or inventory.manager is CardManager.OWN, (
                    f"{name}: the cards of {hidden} are forgotten"
                )

    @invariant()
    def charged_is_what_is_there(self) -> None:
        rig = self.world.rig
        fresh = Cluster(["gang-scheduler"])
        fresh.replace_nodes([self.world.node(name) for name in self.world.nodes])
        fresh.replace_pods([read_pod(body) for body in self.world.seen.values()])
        expected = dict(fresh.snapshot().rooms)
        for reservation in rig.cluster.reservations:
            for slot in reservation.slots:
                if slot.node in expected:
                    expected[slot.node] = expected[slot.node].having(slot.occupant)
        live = rig.cluster.snapshot().rooms
        assert {name: _charges(room) for name, room in live.items()} == {n: _charges(r) for n, r in expected.items()}

    @invariant()
    def what_is_planned_fits(self) -> None:
        rooms = self.world.rig.cluster.snapshot().rooms
        for reservation in self.world.rig.cluster.reservations:
            for slot in reservation.slots:
                if slot.stage < Stage.BINDING:
                    note(f"{reservation.key} {slot.stage.name} on {slot.node} {slot.cards}")
                    assert slot.node in rooms
                    assert still_holds(slot.shape, slot.cards, rooms[slot.node])


def _each(choose: object, one: CardUse, other: CardUse) -> CardUse:
    assert callable(choose)
    return CardUse(
        choose(one.core_milli, other.core_milli),
        choose(one.memory_bytes, other.memory_bytes),
        choose(one.shares, other.shares),
    )


def _charges(room: NodeRoom) -> tuple[object, ...]:
    taken = {name: amount for name, amount in room.taken.items() if amount}
    return len(room.pods), taken, dict(room.taken_cards), room.unknown_cards


TestLedger = Ledger.TestCase
TestLedger.settings = settings(
    max_examples=max(1, STEPS // USUAL_STEPS),
    stateful_step_count=STEPS_A_RUN,
    deadline=None,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
    suppress_health_check=[HealthCheck.too_slow],
)


def test_so_many_steps_were_taken(capsys: pytest.CaptureFixture[str]) -> None:
    with capsys.disabled():
        print(f"\n{taken_steps} steps of the ledger's world")  # noqa: T201 - the number belongs into the test's report
    assert taken_steps >= STEPS
