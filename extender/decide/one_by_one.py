"""Which node for each member of a class, where each placement changes where the next may go?

Nodes are alike to pods' relations when they share the labels that these are about, such as a zone: so they are judged
by domain, and a domain that is full by a spread constraint is looked at again only when the emptiest one has filled.
For the rest, a domain that does not take the next member takes none after it either.
"""

import heapq
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import NamedTuple

from extender.decide.columns import columns_of
from extender.decide.leaders import Homes
from extender.decide.trial import Trial
from extender.model.pod import Occupant, PodShape, Relations
from extender.model.snapshot import Snapshot
from extender.model.verdict import SpreadTooUneven

Domain = tuple[str | None, ...]
"""The values of those labels."""


_DOMAINS_TRIED = 8
"""Zones: more are rarely there, and each costs a plan. Smaller domains are found by taking the best node first."""


class Rank(NamedTuple):
    """What sorts first is taken first."""

    beside: tuple[bool, bool]
    """Whether the node holds no leader of its siblings, and none of them at all."""

    together: int
    """How many find room in its domain of required affinity, counted negatively."""

    taken: int
    """How many it would take itself, counted negatively."""

    wear: int
    """What they cost it in whole cards."""

    spare: int

    apart: int
    """How far out on the network it shares a domain with siblings."""

    place: int
    """Where it stands among all nodes, neighbours side by side."""

    node: str


def take_turns(pod: Occupant, count: int, nodes: Collection[str], trial: Trial, homes: Homes) -> Iterator[str]:
    """Place up to `count` such pods on the trial and yield each one's node.

    Nodes that hold siblings come first, then the domains of required affinity that take most, and nodes likewise.
    """
    near = trial.neighbourhood(pod)
    domains = _domains(pod, count, nodes, trial, homes)
    queue = [(ranked[-1], domain) for domain, ranked in domains.items()]
    heapq.heapify(queue)
    full: list[Domain] = []
    while count and queue:
        domain = queue[0][1]
        name = domains[domain][-1].node
        reason = near.why_not(trial.room(name).node) if near else None
        if reason is not None:
            heapq.heappop(queue)
            if isinstance(reason, SpreadTooUneven):
                full.append(domain)
        elif not trial.capacity(pod.shape, name):
            heapq.heappop(queue)
            domains[domain].pop()
            _queue_up([domain], domains, queue)
        else:
            floor = near.floor if near else ()
            trial.place(pod, name)
            count -= 1
            yield name
            if near and near.floor != floor:
                _queue_up(full, domains, queue)
                full.clear()


def _queue_up(these: Iterable[Domain], domains: Mapping[Domain, list[Rank]], queue: list[tuple[Rank, Domain]]) -> None:
    for domain in these:
        if domains[domain]:
            heapq.heappush(queue, (domains[domain][-1], domain))


def affinity_domains(shapes: Iterable[PodShape], snapshot: Snapshot) -> list[list[str]]:
    """Return the nodes of each domain that required affinity may bind members to, the largest ones, largest first."""
    wishes = {shape.relations for shape in shapes}
    keys = {term.topology_key for relations in wishes if relations is not None for term in relations.affinity}
    domains: dict[tuple[str, str], list[str]] = {}
    for name, room in snapshot.rooms.items() if keys else ():
        for key in keys & room.node.labels.keys():
            domains.setdefault((key, room.node.labels[key]), []).append(name)
    return sorted(domains.values(), key=len, reverse=True)[:_DOMAINS_TRIED]


def selecting_keys(shapes: Iterable[PodShape], snapshot: Snapshot) -> list[str]:
    """Return the label keys by which members or pods that are there may select members: these set members apart."""
    asking = {shape.relations for shape in shapes}
    asking |= {other.shape.relations for room in columns_of(snapshot).repelling for other in room.repelling}
    selectors = {selector for relations in asking if relations is not None for selector in relations.selectors}
    return sorted({requirement.key for selector in selectors for requirement in selector or ()})


def _domains(pod: Occupant, count: int, nodes: Collection[str], trial: Trial, homes: Homes) -> dict[Domain, list[Rank]]:
    """Group the nodes with room by what relations see of them, the best of each group last."""
    capacity = {name: room for name in nodes if (room := trial.capacity(pod.shape, name))}

    def domain_of(name: str, keys: Iterable[str]) -> Domain:
        labels = trial.room(name).node.labels
        return tuple(labels.get(key) for key in keys)

    relations = pod.shape.relations or Relations()
    affinity_keys = sorted({term.topology_key for term in relations.affinity})
    beside: Counter[Domain] = Counter()
    for name, room in capacity.items():
        beside[domain_of(name, affinity_keys)] += room

    keys = _topology_keys(relations, trial)
    steps, order = trial.topology.steps_from(homes), trial.topology.order
    domains: dict[Domain, list[Rank]] = {}
    for name, room in capacity.items():
        taken, together = min(room, count), min(beside[domain_of(name, affinity_keys)], count)
        wear = trial.wear(pod.shape, name, taken) if pod.shape.cards is not None else 0
        apart = steps.get(name, len(trial.topology.levels))
        beside_whom = not homes.get(name, False), name not in homes
        rank = Rank(beside_whom, -together, -taken, wear, room - taken, apart, order.get(name, 0), name)
        domains.setdefault(domain_of(name, keys), []).append(rank)
    for ranked in domains.values():
        ranked.sort(reverse=True)
    return domains


def _topology_keys(relations: Relations, trial: Trial) -> list[str]:
    """Return the labels of nodes that the relations, and those of pods with anti-affinity, are about."""
    about = {other.shape.relations for room in trial.repelling() for other in room.repelling} | {relations}
    return sorted({key for each in about if each is not None for key in each.topology_keys})
