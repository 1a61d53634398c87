"""Stand-ins for who tells a container of its cards without any device plugin.

`visible_devices` is a kubelet's part: it works out what a container's environment takes from the pod's annotations.
`koordlet_devices` is that of Koordinator's agent, which reads what its scheduler has written.
"""

import json
import re

from e2e.client import Object

_FIELD = re.compile(r"metadata\.annotations\['([^']+)'\]")


def visible_devices(pod: Object, container: str) -> str | None:
    """Return what NVIDIA_VISIBLE_DEVICES is in the container, None where it has no such variable."""
    (found,) = (each for each in pod["spec"]["containers"] if each["name"] == container)
    for variable in found.get("env", ()):
        if variable["name"] == "NVIDIA_VISIBLE_DEVICES":
            return _value(pod, variable)
    return None


def koordlet_devices(pod: Object) -> str:
    """Return what Koordinator's agent sets NVIDIA_VISIBLE_DEVICES to: minor numbers."""
    allocated = json.loads(pod["metadata"]["annotations"]["scheduling.koordinator.sh/device-allocated"])
    return ",".join(str(device["minor"]) for device in allocated["gpu"])


def _value(pod: Object, variable: Object) -> str:
    if "value" in variable:
        return str(variable["value"])
    match = _FIELD.fullmatch(variable["valueFrom"]["fieldRef"]["fieldPath"])
    assert match is not None
    return str(pod["metadata"].get("annotations", {}).get(match[1], ""))
