"""Which gang is a pod in, for us?"""

from collections.abc import Collection

from msgspec import structs

from extender.model.claim import GangClaim, GangKey, solo_claim
from extender.model.pod import Pod
from extender.state.gangs import GangIndex


def key_of(pod: Pod) -> GangKey | None:
    """Return the gang that the pod is a member of."""
    return pod.gang.key if isinstance(pod.gang, GangClaim) else None


def as_member(pod: Pod, gangs: GangIndex, derives_for: Collection[str]) -> Pod:
    """Return the pod as a member of the gang that it is in for us.

    Others' jobs are not our business, so that a gang is derived for pods of these schedulers only. A pod without a gang
    for which only we know room is planned as a gang of its own, until it has it.
    """
    if pod.gang is not None and pod.gang.derived and pod.scheduler_name not in derives_for:
        pod = structs.replace(pod, gang=None)
    if pod.gang is None and pod.shape.is_placed_by_us and not pod.node_name and gangs.serves(pod):
        pod = structs.replace(pod, gang=solo_claim(pod.namespace, pod.name))
    return pod
