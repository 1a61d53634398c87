"""What happens when something has changed?

One cycle, run whenever the state changed or a deadline is over, with all its steps in a page. Between two cycles the
verbs answer from the same state; what they change wakes the next cycle.
"""

import asyncio
from collections.abc import Callable
from itertools import chain

import structlog
from msgspec import Struct

from extender.decide.explain import announce_placed, explain_not_waiting
from extender.effects.gates import Release
from extender.effects.nomination import Nomination
from extender.model.announcement import Announcement
from extender.model.claim import solo_pod
from extender.model.gang import Gang
from extender.model.pod import Pod
from extender.model.pod_group import StatusReport
from extender.state.cluster import Cluster
from extender.state.complaints import Complaints
from extender.state.group_statuses import GroupStatuses
from extender.state.notices import Notices
from extender.state.planning import Planner
from extender.state.releases import Releases
from extender.state.wakeups import WakeUps
from extender.verbs.barrier import Barrier
from extender.verbs.turns import Turns

UNREADY_PAUSE_S = 1.0
"""How often to look whether the state can be trusted again; deadlines are kept meanwhile."""

TOGETHER_S = 0.005
"""Changes that come within it are looked at together: a burst of members brings thousands a second, and what a cycle
does for ten of them is mostly what it does for one."""

RESTS_FOR = 4.0
"""After a cycle the verbs and watches have the loop for this many times as long as the cycle took. A cycle looks at all
members of the gangs that changed: so a gang of 1,000 whose members come one by one is looked at less often, not slower
for each member, and the verbs of others are answered meanwhile."""

LONGEST_REST_S = 0.1
"""Nobody waits longer than that for what a cycle decides."""

_log = structlog.get_logger()


class Effects(Struct, frozen=True):
    """What takes the cycle's decisions to the API server; none of them waits."""

    nominate: Callable[[Nomination], None]
    release: Callable[[Release], None]
    announce: Callable[[Announcement], None]
    report: Callable[[StatusReport], None]


class Cycle:
    """Carries the state's changes on to waiting calls and to the API server.

    `releases` knows which gates come off, `statuses` what was asked for last.
    """

    def __init__(self, cluster: Cluster, planner: Planner, barrier: Barrier, turns: Turns, effects: Effects) -> None:
        self.releases = Releases(cluster)
        self.statuses = GroupStatuses(cluster.gangs)
        self._cluster = cluster
        self._planner = planner
        self._barrier = barrier
        self._turns = turns
        self._effects = effects
        self._wakeups = WakeUps(cluster, planner.standings)
        self._complaints = Complaints(cluster.gangs)
        self._notices = Notices(cluster, planner.standings)

    async def run(self, is_ready: Callable[[], bool]) -> None:
        """Run cycles until cancelled; nothing is planned while the state cannot be trusted."""
        changed = asyncio.Event()
        self._cluster.changes.on_change(changed.set)
        clock = asyncio.get_running_loop().time
        while True:
            ready = is_ready()
            started_s = clock()
            self.step(started_s, may_plan=ready)
            await asyncio.sleep(rest_s(clock() - started_s))
            await _wait(changed, self.next_s() if ready else clock() + UNREADY_PAUSE_S)
            changed.clear()

    def step(self, now_s: float, *, may_plan: bool = True) -> None:
        """Run one cycle at the given time of the event loop's clock."""
        # 1. Give back room that nobody came for, and plan every gang that may fit now.
        self._planner.expire(now_s)
        if may_plan:
            self._planner.plan_gangs(now_s)
        sleepers = self._planner.sleepers.seat(now_s) if may_plan else []
        announcements = self._planner.take_news()

        # 2. Let the bind calls of complete gangs go on, and refuse those of gangs that lost their room.
        touched = self._cluster.changes.take_touched() | self._complaints.overdue(now_s) | self._notices.overdue(now_s)
        self._barrier.reconsider(touched)
        self._turns.reconsider(now_s)

        # 3. Wake pods that sleep in kube-scheduler although room is held for them, and let held pods go that may.
        gangs = [gang for gang in map(self._cluster.gangs.get, touched) if gang is not None]
        concerned = map(self._cluster.gangs.get, self._cluster.gangs.concerned(touched))
        changed = chain(*(gang.waiting for gang in concerned if gang is not None), sleepers)
        for pod, node in self._wakeups.due(changed, now_s):
            self._effects.nominate(Nomination(pod.namespace, pod.name, pod.uid, node))
        strays = self._cluster.changes.take_strays()
        self.releases.look_at(touched, strays)
        for pod in self.releases.due(now_s) if may_plan else ():
            self._let_go(pod)

        # 4. Say what users should know.
        for gang in gangs:
            announcements += [*self._news_of(gang), *self._complaints.take_due(gang, now_s)]
        announcements += [notice for key in touched for notice in self._notices.take_due(key, now_s)]
        announcements += self._notices.take_due_of_strays(strays)
        for announcement in announcements:
            self._effects.announce(announcement)
        for status in [status for key in touched for status in self.statuses.take_due(key)]:
            self._effects.report(status)

        # 5. Forget pods and gangs that are gone.
        for key in touched.difference(gang.key for gang in gangs):
            self._complaints.forget(key)
        gone = self._cluster.changes.take_gone()
        self._notices.forget(gone)
        for uid in gone:
            self._planner.standings.forget(uid)
            self._planner.sleepers.forget(uid)
            self._wakeups.forget(uid)

    def next_s(self) -> float | None:
        """Return when something is due next without any change, on the event loop's clock."""
        clocks = (
            self._planner.next_deadline_s,
            self._turns.next_deadline_s,
            self._wakeups.next_s,
            self.releases.next_s,
            self._complaints.next_due_s,
            self._notices.next_due_s,
        )
        return min((at_s for next_s in clocks if (at_s := next_s()) is not None), default=None)

    def _let_go(self, pod: Pod) -> None:
        if not self._cluster.gangs.serves(pod):
            _log.warning("a pod that is not ours has our gate", text=explain_not_waiting(pod))
        self._effects.release(Release(pod.namespace, pod.name, pod.uid))

    def _news_of(self, gang: Gang) -> list[Announcement]:
        if gang.satisfied and gang.key in self._barrier.opened:
            self._barrier.opened.discard(gang.key)
            return [] if solo_pod(gang.key) else [announce_placed(gang)]  # of a pod, kube-scheduler says it
        return []


def rest_s(took_s: float) -> float:
    """Return how long to wait for further changes after a cycle that took so long."""
    return min(max(TOGETHER_S, RESTS_FOR * took_s), LONGEST_REST_S)


async def _wait(changed: asyncio.Event, until_s: float | None) -> None:
    try:
        async with asyncio.timeout_at(until_s):
            await changed.wait()
    except TimeoutError:
        return
