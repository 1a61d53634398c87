"""A small network for tests: blocks of nodes under spines, and what a gang asks of it."""

from collections.abc import Mapping, Sequence

from extender.model.node import Node, NodeRoom
from extender.model.snapshot import Snapshot
from extender.model.topology import Level, Topology
from tests.builders import a_node

BLOCK = Level("block", ("example.com/block",))
SPINE = Level("spine", ("example.com/spine",))
LEVELS = (BLOCK, SPINE)


def nodes_of(blocks: Mapping[str, Sequence[int]]) -> list[Node]:
    """Return the nodes of blocks named `spine/block`, `name` for a block without a spine, by how many GPUs each has.

    They are called by their block, `b1-0` and so on; those of the block "" have no labels.
    """
    nodes = []
    for path, gpus in blocks.items():
        spine, _, block = path.rpartition("/")
        labels = {SPINE.labels[0]: spine, BLOCK.labels[0]: block}
        labels = {key: value for key, value in labels.items() if value}
        nodes += [a_node(f"{block}-{i}", gpu=gpu, labels=labels) for i, gpu in enumerate(gpus)]
    return nodes


def network_of(nodes: Sequence[Node], levels: tuple[Level, ...] = LEVELS) -> Snapshot:
    """Return these nodes with nothing on them."""
    topology = Topology(levels, {node.name: node.labels for node in nodes})
    return Snapshot(1, {node.name: NodeRoom(node) for node in nodes}, topology=topology)
