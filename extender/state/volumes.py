"""Which claims and volumes are there, and which pods wait for a node that reaches them?"""

from collections import defaultdict
from collections.abc import Iterable
from functools import lru_cache

from msgspec import structs

from extender.decide.volumes import volume_terms
from extender.model.flyweight import KEPT, is_worth_keeping
from extender.model.pod import Pod, PodShape, PodUid, VolumeTerms
from extender.model.volume import PersistentVolume, VolumeClaim, claim_key


class VolumeIndex:
    """Claims and volumes, and the unbound pods by their claims. Each change returns the pods that it may concern."""

    def __init__(self) -> None:
        self._claims: dict[str, VolumeClaim] = {}
        self._volumes: dict[str, PersistentVolume] = {}
        self._users: defaultdict[str, set[PodUid]] = defaultdict(set)
        self._claimants: dict[str, str] = {}
        """The claim that is bound to each volume, which need not be known yet."""

    def shape_of(self, pod: Pod, before: Pod | None) -> PodShape:
        """Return the pod's shape with what its volumes ask. A bound pod keeps what they asked when it was placed."""
        if not pod.claims:
            return pod.shape
        if pod.node_name:
            terms = before.shape.volumes if before else None
        else:
            terms = volume_terms(pod, self._claims, self._volumes)
        return _with_terms(pod.shape, terms)

    def put(self, pod: Pod) -> None:
        """Add an unbound pod, or let go of one that is bound."""
        for key in _keys(pod):
            if pod.node_name:
                self._drop_user(key, pod.uid)
            else:
                self._users[key].add(pod.uid)

    def drop(self, pod: Pod) -> None:
        """Forget a pod."""
        for key in _keys(pod):
            self._drop_user(key, pod.uid)

    def replace_claims(self, claims: Iterable[VolumeClaim]) -> set[PodUid]:
        """Take a full list of claims."""
        listed = {claim.key: claim for claim in claims}
        gone = [key for key in self._claims if key not in listed]
        concerned = [self.drop_claim(key) for key in gone] + [self.put_claim(claim) for claim in listed.values()]
        return set().union(*concerned)

    def put_claim(self, claim: VolumeClaim) -> set[PodUid]:
        """Add or change a claim."""
        before = self._claims.get(claim.key)
        if before == claim:
            return set()
        self._release(before)
        self._claims[claim.key] = claim
        if claim.volume:
            self._claimants[claim.volume] = claim.key
        return set(self._users.get(claim.key, ()))

    def drop_claim(self, key: str) -> set[PodUid]:
        """Forget a claim."""
        self._release(self._claims.pop(key, None))
        return set(self._users.get(key, ()))

    def replace_volumes(self, volumes: Iterable[PersistentVolume]) -> set[PodUid]:
        """Take a full list of volumes."""
        listed = {volume.name: volume for volume in volumes}
        gone = [name for name in self._volumes if name not in listed]
        concerned = [self.drop_volume(name) for name in gone] + [self.put_volume(each) for each in listed.values()]
        return set().union(*concerned)

    def put_volume(self, volume: PersistentVolume) -> set[PodUid]:
        """Add or change a volume."""
        if self._volumes.get(volume.name) == volume:
            return set()
        self._volumes[volume.name] = volume
        return self._users_of_volume(volume.name)

    def drop_volume(self, name: str) -> set[PodUid]:
        """Forget a volume."""
        self._volumes.pop(name, None)
        return self._users_of_volume(name)

    def _users_of_volume(self, name: str) -> set[PodUid]:
        return set(self._users.get(self._claimants.get(name, ""), ()))

    def _release(self, claim: VolumeClaim | None) -> None:
        if claim is not None and self._claimants.get(claim.volume) == claim.key:
            del self._claimants[claim.volume]

    def _drop_user(self, key: str, uid: PodUid) -> None:
        users = self._users.get(key)
        if users is not None:
            users.discard(uid)
            if not users:
                del self._users[key]


def _keys(pod: Pod) -> list[str]:
    return [claim_key(pod.namespace, use.name) for use in pod.claims]


def _with_terms(shape: PodShape, terms: VolumeTerms | None) -> PodShape:
    made = structs.replace(shape, volumes=terms)
    return _kept(made) if is_worth_keeping(made) else made


@lru_cache(maxsize=KEPT)  # of equal ones as of `wire.objects`, one is kept
def _kept(shape: PodShape) -> PodShape:
    return shape
