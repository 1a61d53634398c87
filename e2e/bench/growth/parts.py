"""Which costs are there, and at which sizes are they measured?"""

from collections.abc import Callable, Iterator
from typing import Final

from msgspec import Struct

from e2e.bench.growth.plan import measure_plan, measure_plan_growth
from e2e.bench.growth.state import measure_events, measure_sync
from e2e.bench.growth.verbs import measure_filter, measure_verbs
from e2e.bench.report import Row


class Sizes(Struct, frozen=True):
    """What is measured; `usual` are the nodes and the members beside which the other of the two grows."""

    nodes: tuple[int, ...] = (500, 1_000, 2_000, 5_000, 10_000)
    """Of the plan. Kubernetes itself is made for 5,000."""

    members: tuple[int, ...] = (8, 40, 200, 1_000, 4_000)
    usual: tuple[int, int] = (5_000, 1_000)
    clusters: tuple[int, ...] = (100, 1_000, 5_000, 10_000)
    """Of the state and the verbs, in nodes."""

    pods_per_node: int = 10
    tries: int = 5
    """Of a plan; of what is quicker than that there are more, as many times as is said here."""


USUAL_SIZES = Sizes()

EVENTS, CALLS, CALLS_IN_TURN = 20, 20, 200
"""A 99th percentile takes a thousand, a median a hundred."""


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


def _state(sizes: Sizes) -> Iterator[Row]:
    yield from measure_events(nodes=sizes.clusters, pods_per_node=sizes.pods_per_node, tries=EVENTS * sizes.tries)
    yield from measure_sync(nodes=sizes.clusters, pods_per_node=sizes.pods_per_node)


def _verbs(sizes: Sizes) -> Iterator[Row]:
    yield from measure_verbs(nodes=sizes.clusters, pods_per_node=sizes.pods_per_node, calls=CALLS * sizes.tries)


def _filter(sizes: Sizes) -> Iterator[Row]:
    calls = CALLS_IN_TURN * sizes.tries
    yield from measure_filter(nodes=sizes.usual[0], pods_per_node=sizes.pods_per_node, calls=calls)


PARTS: Final[dict[str, Callable[[Sizes], Iterator[Row]]]] = {
    "plan": _plan,
    "state": _state,
    "verbs": _verbs,
    "filter": _filter,
}
