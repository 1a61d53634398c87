"""The gang that Koordinator's annotations name."""

from typing import Final

from extender.model.claim import BadGangClaim, GangClaim
from extender.model.pod_group import KOORDINATOR
from extender.wire.core_v1 import Pod
from extender.wire.gang_terms import PREFIX, claim_of

NAME: Final = f"{PREFIX}/name"


def koordinator_gang(pod: Pod) -> GangClaim | BadGangClaim | None:
    """Return the gang that the pod's annotations name."""
    name = (pod.metadata.annotations or {}).get(NAME)
    return None if name is None else claim_of(pod, f"annotation {NAME}", name, pod_group=KOORDINATOR)
