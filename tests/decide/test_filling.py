"""The next node is the best one at every step, as asking each node alone would tell."""

from collections.abc import Collection, Sequence
from itertools import groupby
from random import Random

import pytest

from extender.decide.alike import group_alike
from extender.decide.draft import Batch, put
from extender.decide.filling import MemberClass, fill_best
from extender.decide.leaders import NOWHERE, Homes
from extender.decide.trial import Trial
from extender.model.device import CardManager
from extender.model.member import Member
from extender.model.pod import Occupant, PodShape
from extender.model.snapshot import Snapshot
from tests.builders import GIB, a_node, a_pod, a_room, a_shape, a_share, some_cards, whole_gpus
from tests.network import network_of, nodes_of

HALF = a_shape(gpu=0, cards=a_share(500))


def draw_shape(chance: Random) -> PodShape:
    kind = chance.randrange(4)
    if kind == 0:
        return HALF
    gpu = chance.choice([0, 1, 2])
    return a_shape(gpu=gpu, cpu_milli=chance.choice([500, 2000]), cards=whole_gpus(gpu) if gpu and kind == 1 else None)


def draw_snapshot(chance: Random) -> Snapshot:
    blocks = {f"s{chance.randrange(2)}/b{i}": [chance.randint(0, 4)] * chance.randint(1, 3) for i in range(4)}
    snapshot = network_of(nodes_of(blocks))
    rooms = {}
    for name, room in snapshot.rooms.items():
        gpu = room.node.allocatable.get("nvidia.com/gpu", 0)
        manager = chance.choice([None, CardManager.OWN, CardManager.KOORDINATOR])
        cards = some_cards(gpu, manager=manager) if manager else None
        node = a_node(name, gpu=gpu, cpu_milli=8000, labels=dict(room.node.labels), inventory=cards)
        rooms[name] = a_room(node, *(a_pod(f"x{i}", gpu=0, cpu_milli=1000) for i in range(chance.randint(0, 3))))
    trial = Trial(Snapshot(1, rooms, topology=snapshot.topology))
    for name in chance.sample(sorted(rooms), len(rooms) // 3):
        if trial.capacity(HALF, name):
            trial.place(Occupant(HALF), name)
    return trial.as_snapshot()


class Alone:
    """Asks one node after the other."""

    def __init__(self, classes: Sequence[MemberClass], trial: Trial, homes: Homes) -> None:
        self.classes, self.trial, self.homes = classes, trial, homes
        self.near: Collection[str] = homes

    def best(self) -> tuple[str, list[int]] | None:
        topology = self.trial.topology
        steps, far = topology.steps_from(self.near), len(topology.levels)
        is_needed = any(one.left and one.shape.asks_for_devices for one in self.classes)
        ranked = []
        for name, room in self.trial.snapshot.rooms.items():
            counts, wear, spare = self.offer(name)
            wasteful = not is_needed and room.node.has_devices
            place = (steps.get(name, far), topology.order[name], name)
            if any(counts):
                strange = (not self.homes.get(name, False), name not in self.homes)
                ranked.append(((strange, wasteful, -sum(counts), wear, spare, *place), counts))
        if not ranked:
            return None
        best, counts = min(ranked)
        self.near = self.near or [str(best[-1])]
        return str(best[-1]), counts

    def offer(self, name: str) -> tuple[list[int], int, int]:
        mark, counts, wear, spare = self.trial.mark(), [], 0, 0
        for one in self.classes:
            count = 0
            if one.left and name in one.nodes:
                capacity = self.trial.capacity(one.shape, name)
                count = min(capacity, one.left)
                spare = capacity - count
                wear += self.trial.wear(one.shape, name, count) if count and one.shape.cards else 0
                self.trial.place(one.pod, name, count)
            counts.append(count)
        self.trial.undo(mark)
        return counts, wear, spare


@pytest.mark.parametrize("seed", range(60))
def test_the_best_node_is_filled_next(seed: int) -> None:
    chance = Random(seed)  # noqa: S311 - chance that can be repeated is what is wanted
    snapshot, shapes = draw_snapshot(chance), [draw_shape(chance) for _ in range(chance.randint(1, 3))]
    members = [Member(shape, role=str(i)) for i, shape in enumerate(shapes) for _ in range(chance.randint(1, 9))]
    classes = [MemberClass(squad, snapshot) for squad in group_alike(members, snapshot)]
    homes = {name: chance.random() < 0.5 for name in chance.sample(sorted(snapshot.rooms), chance.randint(0, 3))}
    alone, trial = Alone([one.again() for one in classes], Trial(snapshot), homes), Trial(snapshot)
    batches = fill_best(classes, trial, homes)
    assert [one.left for one in classes] == [count_left(one, batches) for one in classes]
    for name, these in groupby(batches, key=lambda batch: batch.node):
        here = list(these)
        counts = [sum(batch.count for batch in here if batch.squad is one.squad) for one in classes]
        assert (name, counts) == alone.best()
        for batch in here:
            alone.trial.place(batch.squad.occupant, name, batch.count)
            assert batch.cards in ((), tuple(pod.cards for pod in alone.trial.room(name).pods[-batch.count :]))
        for one, count in zip(alone.classes, counts, strict=True):
            one.left -= count
    assert alone.best() is None
    put(batches, trial)
    assert all(trial.room(name) == alone.trial.room(name) for name in snapshot.rooms), "the cards are those"


def count_left(one: MemberClass, batches: Sequence[Batch]) -> int:
    return len(one.squad.members) - sum(batch.count for batch in batches if batch.squad is one.squad)


def test_an_amount_that_nobody_has_is_placed_nowhere() -> None:
    snapshot = network_of(nodes_of({"s/a": [1]}))
    members = [Member(a_shape(memory_bytes=GIB << 50)), Member(a_shape())]
    classes = [MemberClass(squad, snapshot) for squad in group_alike(members, snapshot)]
    batches = fill_best(classes, Trial(snapshot), NOWHERE)
    assert [(batch.squad.members, batch.count) for batch in batches] == [(members[1:], 1)]
