"""What is told of all nodes at once is what is told of each."""

from collections.abc import Sequence
from random import Random
from typing import Any

import numpy as np
import pytest
from msgspec import structs

from extender.decide.columns import MOST, columns_of
from extender.decide.fit import fit_static
from extender.decide.room import capacities, capacity
from extender.decide.trial import Trial
from extender.model.node import Node, NodeRoom, Taint
from extender.model.pod import Occupant, PodShape, Toleration
from extender.model.snapshot import Snapshot
from extender.model.topology import Topology
from extender.state.ledger import Ledger
from tests.builders import GIB, a_node, a_pod, a_room, a_shape
from tests.network import BLOCK, LEVELS, network_of, nodes_of

TAINTED = Taint("dedicated", "gangs")
SHAPES = (
    a_shape(gpu=0),
    a_shape(gpu=2, cpu_milli=1500),
    a_shape(requests={"example.com/nic": 1, "pods": 1}),
    a_shape(tolerations=(Toleration("dedicated", "Exists"),)),
    a_shape(node_selector={"disk": "ssd"}),
)


def draw_room(name: str, chance: Random) -> NodeRoom:
    nic = {"example.com/nic": 2} if chance.random() < 0.3 else {}
    gpu = {"nvidia.com/gpu": chance.randint(0, 8)} if chance.random() < 0.8 else {}
    node = a_node(
        name,
        allocatable={"cpu": chance.randint(1, 9) * 1000, "memory": chance.randint(1, 8) * GIB, "pods": 5, **gpu, **nic},
        labels={"disk": chance.choice(["ssd", "hdd"])},
        taints=chance.choice([(), (), (TAINTED,)]),
        unschedulable=chance.random() < 0.1,
    )
    return a_room(node, *(a_pod(f"{name}-{i}", gpu=chance.randint(0, 1)) for i in range(chance.randint(0, 3))))


def by_node(shape: PodShape, snapshot: Snapshot) -> dict[str, int]:
    found = capacities(shape, snapshot).tolist()
    return dict(zip(columns_of(snapshot).layout.names, found, strict=True))


def one_by_one(shape: PodShape, snapshot: Snapshot) -> dict[str, int]:
    rooms = snapshot.rooms.items()
    return {name: 0 if fit_static(shape, room.node) else capacity(shape, room) for name, room in rooms}


@pytest.mark.parametrize("seed", range(20))
def test_columns_say_of_each_node_what_the_node_says_itself_while_pods_and_nodes_come_and_go(seed: int) -> None:
    chance = Random(seed)  # noqa: S311 - chance that can be repeated is what is wanted
    snapshot = Snapshot(1, {f"n{i}": draw_room(f"n{i}", chance) for i in range(12)})
    for generation in range(2, 12):
        for shape in SHAPES:
            assert by_node(shape, snapshot) == one_by_one(shape, snapshot)
        snapshot = next_of(snapshot, generation, chance)


def next_of(snapshot: Snapshot, generation: int, chance: Random) -> Snapshot:
    """Return a snapshot on which one thing has changed: a pod more, a node less, another one, or another version."""
    rooms = dict(snapshot.rooms)
    name = chance.choice(sorted(rooms))
    match chance.randrange(4):
        case 0 | 1:
            rooms[name] = rooms[name].having(a_pod("more").occupant)
            return structs.replace(snapshot, generation=generation, rooms=rooms)
        case 2:
            del rooms[name]
            rooms[f"new-{generation}"] = draw_room(f"new-{generation}", chance)
        case _:
            rooms[name] = draw_room(name, chance)
    return structs.replace(snapshot, generation=generation, rooms=rooms, topology=Topology())


@pytest.mark.parametrize("seed", range(20))
def test_columns_follow_a_ledger_and_what_is_tried_on_it_forth_and_back(seed: int) -> None:
    chance = Random(seed)  # noqa: S311 - chance that can be repeated is what is wanted
    world = World(chance)
    seen: list[Snapshot] = []
    for _ in range(40):
        world.change()
        seen = [*seen[-3:], world.snapshot()]
        seen.append(tried_on(chance.choice(seen), chance))
        for snapshot in map(structs.replace, chance.choices(seen, k=3)):
            for shape in SHAPES:
                assert by_node(shape, snapshot) == one_by_one(shape, snapshot)


class World:
    """A ledger that changes at random, and its snapshots, which hand on what was worked out."""

    def __init__(self, chance: Random) -> None:
        self._chance, self._ledger = chance, Ledger()
        self._charged: list[tuple[str, Occupant]] = []
        self._remembered: dict[tuple[str, PodShape], Any] = {}
        self._topologies: dict[int, Topology] = {}
        for number in range(8):
            self._ledger.put_node(draw_room(f"n{number}", chance).node)

    def change(self) -> None:
        """Charge or discharge pods; now and then a node comes, goes or changes."""
        chance, name = self._chance, self._chance.choice(sorted(self._ledger.rooms))
        if chance.random() < 0.1:
            self._ledger.drop_node(name)
        if chance.random() < 0.2:
            self._ledger.put_node(draw_room(chance.choice([name, f"n{chance.randrange(20)}"]), chance).node)
        for _ in range(chance.randint(0, 3)):
            if self._charged and chance.random() < 0.4:
                self._ledger.discharge(*self._charged.pop(chance.randrange(len(self._charged))))
            else:
                self._charged.append((name, a_pod("w", gpu=chance.randint(0, 1)).occupant))
                self._ledger.charge(*self._charged[-1])

    def snapshot(self) -> Snapshot:
        """Return the ledger as it is; the topology is another one whenever a node is."""
        edition, generation = self._ledger.edition(), self._ledger.nodes_generation
        topology = self._topologies.setdefault(generation, Topology())
        return Snapshot(
            self._ledger.generation,
            edition.rooms,
            remembered=self._remembered,
            topology=topology,
            edition=edition,
        )


def tried_on(snapshot: Snapshot, chance: Random) -> Snapshot:
    trial = Trial(snapshot)
    for _ in range(chance.randint(0, 3)):
        trial.place(a_pod("tried", gpu=chance.randint(0, 1)).occupant, chance.choice(sorted(snapshot.rooms)))
    return trial.as_snapshot()


def test_only_the_nodes_that_changed_or_were_tried_differ() -> None:
    book = Ledger()
    for name in ("n1", "n2", "n3"):
        book.put_node(a_node(name))
    before = book.edition()
    book.charge("n2", a_pod("w").occupant)
    after = book.edition()
    trial = Trial(Snapshot(1, after.rooms, edition=after))
    trial.place(a_pod("w").occupant, "n3")
    tried = trial.as_snapshot()
    assert after.differing(before) == before.differing(after) == {"n2"}
    assert tried.rooms_edition.differing(before) == {"n2", "n3"}
    other = structs.replace(tried, rooms=dict(before.rooms))
    assert other.rooms_edition.differing(before) is None


def test_a_snapshot_keeps_its_numbers_when_the_next_one_has_others() -> None:
    rooms = {name: NodeRoom(a_node(name, gpu=2)) for name in ("n1", "n2")}
    before = Snapshot(1, rooms)
    assert by_node(a_shape(), before) == {"n1": 2, "n2": 2}
    after = structs.replace(before, generation=2, rooms={**rooms, "n2": rooms["n2"].having(a_pod("w").occupant)})
    assert by_node(a_shape(), after) == {"n1": 2, "n2": 1}
    assert by_node(a_shape(cpu_milli=200), before) == {"n1": 2, "n2": 2}


@pytest.mark.parametrize("amount", [MOST - 1, 1 << 63, 1 << 70])
def test_what_nobody_has_overflows_nothing(amount: int) -> None:
    room = a_room(a_node("greedy"), a_pod("w", memory_bytes=amount))
    snapshot = Snapshot(1, {"greedy": room, "vast": NodeRoom(a_node("vast", memory_bytes=amount))})
    assert by_node(a_shape(), snapshot) == {"greedy": 0, "vast": 2}
    assert by_node(a_shape(memory_bytes=1 << 70), snapshot) == {"greedy": 0, "vast": 0}


def names_by_domain(nodes: Sequence[Node]) -> list[set[str]]:
    layout = columns_of(network_of(nodes)).layout
    codes, code_of, rows = layout.domains(BLOCK)
    by_code: list[set[str]] = [set() for _ in code_of]
    for name, code in zip(layout.names, codes.tolist(), strict=True):
        by_code[code].add(name)
    assert [{layout.names[row] for row in each} for each in rows] == by_code
    return by_code


def test_a_node_in_no_domain_is_one_by_itself() -> None:
    nodes = nodes_of({"s/a": [1, 1], "": [1, 1]})
    assert names_by_domain(nodes) == [{"-0"}, {"-1"}, {"a-0", "a-1"}]


def test_steps_count_the_levels_up_to_a_shared_domain() -> None:
    snapshot = network_of(nodes_of({"s/a": [1, 1], "s/b": [1], "t/c": [1], "": [1]}))
    layout = columns_of(snapshot).layout
    far = len(LEVELS)
    found = layout.steps_from(["a-0", "unknown"], np.arange(len(layout.names)))
    steps = dict(zip(layout.names, found.tolist(), strict=True))
    assert steps == {"a-0": 0, "a-1": 0, "b-0": 1, "c-0": far, "-0": far}
