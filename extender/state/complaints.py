"""What is to be said about what was declared of a gang?

Each problem is said once per gang, and once per member that is overruled. A gang that is named in `groups` may well
come a little later than this one, so that it is only missed after a while.
"""

import math

from extender.decide.explain import announce_disagreement, announce_problem
from extender.model.announcement import Announcement
from extender.model.claim import GangKey
from extender.model.declaration import MissingGang, Problem
from extender.model.gang import Gang
from extender.model.pod import PodUid
from extender.state.gangs import GangIndex

MISSED_AFTER_S = 10.0
"""Operators make the pods of a job, and users apply the parts of one, within a few seconds."""


class Complaints:
    """Remembers, by gang, what was said, and when what is missing is to be missed."""

    def __init__(self, gangs: GangIndex) -> None:
        self._gangs = gangs
        self._said: dict[GangKey, set[Problem | PodUid]] = {}
        self._missed_at_s: dict[GangKey, float] = {}

    def take_due(self, gang: Gang, now_s: float) -> list[Announcement]:
        """Return what is to be said now about a gang; it counts as said from then on."""
        said = self._said.setdefault(gang.key, set())
        problems = [problem for problem in self._due_problems(gang, now_s) if problem not in said]
        overruled = [pod for pod in self._gangs.overruled(gang.key) if pod.uid not in said]
        said.update(problems, (pod.uid for pod in overruled))
        return [
            *(announce_problem(gang, problem) for problem in problems),
            *(announce_disagreement(gang, pod) for pod in overruled),
        ]

    def overdue(self, now_s: float) -> set[GangKey]:
        """Return the gangs that have missed another one for long enough."""
        return {key for key, at_s in self._missed_at_s.items() if at_s <= now_s}

    def next_due_s(self) -> float | None:
        """Return when `overdue` has something to return next, if ever."""
        at_s = min(self._missed_at_s.values(), default=math.inf)
        return None if at_s == math.inf else at_s

    def forget(self, key: GangKey) -> None:
        """Forget a gang that is gone."""
        self._said.pop(key, None)
        self._missed_at_s.pop(key, None)

    def _due_problems(self, gang: Gang, now_s: float) -> list[Problem]:
        missing = [MissingGang(key) for key in self._gangs.missing_groups(gang)]
        if not missing:
            self._missed_at_s.pop(gang.key, None)
        elif now_s >= self._missed_at_s.setdefault(gang.key, now_s + MISSED_AFTER_S):
            self._missed_at_s[gang.key] = math.inf
            return [*gang.problems, *missing]
        return list(gang.problems)
