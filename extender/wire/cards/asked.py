"""Which of these resources do a pod's containers ask for?

Amounts are whole numbers, which the API server demands of every resource that is not Kubernetes' own. What is 0 is not
asked for.
"""

from collections.abc import Iterator, Set

from extender.wire import core_v1
from extender.wire.cards.amounts import unlike
from extender.wire.pod_requests import requests_of_containers
from extender.wire.quantity import parse_quantity

_NANOS = 10**9

Amounts = dict[str, int]


def containers_of(pod: core_v1.Pod) -> tuple[core_v1.Container, ...]:
    """Return init containers and containers, in the order of CardNeed.container."""
    return (*(pod.spec.init_containers or ()), *(pod.spec.containers or ()))


def asked_by_container(pod: core_v1.Pod, names: Set[str]) -> list[tuple[int, Amounts]]:
    """Return the place of each container that asks for some, and how much; raises BadCards."""
    return [
        (place, {name: _whole(name, parse_quantity(text)) for name, text in asked.items()})
        for place, asked in _asking(pod, names)
    ]


def asked_by_pod(pod: core_v1.Pod, names: Set[str]) -> tuple[int, Amounts]:
    """Return what the containers ask for together, and the place of the first that does; raises BadCards."""
    place = next((place for place, _ in _asking(pod, names)), 0)
    total = requests_of_containers(pod)
    return place, {name: _whole(name, nanos) for name, nanos in total.items() if nanos and name in names}


def names_asked(pod: core_v1.Pod, names: Set[str]) -> set[str]:
    """Return those of the names that any container asks for."""
    return {name for _, asked in _asking(pod, names) for name in asked}


def _asking(pod: core_v1.Pod, names: Set[str]) -> Iterator[tuple[int, dict[str, str]]]:
    for place, container in enumerate(containers_of(pod)):
        requests = (container.resources.requests if container.resources else None) or {}
        asked = {name: text for name, text in requests.items() if name in names and parse_quantity(text)}
        if asked:
            yield place, asked


def _whole(name: str, nanos: int) -> int:
    if nanos % _NANOS:
        raise unlike(name, f"{nanos}n", "a whole number")
    return nanos // _NANOS
