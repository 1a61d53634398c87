"""Are the nodes that kube-scheduler offers all that passed its filters, or did it stop when it had enough?

Mirrors kube-scheduler's numFeasibleNodesToFind.
"""

from typing import Final

LEAST: Final = 100
"""minFeasibleNodesToFind: in a cluster of fewer nodes all of them are looked at."""

_ADAPTIVE_MOST: Final = 50
_ADAPTIVE_LEAST: Final = 5
_ADAPTIVE_STEP: Final = 125


def sample_size(nodes: int, percentage: int) -> int:
    """Return with how many nodes that pass it stops, of so many; `percentage` is percentageOfNodesToScore."""
    if nodes < LEAST:
        return nodes
    adaptive = max(_ADAPTIVE_LEAST, _ADAPTIVE_MOST - nodes // _ADAPTIVE_STEP)
    return max(LEAST, nodes * (percentage or adaptive) // 100)


def is_everything(offered: int, nodes: int, percentage: int) -> bool:
    """Whether all nodes that passed are among those offered, unless it looked at a nominated one only."""
    size = sample_size(nodes, percentage)
    return size >= nodes or offered < size


def is_sample(offered: int, nodes: int, percentage: int) -> bool:
    """Whether it stopped when it had enough; where it offers another number it is not set as we are told."""
    return offered == sample_size(nodes, percentage) < nodes
