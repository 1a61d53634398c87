"""Which fault does this request get, or this line of a watch? By rules, which are data, and by a seed's chance.

Every class of requests (`api POST pods/binding`, `verbs POST filter`) and of lines (`api LINE pods`) draws from a
sequence of its own: its n-th one fails alike in every run of a seed, whatever came in between. So a seed replays as far
as the cluster does the same again.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from enum import StrEnum
from fnmatch import fnmatchcase
from random import Random
from typing import Literal

from msgspec import Struct

Where = Literal["api", "verbs"]
"""Between extender and API server, or between kube-scheduler and extender."""


class Kind(StrEnum):
    """What goes wrong."""

    CONFLICT = "409"
    TOO_MANY = "429 with Retry-After"
    ERROR = "500"
    UNAVAILABLE = "503"
    EXPIRED = "410"
    SLOW = "slow answer"
    LANDED = "time-out, but it was done"
    LOST = "done, but the answer is lost"
    CUT = "answer cut in its middle"
    TWICE = "sent twice"
    CUT_STREAM = "watch cut in the middle of an event"
    GAP = "watch gap: events lost, then 410"
    EXPIRED_STREAM = "410 within a watch"
    DUPLICATE = "watch event twice"
    REORDER = "watch events of two objects in the other order"
    SLOW_STREAM = "slow watch"
    STALL = "stalled watch"
    SILENCE = "watch stalled until the client gives it up"


ON_LINES = frozenset(
    {
        Kind.CUT_STREAM,
        Kind.GAP,
        Kind.EXPIRED_STREAM,
        Kind.DUPLICATE,
        Kind.REORDER,
        Kind.SLOW_STREAM,
        Kind.STALL,
        Kind.SILENCE,
    }
)
"""Kinds that befall a line of a watch; the others befall a request."""


class Rule(Struct, frozen=True):
    """A kind of fault, for this part of the requests or lines of the classes that match (`*` is any text)."""

    kind: Kind
    rate: float
    classes: str

    def __post_init__(self) -> None:
        """Refuse what could never happen as it is written."""
        if not 0 <= self.rate <= 1:
            raise ValueError(f"{self.kind}: the rate {self.rate} is no share")
        if (self.kind in ON_LINES) != (" LINE " in self.classes):
            raise ValueError(f"{self.kind}: does not befall {self.classes!r}")


class Drawn(Struct, frozen=True):
    """A fault, and how long or how far it goes, from 0 to 1."""

    kind: Kind
    extent: float


class Draws:
    """The faults of one seed; `next` is asked once for each request and each line."""

    def __init__(self, seed: int, rules: Iterable[Rule]) -> None:
        self._seed = seed
        self._rules = tuple(rules)
        self._chances: dict[str, Random] = {}
        self._of_class: dict[str, tuple[Rule, ...]] = {}

    def next(self, of_class: str) -> Drawn | None:
        """Return what the next of this class gets; None for nothing."""
        if of_class not in self._chances:
            self._chances[of_class] = Random(f"{self._seed}/{of_class}")  # noqa: S311 - the same for the same seed
            self._of_class[of_class] = tuple(rule for rule in self._rules if fnmatchcase(of_class, rule.classes))
        chance = self._chances[of_class]
        at, extent = chance.random(), chance.random()
        for rule in self._of_class[of_class]:
            at -= rule.rate
            if at < 0:
                return Drawn(rule.kind, extent)
        return None


class Tally:
    """How many faults were injected, by where and kind; only what befell a real request, line or object counts."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, str]] = Counter()

    def add(self, where: str, kind: str) -> None:
        """Count one."""
        self._counts[where, kind] += 1

    @property
    def total(self) -> int:
        """How many there were."""
        return sum(self._counts.values())

    def by_kind(self) -> Mapping[tuple[str, str], int]:
        """Return the counts."""
        return dict(self._counts)

    def table(self) -> str:
        """Return the counts as a table for a person, with the total at its end."""
        rows = [(where, kind, str(count)) for (where, kind), count in sorted(self._counts.items())]
        rows.append(("", "in all", str(self.total)))
        wide = max(len(kind) for _, kind, _ in rows)
        return "\n".join(f"{where:<9} {kind:<{wide}} {count:>7}" for where, kind, count in rows)
