"""Which gangs are there, and who belongs to them?

An index over the pods: it holds nothing that the pods do not say.
"""

from collections.abc import Collection, Iterator

from extender.model.claim import GangClaim, GangKey
from extender.model.gang import Gang
from extender.model.pod import Pod, PodUid


class GangIndex:
    """The gangs by key. `scheduler_names` are the schedulers whose unbound pods come to us."""

    def __init__(self, scheduler_names: Collection[str]) -> None:
        self._scheduler_names = frozenset(scheduler_names)
        self._members: dict[GangKey, dict[PodUid, Pod]] = {}
        self._views: dict[GangKey, Gang] = {}

    def __iter__(self) -> Iterator[GangKey]:
        """Yield the key of every gang with a pod, whatever its phase."""
        return iter(self._members)

    def put(self, pod: Pod) -> None:
        """Add or change a member; pods without a valid claim are passed over."""
        if isinstance(pod.gang, GangClaim):
            self._members.setdefault(pod.gang.key, {})[pod.uid] = pod
            self._views.pop(pod.gang.key, None)

    def drop(self, pod: Pod) -> None:
        """Forget a member."""
        if isinstance(pod.gang, GangClaim) and pod.gang.key in self._members:
            members = self._members[pod.gang.key]
            members.pop(pod.uid, None)
            self._views.pop(pod.gang.key, None)
            if not members:
                del self._members[pod.gang.key]

    def get(self, key: GangKey) -> Gang | None:
        """Return the gang, or None when no member of it waits or is bound."""
        if key not in self._views and key in self._members:
            self._views[key] = self._view(key)
        gang = self._views.get(key)
        return gang if gang and (gang.waiting or gang.bound) else None

    def is_waiting(self, pod: Pod) -> bool:
        """Whether the pod is a member that we are to place."""
        alive = not (pod.finished or pod.terminating or pod.gated)
        return alive and not pod.node_name and pod.scheduler_name in self._scheduler_names

    def disagreeing(self, key: GangKey) -> list[Pod]:
        """Return the members whose min-available is not the one that holds."""
        gang = self.get(key)
        if gang is None:
            return []
        return [pod for pod in (*gang.waiting, *gang.bound) if _min_available(pod) != gang.min_available]

    def _view(self, key: GangKey) -> Gang:
        members = sorted(self._members[key].values(), key=_age)
        waiting = tuple(pod for pod in members if self.is_waiting(pod))
        bound = tuple(pod for pod in members if pod.node_name and not pod.finished and not pod.terminating)
        oldest = min((*waiting, *bound), default=members[0], key=_age)
        return Gang(
            key,
            _min_available(oldest),
            waiting,
            bound,
            # Of a gang that runs. What an earlier job of the same name has left behind does not count for a new one.
            succeeded_count=sum(pod.succeeded for pod in members) if bound else 0,
        )


def _age(pod: Pod) -> tuple[float, str]:
    return pod.created_at, pod.name


def _min_available(pod: Pod) -> int:
    return pod.gang.min_available if isinstance(pod.gang, GangClaim) else 0
