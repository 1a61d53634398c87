"""The gang that KubeShare 2's labels declare: a head count, and the share of it that must run together."""

import math
import re
from typing import Final

from extender.model.claim import BadGangClaim, GangClaim, gang_key
from extender.wire.core_v1 import Pod
from extender.wire.gang_terms import bad_count, claim_of, count_of, written

NAMES: Final = ("sharedgpu/group_name", "sharedgpu/pod_group_name")
"""The first is the code's, the second its README's."""
HEADCOUNT: Final = "sharedgpu/group_headcount"
THRESHOLD: Final = "sharedgpu/group_threshold"

_SHARE = re.compile(r"[0-9]{0,9}\.?[0-9]{1,9}")


def kubeshare_gang(pod: Pod) -> GangClaim | BadGangClaim | None:
    """Return the gang that the pod's labels declare."""
    labels = pod.metadata.labels or {}
    for where in NAMES:
        if where in labels:
            return _claim(pod, where, labels[where], labels.get(HEADCOUNT), labels.get(THRESHOLD))
    return None


def _claim(pod: Pod, where: str, name: str, headcount: str | None, threshold: str | None) -> GangClaim | BadGangClaim:
    key = gang_key(pod.metadata.namespace, name)
    if headcount is None or threshold is None:
        return claim_of(pod, f"label {where}", name)
    count = count_of(headcount)
    if count is None:
        return bad_count(key, f"label {HEADCOUNT}", headcount)
    share = float(threshold) if _SHARE.fullmatch(threshold) else 0.0
    # KubeShare's own rounding (pkg/scheduler/pod_group.go)
    min_available = math.floor(share * count + 0.5)
    if min_available < 1:
        wanted = f"it must be a share of the {count} members that comes to 1 or more"
        return BadGangClaim(key, f"{written(f'label {THRESHOLD}', threshold)}: {wanted}")
    return claim_of(pod, f"label {where}", name, fallback_min=min_available)
