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
        """Return the gang, or None when no member of it counts."""
        if key not in self._views and key in self._members:
            self._views[key] = self._view(key)
        gang = self._views.get(key)
        return gang if gang and gang.present else None

    def disagreeing(self, key: GangKey) -> list[Pod]:
        """Return the members whose min-available is not the one that holds."""
        gang = self.get(key)
        if gang is None:
            return []
        return [
            pod
            for pod in (*gang.waiting, *gang.bound)
            if isinstance(pod.gang, GangClaim) and pod.gang.min_available != gang.min_available
        ]

    def _view(self, key: GangKey) -> Gang:
        members = sorted(self._members[key].values(), key=lambda pod: (pod.created_at, pod.name))
        alive = [pod for pod in members if not pod.finished and not pod.terminating]
        claims = (pod.gang for pod in members if isinstance(pod.gang, GangClaim))
        return Gang(
            key,
            min_available=next(claims).min_available,
            waiting=tuple(pod for pod in alive if not pod.node_name and self._comes_to_us(pod)),
            bound=tuple(pod for pod in alive if pod.node_name),
        )

    def _comes_to_us(self, pod: Pod) -> bool:
        return pod.scheduler_name in self._scheduler_names and not pod.gated
