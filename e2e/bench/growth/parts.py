"""Which costs are there, and at which sizes are they measured?"""

from collections.abc import Callable, Iterator
from typing import Final

from msgspec import Struct

from e2e.bench.growth.plan import measure_plan, measure_plan_growth
from e2e.bench.report import Row


class Sizes(Struct, frozen=True):
    """What is measured; `usual` are the nodes and the members beside which the other of the two grows."""

    nodes: tuple[int, ...] = (500, 1_000, 2_000, 5_000, 10_000)
    """Kubernetes itself is made for 5,000."""

    members: tuple[int, ...] = (8, 40, 200, 1_000, 4_000)
    usual: tuple[int, int] = (5_000, 1_000)
    pods_per_node: int = 10
    tries: int = 5
    """Of which the median is taken."""


USUAL_SIZES = Sizes()


def _plan(sizes: Sizes) -> Iterator[Row]:
    nodes, members = sizes.usual
    yield from measure_plan(nodes=nodes, members=members, pods_per_node=sizes.pods_per_node, tries=2 * sizes.tries)
    yield from measure_plan_growth(
        nodes=sizes.nodes,
        members=sizes.members,
        usual=sizes.usual,
        pods_per_node=sizes.pods_per_node,
        tries=sizes.tries,
    )


PARTS: Final[dict[str, Callable[[Sizes], Iterator[Row]]]] = {"plan": _plan}
