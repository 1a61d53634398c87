"""What happens when something has changed?

One cycle, run whenever the state changed or a deadline is over, with all its steps in a page. Between two cycles the
verbs answer from the same state; what they change wakes the next cycle.
"""

import asyncio
from collections.abc import Callable

from extender.decide.explain import announce_disagreement, announce_placed, announce_rejection
from extender.effects.nomination import Nomination
from extender.model.announcement import Announcement
from extender.model.gang import Gang
from extender.model.pod import Pod, PodUid
from extender.state.cluster import Cluster
from extender.state.planning import Planner
from extender.state.reservations import Slot, Stage
from extender.verbs.barrier import Barrier

UNREADY_PAUSE_S = 1.0
"""How often to look whether the state can be trusted again; deadlines are kept meanwhile."""


class Cycle:
    """Carries the state's changes on to waiting calls and, through `nominate` and `announce`, to the API server."""

    def __init__(
        self,
        cluster: Cluster,
        planner: Planner,
        barrier: Barrier,
        *,
        nominate: Callable[[Nomination], None],
        announce: Callable[[Announcement], None],
    ) -> None:
        self._cluster = cluster
        self._planner = planner
        self._barrier = barrier
        self._submit = nominate
        self._announce = announce
        self._asked: dict[PodUid, Slot] = {}
        self._warned: set[PodUid] = set()

    async def run(self, is_ready: Callable[[], bool]) -> None:
        """Run cycles until cancelled; nothing is planned while the state cannot be trusted."""
        changed = asyncio.Event()
        self._cluster.changes.on_change(changed.set)
        clock = asyncio.get_running_loop().time
        while True:
            ready = is_ready()
            self.step(clock(), may_plan=ready)
            await _wait(changed, self._planner.next_deadline_s() if ready else clock() + UNREADY_PAUSE_S)
            changed.clear()

    def step(self, now_s: float, *, may_plan: bool = True) -> None:
        """Run one cycle at the given time of the event loop's clock."""
        # 1. Give back room that nobody came for, and plan every gang that may fit now.
        announcements = self._planner.expire(now_s)
        if may_plan:
            self._planner.plan_gangs(now_s)

        # 2. Let the bind calls of complete gangs go on, and refuse those of gangs that lost their room.
        touched = self._cluster.changes.take_touched()
        self._barrier.reconsider(touched)

        # 3. Wake members that sleep in kube-scheduler although room is held for them.
        gangs = [gang for gang in map(self._cluster.gangs.get, touched) if gang is not None]
        for gang in gangs:
            self._nominate(gang)

        # 4. Say what users should know.
        for gang in gangs:
            announcements += self._news_of(gang)
        for announcement in announcements:
            self._announce(announcement)

        # 5. Forget pods that are gone.
        for uid in self._cluster.changes.take_gone():
            self._planner.standings.forget(uid)
            self._asked.pop(uid, None)
            self._warned.discard(uid)

    def _nominate(self, gang: Gang) -> None:
        slots = self._cluster.reservations.by_holder(gang.key)
        for pod in gang.waiting:
            slot = slots.get(pod.uid)
            asked = self._asked.get(pod.uid)
            if asked is not None and (asked is not slot or asked.node == pod.nominated_node):
                del self._asked[pod.uid]  # done, or meant for room that it no longer has
                asked = None
            if slot is None or asked is not None or not _sleeps_elsewhere(pod, slot):
                continue
            if not self._cluster.waits_for_siblings(pod, slot):
                self._asked[pod.uid] = slot
                self._submit(Nomination(pod.namespace, pod.name, pod.uid, slot.node))

    def _news_of(self, gang: Gang) -> list[Announcement]:
        news = []
        if gang.satisfied and gang.key in self._barrier.opened:
            self._barrier.opened.discard(gang.key)
            news.append(announce_placed(gang))
        for pod in self._cluster.gangs.disagreeing(gang.key):
            if pod.uid not in self._warned:
                self._warned.add(pod.uid)
                news.append(announce_disagreement(gang, pod))
        return news + self._corrections_for(gang)

    def _corrections_for(self, gang: Gang) -> list[Announcement]:
        """Return an Event for each member that was told what is not the reason any more, and now sleeps."""
        standing = self._planner.standings.get(gang.key)
        if standing is None:
            return []
        slots = self._cluster.reservations.by_holder(gang.key)
        corrected = [
            pod
            for pod in gang.waiting
            if pod.uid not in slots and self._planner.standings.correct(pod.uid, standing.text)
        ]
        return [announce_rejection(pod, standing.text) for pod in corrected]


def _sleeps_elsewhere(pod: Pod, slot: Slot) -> bool:
    """Whether kube-scheduler gave the pod up, and will not look at its node by itself."""
    return slot.stage is Stage.PLANNED and pod.turned_away and pod.nominated_node != slot.node


async def _wait(changed: asyncio.Event, until_s: float | None) -> None:
    try:
        async with asyncio.timeout_at(until_s):
            await changed.wait()
    except TimeoutError:
        return
