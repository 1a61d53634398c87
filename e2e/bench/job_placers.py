"""Which nodes does a job get: pod by pod, as a gang that is spread, and as a gang that is packed, as ours is?"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from random import Random
from typing import TypeAlias

from msgspec import Struct

from extender.decide.fit import fit_node
from extender.decide.gang import admit_gang
from extender.model.claim import GangKey
from extender.model.gang import Gang
from extender.model.node import NodeRoom
from extender.model.pod import Pod
from extender.model.resources import CPU, MEMORY
from extender.model.snapshot import Snapshot
from extender.model.topology import Level
from extender.model.verdict import Placed

RACK = Level("rack", ("example.com/rack",))

Place: TypeAlias = Callable[[Sequence[Pod], Snapshot, Random], Sequence[str] | None]
"""Names a node for each of the pods; None where one of them finds no room."""


class Placer(Struct, frozen=True):
    """How pods are placed, and whether those of a job are placed together or each for itself."""

    whole: bool
    place: Place


def spread(pods: Sequence[Pod], snapshot: Snapshot, chance: Random) -> Sequence[str] | None:
    """Give each the node that is least allocated, as kube-scheduler does if nothing else is configured.

    That is by CPU and memory, as GPUs do not count for its score; among equals, any. Its other scores see no difference
    between these nodes for these pods.
    """
    rooms, nodes = dict(snapshot.rooms), []
    for pod in pods:
        fitting = [room for room in rooms.values() if not fit_node(pod.shape, room)]
        if not fitting:
            return None
        most = max(map(_free, fitting))
        name = chance.choice([room.node.name for room in fitting if _free(room) == most])
        rooms[name] = rooms[name].having(pod.occupant)
        nodes.append(name)
    return nodes


def pack(
    pods: Sequence[Pod], snapshot: Snapshot, _chance: Random, *, preferred: Level | None = None
) -> Sequence[str] | None:
    """Plan them as the extender does, whole."""
    gang = Gang(GangKey("default/job"), len(pods), waiting=tuple(pods), preferred_level=preferred)
    admission = admit_gang(gang, snapshot)
    if not isinstance(admission, Placed):
        return None
    nodes = {placement.uid: placement.node for placement in admission.placements}
    return [nodes[pod.uid] for pod in pods]


PLACERS: Mapping[str, Placer] = {
    "pods, spread": Placer(whole=False, place=spread),
    "gang, spread": Placer(whole=True, place=spread),
    "gang, packed (ours)": Placer(whole=True, place=pack),
    "ours, rack preferred": Placer(whole=True, place=partial(pack, preferred=RACK)),
}


def _free(room: NodeRoom) -> float:
    allocatable = room.node.allocatable
    return sum(1 - room.taken.get(name, 0) / allocatable[name] for name in (CPU, MEMORY))
