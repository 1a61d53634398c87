"""Gangs on a network while pods come, run, end and preempt each other in any order: none is ever torn apart.

TOPOLOGY_WORLDS says how many lives are lived.
"""

import os
from random import Random

import pytest
from msgspec import Struct

from extender.model.claim import GangKey, Terms
from extender.model.gang import Gang
from extender.model.member import NOBODY
from extender.model.pod import Pod
from extender.model.topology import Level, LevelName
from extender.state.membership import key_of
from tests.builders import GPU, a_pod
from tests.network import LEVELS, nodes_of
from tests.rig import PATIENCE_S, Rig

WORLDS = int(os.environ.get("TOPOLOGY_WORLDS", "60"))
"""Some seconds."""

STEPS = 60
IN_BLOCK, IN_SPINE = (LevelName("block"),), (LevelName("spine"),)
TOGETHER = (GangKey("default/e"), GangKey("default/f"))


class Kind(Struct, frozen=True):
    """What every member of a gang has in common."""

    needs: int
    terms: Terms
    priority: int = 0
    gpu: int = 1


KINDS = {
    "a": Kind(3, Terms(required=IN_BLOCK, waiting_s=60.0)),
    "b": Kind(2, Terms(required=IN_BLOCK, preferred=IN_SPINE, waiting_s=60.0), priority=5, gpu=2),
    "c": Kind(5, Terms(required=IN_SPINE, preferred=IN_BLOCK, waiting_s=60.0), priority=10),
    "d": Kind(3, Terms(required=IN_BLOCK, strict=False, waiting_s=60.0)),
    "e": Kind(2, Terms(required=IN_BLOCK, groups=TOGETHER, waiting_s=60.0), priority=5),
    "f": Kind(3, Terms(required=IN_BLOCK, groups=TOGETHER, waiting_s=60.0), priority=5),
    "g": Kind(4, Terms(preferred=IN_BLOCK, waiting_s=60.0)),
}


class Life:
    """One life of a cluster, led by chance."""

    def __init__(self, chance: Random) -> None:
        self.chance = chance
        self.rig = Rig(*nodes_of({"s/a": [2, 2], "s/b": [2, 1, 1], "t/c": [4, 2], "": [4]}), levels=LEVELS)
        self.serial = 0
        self.placed = 0

    def step(self) -> None:
        deeds = (self.create, self.create, self.run, self.run, self.run, self.grow, self.single, self.end, self.preempt)
        self.chance.choice(deeds)()
        self.rig.later(self.chance.choice([0.0, 0.0, 1.0, PATIENCE_S + 1]))
        self.check()

    def create(self) -> None:
        name = self.chance.choice(sorted(KINDS))
        kind = KINDS[name]
        for _ in range(self.chance.randint(1, kind.needs)):
            self.serial += 1
            pod = a_pod(
                f"{name}-{self.serial}", gang=name, min_available=kind.needs, terms=kind.terms, gpu=kind.gpu,
                priority=kind.priority, created_at=self.serial,
            )  # fmt: skip
            self.rig.create(pod)

    def run(self) -> None:
        """Bind members that hold room, where no other member of their gang has to come yet."""
        for key in sorted(self.rig.cluster.gangs):
            gang = self.rig.cluster.gangs.get(key)
            held = [pod for pod in gang.waiting if self.rig.cluster.reservations.slot_of(pod.uid)] if gang else []
            if gang is not None and gang.is_enough([pod.role for pod in held]) and self.chance.random() < 0.8:
                for pod in held:
                    self.rig.bind(pod, self.rig.slot(pod).node)
                    self.placed += 1

    def grow(self) -> None:
        """Let kube-scheduler ask for a member that waits; it offers the nodes with room."""
        waiting = [pod for pod in self.rig.cluster.pods.values() if not pod.node_name and key_of(pod)]
        if not waiting:
            return
        pod = self.chance.choice(waiting)
        answer = self.rig.ask(
            pod, [name for name in self.rig.cluster.snapshot().rooms if self.free(name) >= gpu_of(pod)]
        )
        gang = self.rig.cluster.gangs.get(key_of(pod) or GangKey(""))
        if gang is not None and gang.satisfied and answer.accepted:
            self.rig.bind(pod, self.chance.choice(list(answer.accepted)))

    def single(self) -> None:
        nodes = [name for name in sorted(self.rig.cluster.snapshot().rooms) if self.free(name)]
        if nodes:
            self.serial += 1
            pod = a_pod(f"single{self.serial}", priority=-1, created_at=self.serial)
            accepted = self.rig.ask(pod, nodes).accepted
            self.rig.create(pod)
            if accepted:
                self.rig.bind(pod, self.chance.choice(list(accepted)))

    def end(self) -> None:
        bound = sorted(pod.uid for pod in self.rig.cluster.pods.values() if pod.node_name)
        for uid in self.chance.sample(bound, k=min(len(bound), self.chance.randint(1, 4))):
            self.rig.delete(self.rig.cluster.pods[uid])

    def preempt(self) -> None:
        for pod in [pod for pod in self.rig.cluster.pods.values() if not pod.node_name and key_of(pod)]:
            for uid in [victim.uid for victim in self.rig.cluster.victims_of(pod)]:
                self.rig.delete(self.rig.cluster.pods[uid])

    def free(self, node: str) -> int:
        room = self.rig.cluster.snapshot().rooms[node]
        return room.node.allocatable[GPU] - room.taken.get(GPU, 0)

    def check(self) -> None:
        keys = sorted(self.rig.cluster.gangs)
        gangs = [gang for key in keys if (gang := self.rig.cluster.gangs.get(key)) is not None]
        for gang in gangs:
            group = [each for each in gangs if each.key in gang.groups]
            if gang.required_level is not None:
                held = self.domains([node for each in group for node in self.nodes_of(each)], gang.required_level)
                assert "" not in held, f"{gang.key} is in no domain"
                assert len(held) <= 1, f"{gang.key} is torn apart: {held}"
                earmark = self.rig.cluster.earmarks.get(gang.key)
                kept = [each.node for each in earmark.placements if each.uid != NOBODY] if earmark else []
                assert len(self.domains(kept, gang.required_level)) <= 1, f"room is kept for {gang.key} in two domains"

    def nodes_of(self, gang: Gang) -> list[str]:
        slots = self.rig.cluster.reservations.slots_of(gang.key)
        return [*(pod.node_name for pod in gang.bound), *(slot.node for slot in slots)]

    def domains(self, nodes: list[str], level: Level) -> set[str]:
        return {self.rig.cluster.network.topology.domain_of(level, node) for node in nodes}


def gpu_of(pod: Pod) -> int:
    return dict(pod.shape.requests)[GPU]


def test_no_gang_is_ever_torn_apart(capsys: pytest.CaptureFixture[str]) -> None:
    placed = 0
    for number in range(WORLDS):
        life = Life(Random(f"life {number}"))  # noqa: S311 - chance that can be repeated is what is wanted
        for _ in range(STEPS):
            life.step()
        placed += life.placed
    with capsys.disabled():
        print(f"\n{placed} members of gangs were bound in {WORLDS} lives")  # noqa: T201 - it says that something happened
    assert placed > 5 * WORLDS
