"""Which gang a pod belongs to, in any of the ways in which systems write it on a pod.

One table of dialects in the order in which they are asked: the first that says anything decides, be it sense or not.
"""

from collections.abc import Callable

from extender.model.claim import BadGangClaim, GangClaim
from extender.wire.core_v1 import Pod
from extender.wire.gang_koordinator import koordinator_gang

Dialect = Callable[[Pod], GangClaim | BadGangClaim | None]

DIALECTS: tuple[Dialect, ...] = (koordinator_gang,)


def gang_of(pod: Pod) -> GangClaim | BadGangClaim | None:
    """Return the pod's gang; None when no dialect knows of one."""
    for dialect in DIALECTS:
        claim = dialect(pod)
        if claim is not None:
            return claim
    return None
