"""What is to be said about what was declared of a gang, and about what of it is not there?

Each problem is said once per gang, and once per member that is overruled. The members of a gang come one after another,
and a gang that is named in `groups` a little later than this one, so that they are only missed after a while.
"""

import math
from typing import Literal

from extender.decide.explain import announce_disagreement, announce_incomplete, announce_problem
from extender.model.announcement import Announcement
from extender.model.claim import GangKey, namespace_of
from extender.model.declaration import MissingGang, NotNamedBack, Problem
from extender.model.gang import Gang
from extender.model.pod import PodUid
from extender.state.gangs import GangIndex

MEMBERS_MISSED_AFTER_S = 1.0
"""Operators make most jobs' pods within it; who looks at a pod that waits, looks later."""

MISSED_AFTER_S = 10.0
"""Users apply the parts of a job, and operators its gangs, within a few seconds."""

Absent = Literal["members", "groups"]


class Complaints:
    """Remembers, by gang, what was said, and when what is missing is to be missed."""

    def __init__(self, gangs: GangIndex) -> None:
        self._gangs = gangs
        self._said: dict[GangKey, set[Problem | PodUid]] = {}
        self._missed_at_s: dict[tuple[GangKey, Absent], float] = {}

    def take_due(self, gang: Gang, now_s: float) -> list[Announcement]:
        """Return what is to be said now about a gang; it counts as said from then on."""
        said = self._said.setdefault(gang.key, set())
        problems = [problem for problem in self._due_problems(gang, now_s) if problem not in said]
        is_incomplete = self._is_missed(
            (gang.key, "members"), now_s, MEMBERS_MISSED_AFTER_S, is_absent=gang.missing > 0
        )
        overruled = [pod for pod in self._gangs.overruled(gang.key) if pod.uid not in said]
        said.update(problems, (pod.uid for pod in overruled))
        return [
            *([announce_incomplete(gang)] if is_incomplete else []),
            *(announce_problem(gang, problem) for problem in problems),
            *(announce_disagreement(gang, pod) for pod in overruled),
        ]

    def overdue(self, now_s: float) -> set[GangKey]:
        """Return the gangs that have missed something for long enough."""
        return {key for (key, _), at_s in self._missed_at_s.items() if at_s <= now_s}

    def next_due_s(self) -> float | None:
        """Return when `overdue` has something to return next, if ever."""
        at_s = min(self._missed_at_s.values(), default=math.inf)
        return None if at_s == math.inf else at_s

    def forget(self, key: GangKey) -> None:
        """Forget a gang that is gone."""
        self._said.pop(key, None)
        self._missed_at_s.pop((key, "members"), None)
        self._missed_at_s.pop((key, "groups"), None)

    def _due_problems(self, gang: Gang, now_s: float) -> list[Problem]:
        missing: list[Problem] = [
            MissingGang(key) if namespace_of(key) == namespace_of(gang.key) else NotNamedBack(key)
            for key in self._gangs.missing_groups(gang)
        ]
        is_missed = self._is_missed((gang.key, "groups"), now_s, MISSED_AFTER_S, is_absent=bool(missing))
        return [*gang.problems, *(missing if is_missed else [])]

    def _is_missed(self, what: tuple[GangKey, Absent], now_s: float, after_s: float, *, is_absent: bool) -> bool:
        """Whether it is time to say that something is absent; true once for each absence."""
        if not is_absent:
            self._missed_at_s.pop(what, None)
        elif now_s >= self._missed_at_s.setdefault(what, now_s + after_s):
            self._missed_at_s[what] = math.inf
            return True
        return False
