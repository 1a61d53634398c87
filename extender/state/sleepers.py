"""Which pods without a gang sleep in kube-scheduler although there is room for them by now?

We turn such a pod away where room is kept for a gang. kube-scheduler asks for it again when it sees a change in the
cluster; but room that was only held is given back without one, and a change that it saw before we did it does not see
again. So a pod that nobody asks for soon after room got free is given some, and woken as a member is.
"""

import math
from typing import Final

from extender.decide.alike import group_alike
from extender.decide.packing import pack_gang
from extender.model.claim import solo_claim
from extender.model.pod import Pod, PodUid
from extender.state.cluster import Cluster

ASKED_AGAIN_S: Final = 1.0
"""kube-scheduler asks for a pod again within 10 ms of a change, if it sees one; only a pod that it tried several times
in vain may rest longer, and loses nothing by being woken."""


class Sleepers:
    """The pods without a gang that were turned away when they were last asked for."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._since_s: dict[PodUid, float] = {}
        """When room got free that they were not asked for since; infinite where none did."""

    def turn_away(self, uid: PodUid) -> None:
        """Note that the pod was asked for, and that there is no room for it now."""
        self._since_s[uid] = math.inf

    def forget(self, uid: PodUid) -> None:
        """Forget a pod that was let through, or is gone."""
        self._since_s.pop(uid, None)

    def room_is_free(self, now_s: float) -> None:
        """Note that there is more room than before."""
        self._since_s = {uid: min(since_s, now_s) for uid, since_s in self._since_s.items()}

    def next_s(self) -> float:
        """Return when somebody will have slept too long, on the event loop's clock."""
        return min(self._since_s.values(), default=math.inf) + ASKED_AGAIN_S

    def seat(self, now_s: float) -> list[Pod]:
        """Hold room for those who have slept too long, if there is any; return them."""
        if now_s < self.next_s():
            return []
        late = [uid for uid, since_s in self._since_s.items() if since_s + ASKED_AGAIN_S <= now_s]
        self._since_s |= dict.fromkeys(late, math.inf)
        pods = [pod for uid in late if (pod := self._cluster.pods.get(uid)) and _goes_alone(pod)]
        return [pod for pod in sorted(pods, key=lambda pod: pod.seniority) if self._has_seat(pod, now_s)]

    def _has_seat(self, pod: Pod, now_s: float) -> bool:
        if self._cluster.reservations.slot_of(pod.uid) is None:
            snapshot = self._cluster.snapshot_for(pod.seniority)
            packing = pack_gang(group_alike([pod], snapshot), snapshot, required=1)
            self._cluster.reservations.reserve(solo_claim(pod.namespace, pod.name).key, packing.placements, now_s)
        return self._cluster.reservations.slot_of(pod.uid) is not None


def _goes_alone(pod: Pod) -> bool:
    """Whether kube-scheduler still places it, and no gang has room for it that it has joined since."""
    return pod.gang is None and not (pod.node_name or pod.terminating or pod.finished)
