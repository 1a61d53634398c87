"""Who of a gang sits where, so that consecutive ranks are neighbours?

Members of one class are alike to the nodes, so they may change seats. The seats stand in an order: beside the parameter
server, the master or the chief first, then by domain from far to near, so that those of one switch stand together, and
those that few siblings share last: operators take away the highest index first. Ranks are the numbers of the pods.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import chain, repeat
from operator import attrgetter

from extender.decide.draft import Batch
from extender.decide.leaders import LEADER_ROLES
from extender.model.gang import Gang
from extender.model.member import AnyMember
from extender.model.topology import Topology
from extender.model.verdict import Placement

_by_number = attrgetter("number")


def seat_by_rank(
    gang: Gang, batches: Sequence[Batch], kept: Sequence[Placement], topology: Topology
) -> tuple[Placement, ...]:
    """Return who gets the room: in each squad, the lower numbers where the seats come first."""
    on_node = dict(Counter([*(pod.node_name for pod in gang.bound), *(each.node for each in kept)]))
    leaders = [pod.node_name for pod in gang.bound if pod.role in LEADER_ROLES]
    leaders += [each.node for each in kept if each.role in LEADER_ROLES]
    squads: dict[int, list[Batch]] = {}
    for batch in batches:
        on_node[batch.node] = on_node.get(batch.node, 0) + batch.count
        squads.setdefault(id(batch.squad), []).append(batch)
    leaders += [batch.node for these in squads.values() if these[0].squad.role in LEADER_ROLES for batch in these]
    places = order_of_seats(on_node, leaders, topology)
    alike: dict[object, list[list[Batch]]] = {}
    for these in squads.values():
        alike.setdefault(these[0].squad.kind, []).append(these)
    return tuple(chain.from_iterable(_seated(each, places) for each in alike.values()))


def _seated(alike: Sequence[Sequence[Batch]], places: Mapping[str, int]) -> Iterable[Placement]:
    """Give the members that come first of each of these squads, which are alike, all their seats."""
    members: list[AnyMember] = []
    for batches in alike:
        members += batches[0].squad.members[: sum([batch.count for batch in batches])]
    members.sort(key=_by_number)  # those without one stay in the order in which they were made
    seats = sorted(chain.from_iterable(alike), key=lambda batch: places[batch.node])
    nodes = chain.from_iterable([repeat(batch.node, batch.count) for batch in seats])
    cards = chain.from_iterable([batch.cards or repeat((), batch.count) for batch in seats])
    return map(Placement, nodes, members, cards)


def order_of_seats(on_node: Mapping[str, int], leaders: Iterable[str], topology: Topology) -> Mapping[str, int]:
    """Return the place of each node that so many of a gang are on: near its leaders first, and lonely ones last."""
    leaders = set(leaders)
    nodes = _in_order(on_node, on_node, leaders)
    for level in topology.levels:  # sorting keeps what is equal in the order that the nearer levels have made
        domain_of = topology.domain_of_nodes(level)
        first = topology.domains(level).get(domain_of.get(nodes[0], "")) if nodes else None
        if not domain_of or (first is not None and first.issuperset(nodes)):
            continue
        domains = list(map(domain_of.get, nodes, repeat("")))
        counts = dict.fromkeys(domains, 0)
        if len(counts) > 1:
            for node, domain in zip(nodes, domains, strict=True):
                counts[domain] += on_node[node]
            order = _in_order(counts, counts, {domain_of.get(node, "") for node in leaders})
            number_of = {domain: number for number, domain in enumerate(order)}
            numbers = list(map(number_of.__getitem__, domains))
            nodes = [nodes[place] for place in sorted(range(len(nodes)), key=numbers.__getitem__)]
    return {node: place for place, node in enumerate(nodes)}


def _in_order(places: Iterable[str], counts: Mapping[str, int], homes: Collection[str]) -> list[str]:
    """Sort nodes or domains: those with leaders come first, then those that most members share."""
    order = sorted(places)
    order.sort(key=counts.__getitem__, reverse=True)
    if homes:
        order.sort(key=lambda place: place not in homes)
    return order
