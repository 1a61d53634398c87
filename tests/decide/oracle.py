"""Small clusters with a gang that just fits or just does not, and whether it does: judged by CP-SAT.

An instance is made around a placement, so that it can be placed, and then made harder: its nodes have hardly more
than that placement takes, or a member more is asked for.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any, TypeAlias

from msgspec import Struct
from ortools.sat.python import cp_model

from extender.decide.fit import fit_node, fit_static
from extender.decide.gang import admit_gang
from extender.decide.trial import Trial
from extender.model.claim import GangKey
from extender.model.gang import Gang
from extender.model.member import Member
from extender.model.node import Node, NodeRoom, Taint
from extender.model.pod import Occupant, PodShape, Toleration
from extender.model.resources import CPU, MEMORY, PODS
from extender.model.snapshot import Snapshot
from extender.model.verdict import Placed, Placement
from tests.builders import GIB, GPU, a_node, a_pod, a_shape, uid_of

_TAINT = Taint("pool", "gpu")
_RESOURCES = (CPU, MEMORY, GPU, PODS)

Kind: TypeAlias = tuple[PodShape, str]
"""A shape and a role."""


class Instance(Struct, frozen=True):
    """A gang of which so many members are needed, at least these of each role."""

    members: tuple[Member, ...]
    snapshot: Snapshot
    required: int
    role_minimums: tuple[tuple[str, int], ...] = ()


def draw_instance(chance: Random, classes: int, nodes: int = 6) -> Instance:
    """Return an instance of up to so many shapes and roles, on up to so many nodes."""
    kinds = [_draw_kind(chance, number) for number in range(classes)]
    places = [(_draw_labels(chance), chance.random() < 0.3) for _ in range(chance.randint(2, nodes))]
    members: list[Member] = []
    rooms: dict[str, NodeRoom] = {}
    for number, (labels, tainted) in enumerate(places):
        bare = a_node(f"n{number}", labels=labels, taints=(_TAINT,) if tainted else ())
        fitting = [shape for shape in kinds if not fit_static(shape[0], bare)]
        there = chance.choices(fitting, k=chance.randint(0, 4)) if fitting else []
        members += [Member(shape, role) for shape, role in there]
        rooms[bare.name] = NodeRoom(_sized(bare, [shape for shape, _ in there], chance))
    if chance.random() < 0.3 or not members:
        members.append(Member(*chance.choice(kinds)))  # one that nobody has made room for
    chance.shuffle(members)
    named = tuple(Member(m.shape, m.role, uid_of(f"m{i}"), f"m{i}") for i, m in enumerate(members))
    return Instance(named, Snapshot(1, rooms), *_draw_needs(chance, named))


def plan(instance: Instance, **fields: Any) -> Placed | None:
    """Return where the planner puts the gang, `fields` being what else is said of it; None where it finds no room."""
    pods = [a_pod(member.name, shape=member.shape, role=member.role) for member in instance.members]
    gang = Gang(GangKey("g"), instance.required, waiting=tuple(pods), role_minimums=instance.role_minimums, **fields)
    admission = admit_gang(gang, instance.snapshot)
    return admission if isinstance(admission, Placed) else None


def can_be_placed(instance: Instance) -> bool:
    """Whether there is a placement, by CP-SAT."""
    model = cp_model.CpModel()
    rooms = instance.snapshot.rooms
    placed = add_placements(model, instance)
    of_kind = {kind: sum(placed[kind, name] for name in rooms) for kind in kinds_of(instance)}
    for kind, most in kinds_of(instance).items():
        model.add(of_kind[kind] <= most)
    for role, least in instance.role_minimums:
        model.add(sum(number for kind, number in of_kind.items() if kind[1] == role) >= least)
    model.add(sum(of_kind.values()) >= instance.required)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    return solver.solve(model) in (cp_model.OPTIMAL, cp_model.FEASIBLE)


def kinds_of(instance: Instance) -> Counter[Kind]:
    """Return how many members there are of each shape and role."""
    return Counter((member.shape, member.role) for member in instance.members)


def add_placements(
    model: cp_model.CpModel, instance: Instance, used: Mapping[str, cp_model.IntVar] | None = None
) -> dict[tuple[Kind, str], cp_model.IntVar]:
    """Add how many of each kind are on which node: as many as there is room for, and none where it is not `used`."""
    kinds, rooms = kinds_of(instance), instance.snapshot.rooms
    placed = {
        (kind, name): model.new_int_var(0, 0 if fit_static(kind[0], room.node) else most, "")
        for kind, most in kinds.items()
        for name, room in rooms.items()
    }
    for name, room in rooms.items():
        for resource in _RESOURCES:
            amounts = [dict(kind[0].requests).get(resource, 0) * placed[kind, name] for kind in kinds]
            free = room.node.allocatable.get(resource, 0) - room.taken.get(resource, 0)
            model.add(sum(amounts) <= free * (1 if used is None else used[name]))
    return placed


def is_valid(instance: Instance, placements: Sequence[Placement]) -> bool:
    """Whether these placements of members are what the gang needs, and fit beside one another."""
    trial = Trial(instance.snapshot)
    for placement in placements:
        if fit_node(placement.shape, trial.room(placement.node)):
            return False
        trial.place(Occupant(placement.shape), placement.node)
    known = {member.uid: (member.shape, member.role) for member in instance.members}
    roles = [placement.role for placement in placements]
    return (
        all(known.pop(each.uid, None) == (each.shape, each.role) for each in placements)
        and len(placements) >= instance.required
        and all(roles.count(role) >= least for role, least in instance.role_minimums)
    )


def _draw_kind(chance: Random, number: int) -> Kind:
    shape = a_shape(
        gpu=chance.choice([0, 0, 1, 1, 2, 4]),
        cpu_milli=chance.choice([1, 2, 3, 4, 5, 7, 8]) * 500,
        memory_bytes=chance.choice([1, 2, 3, 4, 6]) * GIB,
        node_selector={"disk": "ssd"} if chance.random() < 0.2 else None,
        tolerations=(Toleration("pool", "Exists"),) if chance.random() < 0.7 else (),
    )
    return shape, chance.choice(["ps", "worker", "worker", "evaluator"]) if number else "worker"


def _draw_labels(chance: Random) -> dict[str, str]:
    return {"disk": chance.choice(["ssd", "hdd"])} if chance.random() < 0.7 else {}


def _sized(node: Node, there: Sequence[PodShape], chance: Random) -> Node:
    """Return the node with room for these pods, and at times a little more of something."""
    used = {name: sum(dict(shape.requests).get(name, 0) for shape in there) for name in _RESOURCES}
    return a_node(
        node.name,
        gpu=used[GPU] + chance.choice([0, 0, 0, 1, 2]),
        cpu_milli=used[CPU] + chance.choice([0, 0, 500, 1000, 4000]),
        memory_bytes=used[MEMORY] + chance.choice([0, 0, 1, 2, 8]) * GIB,
        labels=dict(node.labels),
        taints=node.taints,
    )


def _draw_needs(chance: Random, members: Sequence[Member]) -> tuple[int, tuple[tuple[str, int], ...]]:
    required = len(members) - (chance.randint(0, len(members) // 3) if chance.random() < 0.3 else 0)
    roles = [member.role for member in members]
    asked = [role for role in sorted(set(roles)) if chance.random() < 0.25]
    return required, tuple((role, chance.randint(1, roles.count(role))) for role in asked)
