"""A stand-in for the kubelets of nodes with a device plugin: whom do they ask for devices, and for how many?

For each container that asks for the plugin's resource they ask for so many, and say neither the pod nor the container.
Pods are admitted one by one, in the order that the caller says; their containers start later.
"""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Protocol

from e2e.client import ApiClient, Object
from e2e.kubelet import running

Environment = Mapping[str, str]


class AllocationError(Exception):
    """The plugin has no devices for the container."""


class DevicePlugin(Protocol):
    """What a kubelet knows of a device plugin."""

    resource: str

    def allocate(self, node: str, count: int) -> Environment:
        """Return the environment of a container that gets so many devices of the node; raises AllocationError."""


class PluginKubelet:
    """The kubelets of all nodes where this plugin runs. `environments` are what containers got, by pod and name."""

    def __init__(self, api: ApiClient, plugin: DevicePlugin) -> None:
        self._api = api
        self._plugin = plugin
        self.environments: dict[tuple[str, str], Environment] = {}

    def admit_all(self, namespace: str) -> list[str]:
        """Admit the pods of a namespace that are bound and wait, the first bound first; return their names."""
        pods = self._api.get(f"/api/v1/namespaces/{namespace}/pods")["items"]
        waiting = [pod for pod in pods if pod["spec"].get("nodeName") and pod["status"]["phase"] == "Pending"]
        return self.admit(sorted(waiting, key=_bound_at))

    def admit(self, pods: Iterable[Object]) -> list[str]:
        """Admit these pods in this order, and start their containers once all of them are; return their names."""
        admitted = [pod for pod in pods if self._admit(pod)]
        for pod in admitted:
            now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
            self._api.patch(_status_path(pod), running(pod, now))
        return [pod["metadata"]["name"] for pod in admitted]

    def _admit(self, pod: Object) -> bool:
        spec, name = pod["spec"], pod["metadata"]["name"]
        try:
            for container in (*spec.get("initContainers", ()), *spec["containers"]):
                count = int(container.get("resources", {}).get("limits", {}).get(self._plugin.resource, "0"))
                if count:
                    self.environments[name, container["name"]] = self._plugin.allocate(spec["nodeName"], count)
        except AllocationError as error:
            status = {"phase": "Failed", "reason": "UnexpectedAdmissionError", "message": str(error)}
            self._api.patch(_status_path(pod), {"status": status})
            return False
        return True


def _status_path(pod: Object) -> str:
    return f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}/status"


def _bound_at(pod: Object) -> str:
    """Return when it was bound, to the second, and then its name."""
    conditions = pod["status"].get("conditions", ())
    at = next((str(each["lastTransitionTime"]) for each in conditions if each["type"] == "PodScheduled"), "")
    return f"{at} {pod['metadata']['name']}"
