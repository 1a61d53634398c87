"""Who of a gang sits where, so that consecutive ranks are neighbours?

Members of one class are alike to the nodes, so they may change seats. The seats stand in an order: beside the parameter
server, the master or the chief first, then by domain from far to near, so that those of one switch stand together, and
those that few siblings share last: operators take away the highest index first. Ranks are the numbers of the pods.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, TypeAlias

from extender.decide.alike import group_alike
from extender.decide.leaders import LEADER_ROLES
from extender.model.gang import Gang
from extender.model.pod import Pod
from extender.model.snapshot import Snapshot
from extender.model.topology import Topology
from extender.model.verdict import Placement

_Step: TypeAlias = tuple[Mapping[str, str], Counter[str], set[str]]
"""The domain of each node at a level, how many members are in each domain, and which domains have leaders."""

_DIGITS: Final = 9
_NO_NUMBER: Final = 10**_DIGITS
"""Above every number: such members come last, in the order in which they were made."""


def seat_by_rank(
    gang: Gang, placements: Sequence[Placement], kept: Sequence[Placement], snapshot: Snapshot
) -> tuple[Placement, ...]:
    """Return the same seats, in each class with the lower numbers on those that come first."""
    numbers = {pod.uid: number_of(pod) for pod in gang.waiting}
    nodes = [*(pod.node_name for pod in gang.bound), *(each.node for each in (*kept, *placements))]
    leaders = [pod.node_name for pod in gang.bound if pod.role in LEADER_ROLES]
    leaders += [each.node for each in (*kept, *placements) if each.role in LEADER_ROLES]
    order = order_of_seats(nodes, leaders, snapshot.topology)
    places = {node: order(node) for node in {each.node for each in placements}}
    seated: list[Placement] = []
    for members in group_alike(placements, snapshot):
        seats = sorted(members, key=lambda seat: places[seat.node])
        members.sort(key=lambda member: numbers.get(member.uid, _NO_NUMBER))
        seated += [_sit(member, seat) for member, seat in zip(members, seats, strict=True)]
    return tuple(seated)


def number_of(pod: Pod) -> int:
    """Return the pod's rank, or else the number at the end of its name."""
    if pod.rank.isdecimal():
        return int(pod.rank)
    number = pod.name.rpartition("-")[2] if "-" in pod.name else ""
    return int(number) if number.isascii() and number.isdecimal() and len(number) <= _DIGITS else _NO_NUMBER


def order_of_seats(
    nodes: Iterable[str], leaders: Iterable[str], topology: Topology
) -> Callable[[str], tuple[tuple[bool, int, str], ...]]:
    """Return what sorts the nodes of a gang, one of `nodes` for each member: near its leaders, and lonely ones last."""
    on_node, leaders = Counter(nodes), set(leaders)
    steps = [
        _step(topology.domain_of_nodes(level), on_node, leaders)
        for level in reversed(topology.levels)
        if topology.domains(level)
    ]
    steps.append(({node: node for node in on_node}, on_node, leaders))

    def place(node: str) -> tuple[tuple[bool, int, str], ...]:
        path = [(counts, homes, domain_of.get(node, "")) for domain_of, counts, homes in steps]
        return tuple((domain not in homes, -counts[domain], domain) for counts, homes, domain in path)

    return place


def _step(domain_of: Mapping[str, str], on_node: Counter[str], leaders: set[str]) -> _Step:
    counts: Counter[str] = Counter()
    for node, count in on_node.items():
        counts[domain_of.get(node, "")] += count
    return domain_of, counts, {domain_of.get(node, "") for node in leaders}


def _sit(member: Placement, seat: Placement) -> Placement:
    if member is seat:
        return member
    return Placement(seat.node, member.shape, member.role, member.uid, member.tags, seat.cards)
