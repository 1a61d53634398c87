"""What will the pods of a job look like, before they exist?

By the template in the job, filled in as the API server fills in pods. They differ from it by what their operator and
other admission plugins add: so it is a guess, made for room that is held for them until they come.
"""

from typing import Any

from msgspec import MsgspecError, Raw, convert
from msgspec.json import decode

from extender.model.device import BadCardRequest
from extender.model.pod import Occupant, Tags
from extender.wire import core_v1
from extender.wire.gang_dialects import gang_of
from extender.wire.outsized import outsized
from extender.wire.pod_shape import shape_of
from extender.wire.quantity import BadQuantity

_TOLERATED_FOR_A_WHILE = [
    {"key": f"node.kubernetes.io/{what}", "operator": "Exists", "effect": "NoExecute"}
    for what in ("not-ready", "unreachable")
]
"""What the API server adds to every pod (admission plugin DefaultTolerationSeconds, on by default)."""


def sample_of(namespace: str, template: Raw) -> Occupant | None:
    """Return what the template's pods will be to their nodes and neighbours; None where it makes no sense as one."""
    try:
        content = decode(template)
        spec = _filled_in(content["spec"])
        own = content.get("metadata") or {}
        texts = {key: own.get(key) for key in ("labels", "annotations")}
        meta = {"name": "", "uid": "", "namespace": namespace, **texts}
        pod = convert({"metadata": meta, "spec": spec}, core_v1.Pod)
        shape = shape_of(pod)
        if outsized(shape) or isinstance(shape.cards, BadCardRequest):  # a manager's webhook may mend it in the pods
            return None
        return Occupant(shape, Tags(namespace, pod.metadata.labels or {}))
    except (MsgspecError, BadQuantity, TypeError, AttributeError, KeyError, ValueError):
        return None  # nothing that depends on it is lost: the pods themselves say it when they come


def names_gang(namespace: str, template: Raw) -> bool:
    """Whether the template's pods will say themselves in which gang they are; numbers there need not be quoted."""
    try:
        content = decode(template)
        own, spec = content.get("metadata") or {}, content.get("spec") or {}
        texts = {
            key: {name: str(value) for name, value in (own.get(key) or {}).items()} for key in ("labels", "annotations")
        }
        meta = {"name": "", "uid": "", "namespace": namespace, **texts}
        said = {"schedulingGroup": spec.get("schedulingGroup")}
        claim = gang_of(convert({"metadata": meta, "spec": said}, core_v1.Pod))
    except (MsgspecError, AttributeError):
        return False
    return claim is not None and not claim.derived


def _filled_in(spec: dict[str, Any]) -> dict[str, Any]:
    return {
        **spec,
        "containers": [_with_requests(each) for each in spec.get("containers") or ()],
        "initContainers": [_with_requests(each) for each in spec.get("initContainers") or ()],
        "tolerations": [*(spec.get("tolerations") or ()), *_TOLERATED_FOR_A_WHILE],
    }


def _with_requests(container: dict[str, Any]) -> dict[str, Any]:
    """Return the container with its limits as requests where it has none; quantities may be written as numbers."""
    resources = container.get("resources") or {}
    asked = {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
    return {**container, "resources": {"requests": {name: str(amount) for name, amount in asked.items()}}}
