"""Did all that happened keep to the invariants? Judged by the API server's own history, event by event.

The order of events is that of resourceVersions, which pods and nodes share; their times are those at which the
checker's own watch brought them. What it knows of objects it reads itself (`e2e.faults.reading`).
"""

from collections.abc import Iterable, Iterator
from typing import Literal

from msgspec import Struct

from e2e.client import Object
from e2e.faults.gangs_judged import GangsInPart
from e2e.faults.nodes_judged import BoundOnce, Calls, CardsWithinSize, Constraints, NodesWithinSize

EventType = Literal["ADDED", "MODIFIED", "DELETED"]


class Bounds(Struct, frozen=True):
    """How long what is not as it should be may last, in seconds."""

    partial_s: float
    """A gang bound in part while all its members are there: until the API server was heard and the rest tried again."""

    stale_node_s: float
    """Between a node's change and kube-scheduler's bind call (else the Binding) for a pod that it looked at before."""

    plugin_s: float = 0.0
    """More than `partial_s`, for gangs whose members wait for a device plugin."""


class Event(Struct, frozen=True):
    """Something that happened to an object, and when the checker's watch told of it."""

    at_s: float
    type: EventType
    object: Object

    @property
    def version(self) -> int:
        """When it happened, by the clock that all objects share."""
        return int(self.object["metadata"]["resourceVersion"])


class Violation(Struct, frozen=True):
    """An invariant that did not hold."""

    invariant: str
    at_s: float
    text: str


class Checker:
    """Judges events in the order in which it sees them; `violations` are those found so far."""

    def __init__(self, bounds: Bounds, calls: Calls | None = None) -> None:
        self.violations: list[Violation] = []
        self.in_part = GangsInPart(bounds.partial_s, bounds.plugin_s)
        self.nodes = NodesWithinSize()
        self.cards = CardsWithinSize()
        self.once = BoundOnce()
        self.constraints = Constraints(bounds.stale_node_s, calls)

    def see(self, event: Event) -> None:
        """Take in the next event of a pod or node."""
        gone, obj, at_s = event.type == "DELETED", event.object, event.at_s
        if _kind_of(obj) == "Node":
            self.nodes.see_node(obj, gone=gone)
            self.cards.see_node(obj, gone=gone)
            self.constraints.see_node(obj, at_s, gone=gone)
            return
        self._add("a strict gang in part", at_s, self.in_part.see_pod(obj, at_s, gone=gone))
        self._add("a node over its size", at_s, self.nodes.see_pod(obj, gone=gone))
        self._add("a card over its size", at_s, self.cards.see_pod(obj, gone=gone))
        self._add("a pod against its constraints", at_s, self.constraints.see_pod(obj, at_s, gone=gone))
        self._add("a pod bound twice", at_s, self.once.see_pod(obj, gone=gone))

    def look(self, at_s: float) -> None:
        """Judge what may last too long although nothing happens."""
        self._add("a strict gang in part", at_s, self.in_part.look(at_s))

    def _add(self, invariant: str, at_s: float, texts: Iterable[str]) -> None:
        self.violations += [Violation(invariant, at_s, text) for text in texts]


def judge(history: Iterable[Event], bounds: Bounds, end_s: float, calls: Calls | None = None) -> Checker:
    """Judge a whole history, up to this time; with kube-scheduler's bind calls, where they are known."""
    checker = Checker(bounds, calls)
    for event in sorted(history, key=lambda each: each.version):
        checker.see(event)
    checker.look(end_s)
    return checker


def differences(history: Iterable[Event], existing: Iterable[Object]) -> Iterator[str]:
    """Say where the history does not end with what exists, which a list said: then the checker has looked away."""
    left: dict[str, Object] = {}
    for event in sorted(history, key=lambda each: each.version):
        if event.type == "DELETED":
            left.pop(event.object["metadata"]["uid"], None)
        else:
            left[event.object["metadata"]["uid"]] = event.object
    seen = {uid: (_kind_of(obj), _place_of(obj)) for uid, obj in left.items()}
    there = {obj["metadata"]["uid"]: (_kind_of(obj), _place_of(obj)) for obj in existing}
    for uid in seen.keys() | there.keys():
        if seen.get(uid) != there.get(uid):
            yield f"{uid}: the history ends with {seen.get(uid)}, the API server has {there.get(uid)}"


def _kind_of(obj: Object) -> str:
    """Return Node or Pod, also of lists' items, which do not say their kind."""
    return str(obj.get("kind") or ("Pod" if "containers" in obj["spec"] else "Node"))


def _place_of(obj: Object) -> str:
    return f"{obj['metadata']['name']} {obj['spec'].get('nodeName', '')}"
