"""Which members have not been told why they wait?

kube-scheduler tells a pod's owner what the filter verb answered. That leaves those whom filter was never asked about
(kube-scheduler's own filters reject them, or a scheduling gate holds them), those whose bind call is held, and those
whose reason has changed since. They get an Event of ours.
"""

from collections.abc import Iterable

from extender.decide.explain import announce_rejection, explain_bad_claim, explain_gathering, explain_undeclared
from extender.model.announcement import Announcement
from extender.model.claim import BadGangClaim, GangKey
from extender.model.pod import Pod, PodUid
from extender.state.cluster import Cluster
from extender.state.standings import Standings

UNTOLD_S = 1.0
"""kube-scheduler tries a new pod within milliseconds; who was not told after this long will not be soon. It begins anew
with each member that comes: of 1,000 that take ten seconds to be created, most would get an Event for nothing."""

LONGEST_UNTOLD_S = 30.0
"""Nobody waits longer for his Event, though members keep coming: an owner who looks sees something by then."""


class Notices:
    """Remembers who was told what, and since when the others wait to be."""

    def __init__(self, cluster: Cluster, standings: Standings) -> None:
        self._cluster = cluster
        self._standings = standings
        self._told: dict[PodUid, str] = {}
        self._untold_since_s: dict[PodUid, float] = {}
        self._due_s: dict[GangKey, float] = {}

    def take_due(self, key: GangKey, now_s: float) -> list[Announcement]:
        """Return what is to be said to a gang's members now; it counts as said from then on."""
        text = self._why(key)
        pods = self._untold(key, text) if text else []
        due_s = self._times([pod for pod in pods if not self._was_told_else(pod)], now_s)
        due = [pod for pod in pods if due_s.get(pod.uid, now_s) <= now_s]
        for pod in due:
            self._told[pod.uid] = text
            self._untold_since_s.pop(pod.uid, None)
        self._due_s.pop(key, None)
        later = [at_s for at_s in due_s.values() if at_s > now_s]
        if later:
            self._due_s[key] = min(later)
        return [announce_rejection(pod, text) for pod in due]

    def take_due_of_strays(self, uids: Iterable[PodUid]) -> list[Announcement]:
        """Return what is to be said to pods that keep our gate since what they say of their gang cannot be used."""
        due = []
        for uid in uids:
            pod = self._cluster.pods.get(uid)
            if pod is not None and isinstance(pod.gang, BadGangClaim) and self._cluster.gangs.serves(pod):
                text = explain_bad_claim(pod.gang)
                if self._told.get(uid) != text:
                    self._told[uid] = text
                    due.append(announce_rejection(pod, text))
        return due

    def overdue(self, now_s: float) -> set[GangKey]:
        """Return the gangs for which `take_due` has something to say by now."""
        return {key for key, at_s in self._due_s.items() if at_s <= now_s}

    def next_due_s(self) -> float | None:
        """Return when `overdue` has something to return next, if ever."""
        return min(self._due_s.values(), default=None)

    def forget(self, uids: Iterable[PodUid]) -> None:
        """Forget pods that are gone."""
        for uid in uids:
            self._told.pop(uid, None)
            self._untold_since_s.pop(uid, None)

    def _why(self, key: GangKey) -> str:
        """Say why the members wait; empty when they do not, or only until kube-scheduler has tried them."""
        standing = self._standings.get(key)
        undeclared = self._cluster.gangs.undeclared(key)
        gang = self._cluster.gangs.get(key)
        if undeclared is not None:
            return explain_undeclared(key, undeclared)
        if gang is None or gang.satisfied:
            return ""
        if standing is not None:
            return standing.text
        return explain_gathering(gang) if gang.missing else ""

    def _untold(self, key: GangKey, text: str) -> list[Pod]:
        pods = self._cluster.gangs.to_place(key)
        return [pod for pod in pods if text not in (self._told.get(pod.uid), self._standings.told(pod.uid))]

    def _was_told_else(self, pod: Pod) -> bool:
        return pod.uid in self._told or self._standings.told(pod.uid) is not None

    def _times(self, pods: Iterable[Pod], now_s: float) -> dict[PodUid, float]:
        """Return when each of a gang's members who were told nothing yet is to be."""
        since_s = {pod.uid: self._untold_since_s.setdefault(pod.uid, now_s) for pod in pods}
        last_s = max(since_s.values(), default=now_s)
        return {uid: min(last_s + UNTOLD_S, at_s + LONGEST_UNTOLD_S) for uid, at_s in since_s.items()}
