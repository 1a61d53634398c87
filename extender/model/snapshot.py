"""The cluster at one moment, as decisions see it."""

from collections.abc import Collection, Mapping, MutableMapping
from functools import cached_property
from itertools import takewhile
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct

from extender.model.node import NodeRoom
from extender.model.pod import PodShape
from extender.model.topology import Topology


class Edition(NamedTuple):
    """Which rooms these are: a ledger's in that generation, but for the nodes on which something is tried.

    `changed_at` is the generation in which each node changed last, those that did so last at the end. It goes on with
    the ledger, whose editions all share it.
    """

    rooms: Mapping[str, NodeRoom]
    changed_at: dict[str, int]
    generation: int = 0
    tried: frozenset[str] = frozenset()

    def after_trial(self, rooms: Mapping[str, NodeRoom], tried: Collection[str]) -> "Edition":
        """Return the edition of these rooms, which differ from its own on the nodes that were tried."""
        return self._replace(rooms=rooms, tried=self.tried.union(tried))

    def differing(self, other: "Edition") -> set[str] | None:
        """Return the nodes on which the two may differ, if they have the same ones; None where nobody knows."""
        if self.changed_at is not other.changed_at:
            return None
        older = min(self.generation, other.generation)
        since = takewhile(lambda change: change[1] > older, reversed(self.changed_at.items()))
        return {name for name, _ in since} | self.tried | other.tried


class Snapshot(Struct, frozen=True, dict=True):
    """Every node with what is taken of it; `generation` grows with each change.

    `namespaces` are the labels of each namespace. `remembered` is what was worked out for a shape, by what it is, and
    handed on from snapshot to snapshot: it holds for a node as long as its room, or the node, is the very same.
    `topology` knows every node of the cluster, also where `rooms` are a part of them. `edition` tells what differs
    from another snapshot without a look at every node, as long as it is of these very rooms.
    """

    generation: int
    rooms: Mapping[str, NodeRoom]
    namespaces: Mapping[str, Mapping[str, str]] = {}
    remembered: MutableMapping[tuple[str, PodShape], Any] = msgspec.field(default_factory=dict)
    topology: Topology = Topology()
    edition: Edition | None = None

    @property
    def rooms_edition(self) -> Edition:
        """The edition of these very rooms: one by itself where these are not the ones of `edition`."""
        told = self.edition
        return told if told is not None and told.rooms is self.rooms else Edition(self.rooms, {})

    @cached_property
    def looked_up(self) -> dict[tuple[str, PodShape], Any]:
        """What was worked out for a shape on this snapshot, by what it is; gangs of one template ask the same."""
        return {}
