"""What has changed since somebody last looked?

The state notes here what its changes may mean for gangs; the cycle takes it from here, so that a change costs only
what it concerns.
"""

from collections.abc import Callable

from extender.model.claim import GangKey
from extender.model.pod import PodUid


class Changes:
    """Notes for the cycle. `room_freed` means that any waiting gang may fit now."""

    def __init__(self) -> None:
        self.room_freed = False
        self._gangs: set[GangKey] = set()
        self._to_plan: set[GangKey] = set()
        self._gone: set[PodUid] = set()
        self._strays: set[PodUid] = set()
        self._wake: Callable[[], None] = _nobody_listens

    def wake(self) -> None:
        """Have the cycle run: something changed that a bind call may wait for."""
        self._wake()

    def on_change(self, wake: Callable[[], None]) -> None:
        """Have `wake` called at each change; it must be cheap and must not change the state."""
        self._wake = wake

    def touch(self, key: GangKey) -> None:
        """Note that a gang's members or room changed."""
        self._gangs.add(key)
        self._wake()

    def plan(self, key: GangKey) -> None:
        """Note that a gang should be planned (again)."""
        self._to_plan.add(key)
        self.touch(key)

    def free_room(self) -> None:
        """Note that there is more room than before."""
        self.room_freed = True
        self._wake()

    def lose(self, uid: PodUid) -> None:
        """Note that a pod is gone."""
        self._gone.add(uid)
        self._wake()

    def stray(self, uid: PodUid) -> None:
        """Note a pod with our gate that is a member of no gang."""
        self._strays.add(uid)
        self._wake()

    def take_strays(self) -> set[PodUid]:
        """Return the strays since the last call."""
        taken, self._strays = self._strays, set()
        return taken

    def take_gone(self) -> set[PodUid]:
        """Return the pods that went since the last call."""
        taken, self._gone = self._gone, set()
        return taken

    def take_touched(self) -> set[GangKey]:
        """Return the gangs touched since the last call."""
        taken, self._gangs = self._gangs, set()
        return taken

    def take_to_plan(self) -> set[GangKey]:
        """Return the gangs to plan that were noted since the last call."""
        taken, self._to_plan = self._to_plan, set()
        return taken


def _nobody_listens() -> None:
    return None
