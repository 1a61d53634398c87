"""Which nodes are cheapest to clear for a gang?

By how many pods must go for each member that finds room there, and never mind which. No measure is right for every
gang, so there is more than one.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from msgspec import Struct

from extender.decide.devices import alike_cards
from extender.decide.fit import fit_static
from extender.decide.packing import weight
from extender.decide.trial import Trial
from extender.model.node import NodeRoom
from extender.model.pod import Pod, PodShape
from extender.model.snapshot import Snapshot

Price: TypeAlias = tuple[bool, tuple[int, ...], float, int]
"""Whether nobody's going helps there; else the dearest that must go, how many for each member, and their size."""


class Candidate(Struct, frozen=True):
    """A pod on a node of the snapshot that may go; of two prices, what sorts first is cheaper."""

    price: tuple[int, ...]
    pod: Pod


class _Need(Struct, frozen=True):
    """How many more of the most frequent shape must find room."""

    shape: PodShape
    count: int


def orders_of_nodes(
    by_node: Mapping[str, Sequence[Candidate]], snapshot: Snapshot, shapes: Sequence[PodShape]
) -> list[list[str]]:
    """Return the nodes with the cheapest first, by different measures; `shapes` are those of the gang's members."""
    need = _find_need(shapes, snapshot)
    known: dict[object, Price] = {}  # nodes are often alike

    def price(name: str) -> tuple[Price, str]:
        room, here = snapshot.rooms[name], by_node[name]
        alike = (
            *room.node.allocatable.values(),
            *room.taken.values(),
            *alike_cards(room),
            *((each.price, each.pod.shape) for each in here),
        )
        if alike not in known:
            known[alike] = _price_of_node(here, room, need)
        return known[alike], name

    def size_for_each(name: str) -> float:
        return -sum(weight(each.pod.shape) for each in by_node[name]) / len(by_node[name])

    by_price = sorted(by_node, key=price)
    by_size = sorted(by_price, key=size_for_each)
    by_count = sorted(by_size, key=lambda name: len(by_node[name]))
    return [by_price, by_size, by_count]


def dearest_first(candidates: Iterable[Candidate]) -> list[Candidate]:
    """Order them by price; of those that cost the same the small ones come first, so that few are left to go."""
    return sorted(candidates, key=lambda each: ([-part for part in each.price], weight(each.pod.shape)))


def _find_need(shapes: Sequence[PodShape], snapshot: Snapshot) -> _Need:
    shape, count = Counter(shapes).most_common(1)[0]
    trial = Trial(snapshot)
    free = sum(trial.capacity(shape, name) for name, room in snapshot.rooms.items() if not fit_static(shape, room.node))
    return _Need(shape, max(1, count - free))


def _price_of_node(candidates: Sequence[Candidate], room: NodeRoom, need: _Need) -> Price:
    name = room.node.name
    trial = Trial(Snapshot(0, {name: room}))
    before = trial.capacity(need.shape, name)
    for each in candidates:
        trial.evict(each.pod.occupant, name)
    target = min(trial.capacity(need.shape, name), before + need.count)
    if before >= target:
        return (True, (), 0.0, 0)
    must_go = []
    for each in dearest_first(candidates):
        mark = trial.mark()
        trial.put_back(each.pod.occupant, name)
        if trial.capacity(need.shape, name) < target:
            trial.undo(mark)
            must_go.append(each)
    size = sum(weight(each.pod.shape) for each in must_go)
    return (False, max(each.price for each in must_go), len(must_go) / (target - before), size)
