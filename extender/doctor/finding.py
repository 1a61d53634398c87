"""What does a check say, and how are checks made?

A check is a function from what it looks at to problems; one without problems is ok. What could not be looked at is
unknown, never ok.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Generic, Literal, TypeAlias, TypeVar

from msgspec import Struct

T = TypeVar("T")

Level: TypeAlias = Literal["ok", "warning", "error", "unknown"]
"""`error`: gangs do not run, or run by halves. `warning`: they run worse than they could, or soon will not."""


class Finding(Struct, frozen=True):
    """One line of the answer; `mend` is a command, or YAML lines, or what to do."""

    check: str
    level: Level
    what: str = ""
    where: str = ""
    mend: str = ""


class Problem(Struct, frozen=True):
    """What a check found; `where` is within what the check was given."""

    what: str
    mend: str
    where: str = ""
    level: Level = "error"


class Unseen(Struct, frozen=True):
    """A fact that could not be had, and why."""

    why: str
    mend: str = ""


class Check(Struct, Generic[T], frozen=True):
    """What is looked at, in a few words, and by whom."""

    name: str
    look: Callable[[T], Iterator[Problem]]


def examine(checks: Sequence[Check[T]], subject: T, source: str = "") -> Iterator[Finding]:
    """Make every check; `source` is where the subject was read."""
    for check in checks:
        problems = list(check.look(subject))
        if not problems:
            yield Finding(check.name, "ok", where=source)
        for problem in problems:
            where = ", ".join(filter(None, (source, problem.where)))
            yield Finding(check.name, problem.level, problem.what, where, problem.mend)


def unknown(check: str, unseen: Unseen) -> Finding:
    """Return the finding of a check that could not be made."""
    return Finding(check, "unknown", unseen.why, mend=unseen.mend)
