"""Is there any way to put a mixed gang on these nodes, where filling them in one order strands it?

Goes from node to node and remembers what would be left of each class after every choice that may still end well. Two
choices that leave the same are one, and one that leaves more of everything is dropped: so for small gangs all ways are
tried. Beyond `WIDTH` choices, or `BUDGET` looks, only the most promising are followed, and a way may be missed.
"""

from collections.abc import Collection, Mapping, Sequence
from functools import partial
from operator import ge, mul
from typing import NamedTuple, TypeAlias

from extender.decide.devices import alike_cards
from extender.decide.trial import Trial
from extender.model.device import CardRequest
from extender.model.pod import Occupant

WIDTH = 300
"""Choices remembered at a node: more than small gangs have. On six nodes with four classes none was missed."""

BUDGET = 20_000
"""Looks at a choice, at 1 to 2 us each: about 30 ms, which kube-scheduler waits for once per gang that does not fit.
Three times as many find no more."""

Counts: TypeAlias = tuple[int, ...]
"""One for each class."""


class Wanted(NamedTuple):
    """A class of members: so many like `pod`, on these nodes only."""

    pod: Occupant
    role: str
    number: int
    nodes: Collection[str]


class Needs(NamedTuple):
    """How many members must be placed, and of some roles how many at least."""

    required: int
    role_minimums: Mapping[str, int]


def find_way(wanted: Sequence[Wanted], trial: Trial, needs: Needs) -> list[tuple[str, Counts]] | None:
    """Return how many of each class to put on which nodes so that it is enough; None where no way was found."""
    search = _Search(wanted, trial, needs)
    names = search.by_choice()
    start = tuple(each.number for each in wanted)
    levels: list[dict[Counts, Counts]] = [{start: start}]
    for number, name in enumerate(names):
        if not levels[-1] or search.looks > BUDGET:
            return None
        levels.append(search.after(name, number, levels[-1]))
        enough = next((left for left in levels[-1] if search.is_enough(left)), None)
        if enough is not None:
            return _retrace(enough, levels, names)
    return None


class _Search:
    def __init__(self, wanted: Sequence[Wanted], trial: Trial, needs: Needs) -> None:
        self._wanted = wanted
        self._trial = trial
        self._allowances = _allowances(wanted, needs)
        self._known: dict[tuple[object, ...], list[Counts]] = {}
        amounts = [dict(each.pod.shape.requests) for each in wanted]
        spare = self._allowances[0][1]
        requests = [request for each in wanted if isinstance(request := each.pod.shape.cards, CardRequest)]
        self._asks_for_cards = bool(requests)
        self._asks_by_uuid = any(each.terms.uuids or each.terms.not_uuids for each in requests)
        self._resources = sorted(set().union(*amounts))
        rows = [[each.get(resource, 0) for each in amounts] for resource in self._resources]
        self._asked = [(row, spare * max(row)) for row in rows]
        """Of each resource, by one member of each class; and by those that may be left, if they ask for most."""
        self._burdens: list[float] = []
        """What one member of each class asks of all that is free, roughly."""
        self._capacities: list[Counts] = []
        """What all nodes from a place in the order on would take of each class, if there were no other."""
        self._free: list[Counts] = []
        """Of each resource, likewise."""
        self.looks = 0

    def by_choice(self) -> list[str]:
        """Return the nodes that take anybody, those with the least choice first."""
        alone = {name: self._alone(name) for name in set().union(*(each.nodes for each in self._wanted))}
        names = [name for name, counts in alone.items() if any(counts)]
        names.sort(key=lambda name: (sum(count > 0 for count in alone[name]), sum(alone[name]), name))
        self._capacities = _sums_of_rest([alone[name] for name in names], len(self._wanted))
        self._free = _sums_of_rest([self._free_on(name) for name in names], len(self._resources))
        shares = [
            [amount / (most or 1) for amount in row] for (row, _), most in zip(self._asked, self._free[0], strict=True)
        ]
        self._burdens = [sum(of_class) for of_class in zip(*shares, strict=True)]
        return names

    def is_enough(self, left: Counts) -> bool:
        """Whether so few are left that the others are enough."""
        return all(sum(left[i] for i in indices) <= allowed for indices, allowed in self._allowances)

    def after(self, name: str, number: int, choices: Mapping[Counts, Counts]) -> dict[Counts, Counts]:
        """Return what may be left after this node, each with what was left before it."""
        found: dict[Counts, Counts] = {}
        ways = self._ways_to_fill(name)
        self.looks += len(choices) * len(ways)
        for before in choices:
            for counts in ways:
                left = tuple([b - c if b > c else 0 for b, c in zip(before, counts, strict=True)])
                if left not in found:
                    found[left] = before
        hopeful = [left for left in found if self._may_end_well(left, number + 1)]
        return {left: found[left] for left in self._best(hopeful)}

    def _may_end_well(self, left: Counts, number: int) -> bool:
        """Whether the rest of the nodes would do if classes, and then if resources, were not in each other's way."""
        for (asked, spare), free in zip(self._asked, self._free[number], strict=True):
            if sum(map(mul, left, asked)) - spare > free:
                return False
        rest = self._capacities[number]
        return self.is_enough(tuple([c - most if c > most else 0 for c, most in zip(left, rest, strict=True)]))

    def _best(self, found: Collection[Counts]) -> list[Counts]:
        kept: list[Counts] = []
        for left in sorted(found, key=self._burden):
            if len(kept) == WIDTH:
                break
            self.looks += len(kept) // 4 + 1
            if not any(map(partial(_is_covered, left), kept)):
                kept.append(left)
        return kept

    def _burden(self, left: Counts) -> tuple[float, Counts]:
        return sum(map(mul, left, self._burdens)), left

    def _ways_to_fill(self, name: str) -> list[Counts]:
        """Return the counts that fill the node so that it takes no more of any class; alike nodes are filled alike."""
        alike = (
            *self._free_on(name),
            *(name in each.nodes for each in self._wanted),
            self._trial.room(name).taken_ports,
            *(alike_cards(self._trial.room(name)) if self._asks_for_cards else ()),
            name if self._asks_by_uuid else "",
        )
        if alike not in self._known:
            ways = sorted(set(self._fill(name, 0)), reverse=True)
            self.looks += len(ways) ** 2 // 4
            self._known[alike] = [way for way in ways if not any(_is_covered(o, way) for o in ways if o != way)]
        return self._known[alike]

    def _fill(self, name: str, number: int) -> list[Counts]:
        if number == len(self._wanted):
            return [()]
        self.looks += 1
        most = self._take(name, number)
        is_last = number == len(self._wanted) - 1
        ways = []
        for count in range(most if is_last or self.looks > BUDGET else 0, most + 1):
            mark = self._trial.mark()
            if count and not is_last:
                self._trial.place(self._wanted[number].pod, name, count)
            ways += [(count, *others) for others in self._fill(name, number + 1)]
            self._trial.undo(mark)
        return ways

    def _alone(self, name: str) -> Counts:
        return tuple(self._take(name, number) for number in range(len(self._wanted)))

    def _take(self, name: str, number: int) -> int:
        each = self._wanted[number]
        return min(each.number, self._trial.capacity(each.pod.shape, name)) if name in each.nodes else 0

    def _free_on(self, name: str) -> Counts:
        room = self._trial.room(name)
        return tuple(max(0, room.node.allocatable.get(r, 0) - room.taken.get(r, 0)) for r in self._resources)


def _allowances(wanted: Sequence[Wanted], needs: Needs) -> list[tuple[list[int], int]]:
    """Return how many members may be left without a node: of all classes, and then of the classes of each role."""
    everybody = list(range(len(wanted)))
    allowances = [(everybody, sum(each.number for each in wanted) - needs.required)]
    for role, least in needs.role_minimums.items():
        indices = [i for i in everybody if wanted[i].role == role]
        allowances.append((indices, sum(wanted[i].number for i in indices) - least))
    return allowances


def _sums_of_rest(rows: Sequence[Counts], width: int) -> list[Counts]:
    """Return the sum of all rows from each one on, and at the end of none."""
    sums = [(0,) * width]
    for row in reversed(rows):
        sums.append(tuple(a + b for a, b in zip(sums[-1], row, strict=True)))
    return sums[::-1]


def _is_covered(more: Counts, less: Counts) -> bool:
    return all(map(ge, more, less))


def _retrace(left: Counts, levels: Sequence[Mapping[Counts, Counts]], names: Sequence[str]) -> list[tuple[str, Counts]]:
    way = []
    for level, name in zip(reversed(levels[1:]), reversed(names[: len(levels) - 1]), strict=True):
        before = level[left]
        way.append((name, tuple(b - a for b, a in zip(before, left, strict=True))))
        left = before
    return way[::-1]
