"""Which nodes are near one another: what their labels say of the network, level by level."""

from collections.abc import Collection, Iterable, Mapping
from functools import cached_property
from typing import Literal, TypeAlias

from msgspec import Struct

NameKind: TypeAlias = Literal["name or label", "label", "name", "tier"]
"""How a gang's author names a level; a tier is the number of a level, from 1 for the nearest."""


class Level(Struct, frozen=True, gc=False):
    """A level of the network. A node is in the domain that the first of these labels names which it has.

    As everywhere in Kubernetes, a value names one domain in the whole cluster.
    """

    name: str
    labels: tuple[str, ...]


class LevelName(Struct, frozen=True, gc=False):
    """A level in the words of a gang's author."""

    text: str
    kind: NameKind = "name or label"


def find_level(name: LevelName, levels: Collection[Level]) -> Level | None:
    """Return the level that is meant, or None where there is none of that name; a label may be any one of nodes."""
    by_name = {_plain(level.name): level for level in levels}
    if name.kind == "tier":
        return next((level for number, level in enumerate(levels, start=1) if str(number) == name.text), None)
    if name.kind != "label" and _plain(name.text) in by_name:
        return by_name[_plain(name.text)]
    return None if name.kind == "name" else Level(name.text, (name.text,))


def _plain(name: str) -> str:
    """Return the name as it is compared: Koordinator's `BlockLayer` is `block`."""
    return name.lower().removesuffix("layer")


class Topology(Struct, frozen=True, dict=True):
    """The levels, near to far, and the labels of each node. What is worked out is kept: it holds for these nodes."""

    levels: tuple[Level, ...] = ()
    labels: Mapping[str, Mapping[str, str]] = {}

    def domain_of(self, level: Level, node: str) -> str:
        """Return the node's domain; empty where it is in none of this level."""
        return self._found(level)[0].get(node, "")

    def domain_of_nodes(self, level: Level) -> Mapping[str, str]:
        """Return the domain of each node that is in one."""
        return self._found(level)[0]

    def domains(self, level: Level) -> Mapping[str, frozenset[str]]:
        """Return the nodes of each domain of the level, sorted by the domain's name."""
        return self._found(level)[1]

    def outward_from(self, level: Level) -> tuple[Level, ...]:
        """Return the level and those farther out; of a label that is in no level, that alone."""
        number = self._number_of(level)
        return (level,) if number is None else (level, *self.levels[number + 1 :])

    def nearest(self, levels: Iterable[Level]) -> Level | None:
        """Return the nearest of these levels; labels that are in no level come first, since they are asked for so."""
        return min(levels, key=lambda level: -1 if (n := self._number_of(level)) is None else n, default=None)

    def whereabouts(self, node: str) -> list[tuple[str, str]]:
        """Return the node's domain of each level in which it is in one, near to far, with the level's name."""
        return [(level.name, domain) for level in self.levels if (domain := self.domain_of(level, node))]

    def steps_from(self, nodes: Iterable[str]) -> Mapping[str, int]:
        """Return for each node how many levels out it shares a domain with one of these; none for nodes that do not."""
        steps: dict[str, int] = {}
        nodes = list(nodes)
        for number, level in enumerate(self.levels):
            domains = self.domains(level)
            for domain in {self.domain_of(level, node) for node in nodes} - {""} if domains else ():
                for node in domains[domain]:
                    steps.setdefault(node, number)
        return steps

    @cached_property
    def order(self) -> Mapping[str, int]:
        """The place of each node in an order in which those of a domain stand together; none where no level is used."""
        used = [level for level in reversed(self.levels) if self.domains(level)]
        found = [self.domain_of_nodes(level) for level in used]
        paths = {node: [domains.get(node, "") for domains in found] for node in (self.labels if used else ())}
        return {node: place for place, node in enumerate(sorted(paths, key=lambda node: (paths[node], node)))}

    def _number_of(self, level: Level) -> int | None:
        numbers = (number for number, each in enumerate(self.levels) if set(level.labels) <= set(each.labels))
        return next(numbers, None)

    def _found(self, level: Level) -> tuple[Mapping[str, str], Mapping[str, frozenset[str]]]:
        """Return the domain of each node that is in one, and the nodes of each domain."""
        known = self._looked_up.get(level.labels)
        if known is None:
            domains: dict[str, str] = {}
            for node, labels in self.labels.items():
                domain = next((labels[key] for key in level.labels if key in labels), "")
                if domain:
                    domains[node] = domain
            nodes: dict[str, list[str]] = {domain: [] for domain in sorted(set(domains.values()))}
            for node, domain in domains.items():
                nodes[domain].append(node)
            known = domains, {domain: frozenset(these) for domain, these in nodes.items()}
            self._looked_up[level.labels] = known
        return known

    @cached_property
    def _looked_up(self) -> dict[tuple[str, ...], tuple[Mapping[str, str], Mapping[str, frozenset[str]]]]:
        return {}
