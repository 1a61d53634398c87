"""Which steps has a gang's life? The messages by which it gets ahead, between extender, API server and kube-scheduler.

A step is named by what crosses, in which direction, and the how many-th of its kind it is in this gang's life:
`binding-request-2` is the second member's Binding on its way to the API server, `binding-answer-2` the answer to it.
"""

from collections import Counter
from collections.abc import Mapping, Set
from typing import Any, Literal, get_args

from msgspec import Struct

from e2e.cluster import EXTENDER, GANG_SCHEDULER
from extender.model.pod import HOLD_GATE

API_SERVER = "kube-apiserver"

Kind = Literal["added", "filter", "nomination", "release", "ungated", "bind", "binding", "bound"]
Side = Literal["request", "answer", "event"]

_EVENTS = frozenset({"added", "ungated", "bound"})
_ORDINALS = {1: "1st", 2: "2nd", 3: "3rd"}
_ABOUT = {
    "added": "news of the {nth} member's creation",
    "ungated": "news of the {nth} member that lost its gate",
    "bound": "news of the {nth} member that is bound",
    "filter": "{nth} filter call",
    "bind": "{nth} bind call",
    "binding": "{nth} Binding",
    "nomination": "{nth} nomination",
    "release": "{nth} release from the gate",
}


class Step(Struct, frozen=True):
    """A message in a gang's life."""

    kind: Kind
    side: Side
    nth: int

    @classmethod
    def parse(cls, name: str) -> "Step":
        """Read what `str` writes; raises ValueError."""
        kind, side, nth = name.split("-")
        if kind not in get_args(Kind) or side not in get_args(Side) or (side == "event") != (kind in _EVENTS):
            raise ValueError(f"{name}: no step of a gang's life")
        return cls(kind, side, int(nth))  # type: ignore[arg-type] # it is one of them, as was just looked

    def __str__(self) -> str:
        return f"{self.kind}-{self.side}-{self.nth}"

    @property
    def sender(self) -> str:
        """The process that has just sent the message."""
        return self._ends[self.side != "request"]

    @property
    def receiver(self) -> str:
        """The process that does not have it yet."""
        return self._ends[self.side == "request"]

    @property
    def _ends(self) -> tuple[str, str]:
        """Who asks and who answers."""
        return (GANG_SCHEDULER, EXTENDER) if self.kind in ("filter", "bind") else (EXTENDER, API_SERVER)

    def describe(self) -> str:
        """Say in words where the life is stopped."""
        what = _ABOUT[self.kind].format(nth=_ORDINALS.get(self.nth, f"{self.nth}th"))
        names = {EXTENDER: "the extender", GANG_SCHEDULER: "kube-scheduler", API_SERVER: "the API server"}
        where = "was done" if self.side == "answer" else "is sent"
        return f"{what} {where}, before {names[self.receiver]} {'gets it' if self.side == 'request' else 'hears'}"


class Life:
    """One gang's life so far, as its messages tell it."""

    def __init__(self, members: Set[str]) -> None:
        self.steps: list[Step] = []
        self._members = members
        self._counts: Counter[tuple[Kind, Side]] = Counter()
        self._seen: set[tuple[str, Kind]] = set()
        self._gated: set[str] = set()

    def concerns(self, pod: str) -> bool:
        """Whether this pod is one of the gang."""
        return pod in self._members

    def take(self, kind: Kind, side: Side) -> Step:
        """Note one more message of the gang."""
        self._counts[kind, side] += 1
        step = Step(kind, side, self._counts[kind, side])
        self.steps.append(step)
        return step

    def count(self, kind: Kind, side: Side) -> int:
        """Return how many of these have crossed, or were stopped."""
        return self._counts[kind, side]

    def kind_of_event(self, pod: Mapping[str, Any]) -> Kind | None:
        """Return what a watch tells of a member for the first time with this object."""
        name, spec = pod["metadata"]["name"], pod["spec"]
        is_gated = any(gate["name"] == HOLD_GATE for gate in spec.get("schedulingGates", ()))
        if is_gated:
            self._gated.add(name)
        told: dict[Kind, bool] = {
            "added": True,
            "ungated": name in self._gated and not is_gated,
            "bound": bool(spec.get("nodeName")),
        }
        for kind, is_told in told.items():
            if is_told and (name, kind) not in self._seen:
                self._seen.add((name, kind))
                return kind
        return None
