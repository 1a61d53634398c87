"""What a pod takes of its node: effective requests and host ports.

Containers run together, init containers one after the other beside the sidecars started before them, a pod-level
request replaces the sum, overhead comes on top, and a resize under way counts with the larger of what is wanted and
what is held.

Mirrors k8s.io/component-helpers/resource PodRequests with the options of kube-scheduler's NodeInfo, and GetHostPorts of
its util package. Not read: claims of node-allocatable resources (DRANodeAllocatableResources, alpha).
"""

from collections.abc import Mapping
from functools import lru_cache

from extender.model.pod import HostPort
from extender.model.resources import PODS
from extender.wire.cards.qualifiers import QUALIFIERS
from extender.wire.core_v1 import Container, ContainerStatus, Pod, PodStatus, Quantities, ResourceRequirements
from extender.wire.quantity import parse_quantity, whole_amount

Nanos = dict[str, int]
"""Resource name -> nano-units."""

Statuses = Mapping[str, ContainerStatus]
"""Container name -> what the kubelet reports of it."""

_ANY_IP = HostPort(0).ip
_POD_LEVEL = ("cpu", "memory")
_HUGE_PAGES = "hugepages-"
"""What a pod's own `resources` may say: these and every size of huge pages."""

_MARKS = "gang-extender.io/"
"""Not resources: they send a pod here (scheduler-config/shared.yaml), and no node has any."""


def effective_requests(pod: Pod) -> tuple[tuple[str, int], ...]:
    """Return the requests, in the units of `model.resources`, sorted by name, one of `pods` included.

    Raises BadQuantity.
    """
    total = requests_of_containers(pod)
    if pod.spec.resources is not None:
        total.update(_of_pod_level(pod))
    if pod.spec.overhead:
        _add(total, _parse(pod.spec.overhead))
    return _in_whole_units(tuple(total.items()))


@lru_cache(maxsize=4096)  # the jobs that make pods now; at most 50 MB, of pods that ask for all sorts of things
def _in_whole_units(total: tuple[tuple[str, int], ...]) -> tuple[tuple[str, int], ...]:
    asked = ((resource, nanos) for resource, nanos in total if nanos > 0 and _is_resource(resource))
    amounts = {resource: whole_amount(resource, nanos) for resource, nanos in asked}
    amounts[PODS] = 1
    return tuple(sorted(amounts.items()))


def _is_resource(name: str) -> bool:
    return name not in QUALIFIERS and not name.startswith(_MARKS)


def host_ports(pod: Pod) -> tuple[HostPort, ...]:
    """Return the node's ports that the containers and sidecars take."""
    containers = [container for container in pod.spec.init_containers or () if _is_sidecar(container)]
    containers.extend(pod.spec.containers or ())
    ports = [port for container in containers for port in container.ports or () if port.host_port > 0]
    return tuple(HostPort(port.host_port, port.protocol or "TCP", port.host_ip or _ANY_IP) for port in ports)


def _is_sidecar(container: Container) -> bool:
    return container.restart_policy == "Always"


def requests_of_containers(pod: Pod) -> Nanos:
    """Return what the containers take together, in nano-units, what is no resource of a node with it.

    Raises BadQuantity.
    """
    statuses = _statuses_by_name(pod.status)
    total: Nanos = {}
    for container in pod.spec.containers or ():
        _add(total, _held(pod, container, statuses))
    if pod.spec.init_containers:
        _raise_to(total, _at_start(pod, statuses, total))
    return total


def _at_start(pod: Pod, statuses: Statuses, running: Nanos) -> Nanos:
    """Return the most that is held while init containers run, and add to `running` the sidecars, which go on."""
    most: Nanos = {}
    sidecars: Nanos = {}
    for container in pod.spec.init_containers or ():
        if _is_sidecar(container):
            amounts = _held(pod, container, statuses)
            _add(running, amounts)
            _add(sidecars, amounts)
        else:
            amounts = _parse(_requests(container.resources))
            _add(amounts, sidecars)
            _raise_to(most, amounts)
    return most


def _of_pod_level(pod: Pod) -> Nanos:
    wanted = _requests(pod.spec.resources)
    amounts = _in_effect(pod, wanted, pod.status.resources, pod.status.allocated_resources)
    return {name: amounts.get(name, 0) for name in wanted if name in _POD_LEVEL or name.startswith(_HUGE_PAGES)}


def _statuses_by_name(status: PodStatus) -> Statuses:
    reported = (status.container_statuses or ()) + (status.init_container_statuses or ())
    return {container.name: container for container in reported}


def _held(pod: Pod, container: Container, statuses: Statuses) -> Nanos:
    wanted = _requests(container.resources)
    status = statuses.get(container.name)
    if status is None:
        return _parse(wanted)
    return _in_effect(pod, wanted, status.resources, status.allocated_resources)


def _in_effect(
    pod: Pod, wanted: Quantities, actual: ResourceRequirements | None, allocated: Quantities | None
) -> Nanos:
    """Return what counts while the kubelet may be resizing; without its report, `actual`, it is what is wanted."""
    if actual is None or wanted == actual.requests == allocated:
        return _parse(wanted)
    amounts = {} if _is_resize_infeasible(pod.status) else _parse(wanted)
    _raise_to(amounts, _parse(_requests(actual)))
    _raise_to(amounts, _parse(allocated or {}))
    return amounts


def _is_resize_infeasible(status: PodStatus) -> bool:
    for condition in status.conditions or ():
        if condition.type == "PodResizePending":
            return condition.reason == "Infeasible"
    return False


def _requests(resources: ResourceRequirements | None) -> Quantities:
    return (resources.requests if resources else None) or {}


def _parse(quantities: Quantities) -> Nanos:
    return {name: parse_quantity(text) for name, text in quantities.items()}


def _add(total: Nanos, amounts: Nanos) -> None:
    for name, nanos in amounts.items():
        total[name] = total.get(name, 0) + nanos


def _raise_to(least: Nanos, amounts: Nanos) -> None:
    for name, nanos in amounts.items():
        if nanos > least.get(name, nanos - 1):
            least[name] = nanos
