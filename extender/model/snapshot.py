"""The cluster at one moment, as decisions see it."""

from collections.abc import Mapping, MutableMapping
from functools import cached_property
from typing import Any

import msgspec
from msgspec import Struct

from extender.model.node import NodeRoom
from extender.model.pod import PodShape
from extender.model.topology import Topology


class Snapshot(Struct, frozen=True, dict=True):
    """Every node with what is taken of it; `generation` grows with each change.

    `namespaces` are the labels of each namespace. `remembered` is what was worked out for a shape, by what it is, and
    handed on from snapshot to snapshot: it holds for a node as long as its room, or the node, is the very same.
    `topology` knows every node of the cluster, also where `rooms` are a part of them.
    """

    generation: int
    rooms: Mapping[str, NodeRoom]
    namespaces: Mapping[str, Mapping[str, str]] = {}
    remembered: MutableMapping[tuple[str, PodShape], Any] = msgspec.field(default_factory=dict)
    topology: Topology = Topology()

    @cached_property
    def looked_up(self) -> dict[tuple[str, PodShape], Any]:
        """What was worked out for a shape on this snapshot, by what it is; gangs of one template ask the same."""
        return {}
