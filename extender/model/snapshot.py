"""The cluster at one moment, as decisions see it."""

from collections.abc import Mapping

from msgspec import Struct

from extender.model.node import NodeRoom


class Snapshot(Struct, frozen=True):
    """Every node with what is taken of it; `generation` grows with each change."""

    generation: int
    rooms: Mapping[str, NodeRoom]
