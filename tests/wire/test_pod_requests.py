"""What a pod takes of its node, from all the places where Kubernetes lets one write it."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import convert

from extender.model.pod import HostPort
from extender.wire import core_v1
from extender.wire.pod_requests import effective_requests, host_ports
from extender.wire.quantity import BadQuantity
from tests.builders import pod_json


def requests_of(status: dict[str, Any] | None = None, **spec: Any) -> dict[str, int]:
    pod = convert(pod_json(spec=spec, status=status), core_v1.Pod)
    amounts = effective_requests(pod)
    assert list(amounts) == sorted(amounts)
    return {resource: amount for resource, amount in amounts if resource != "pods"}


def container(name: str = "main", *, sidecar: bool = False, **requests: str) -> dict[str, Any]:
    written = {key.replace("_", "-"): amount for key, amount in requests.items()}
    return {"name": name, "resources": {"requests": written}} | ({"restartPolicy": "Always"} if sidecar else {})


def test_containers_run_together() -> None:
    assert requests_of(containers=[container(cpu="1", memory="1Gi"), container(cpu="500m")]) == {
        "cpu": 1500,
        "memory": 2**30,
    }


def test_the_largest_init_container_counts_if_it_is_more_than_the_containers() -> None:
    init = [container(cpu="3"), container(cpu="1", memory="2Gi")]
    assert requests_of(containers=[container(cpu="1", memory="1Gi")], initContainers=init) == {
        "cpu": 3000,
        "memory": 2**31,
    }


def test_a_sidecar_runs_beside_the_containers_and_the_later_init_containers() -> None:
    init = [container(cpu="4"), container(sidecar=True, cpu="2"), container(cpu="3")]
    assert requests_of(containers=[container(cpu="1")], initContainers=init) == {"cpu": 5000}


@given(
    st.lists(st.integers(0, 9), min_size=1, max_size=3),
    st.lists(st.tuples(st.booleans(), st.integers(0, 9)), max_size=5),
)
def test_requests_are_the_most_that_is_held_at_any_moment(mains: list[int], inits: list[tuple[bool, int]]) -> None:
    held, most = 0, 0
    for is_sidecar, cpu in inits:
        held += cpu
        most = max(most, held)
        held -= 0 if is_sidecar else cpu
    most = max(most, held + sum(mains))

    requests = requests_of(
        containers=[container(cpu=str(cpu)) for cpu in mains],
        initContainers=[container(sidecar=is_sidecar, cpu=str(cpu)) for is_sidecar, cpu in inits],
    )

    assert requests.get("cpu", 0) == most * 1000


def test_overhead_comes_on_top() -> None:
    assert requests_of(containers=[container(cpu="1")], overhead={"cpu": "250m", "memory": "64Mi"}) == {
        "cpu": 1250,
        "memory": 64 * 2**20,
    }


def test_pod_level_requests_replace_the_sum_of_cpu_memory_and_huge_pages_only() -> None:
    level = {"requests": {"cpu": "1", "memory": "1Gi", "hugepages-2Mi": "4Mi", "nvidia.com/gpu": "9"}}
    main = container(cpu="2", memory="2Gi") | {"resources": {"requests": {"cpu": "2", "nvidia.com/gpu": "1"}}}
    assert requests_of(containers=[main], resources=level, overhead={"cpu": "100m"}) == {
        "cpu": 1100,
        "memory": 2**30,
        "hugepages-2Mi": 4 * 2**20,
        "nvidia.com/gpu": 1,
    }


def test_limits_are_not_requests() -> None:
    main = {"name": "main", "resources": {"limits": {"cpu": "8"}, "requests": {"cpu": "1"}}}
    assert requests_of(containers=[main], resources={"limits": {"cpu": "8"}}) == {"cpu": 1000}


def test_nothing_is_asked_for_with_a_zero() -> None:
    assert requests_of(containers=[container(cpu="0", memory="1")]) == {"memory": 1}


def test_a_mark_that_sends_a_pod_to_the_extender_takes_nothing() -> None:
    main = {"name": "main", "resources": {"requests": {"gang-extender.io/member": "1", "cpu": "1"}}}
    assert requests_of(containers=[main]) == {"cpu": 1000}


def test_every_pod_takes_one_of_pods() -> None:
    pod = convert(pod_json(spec={"containers": None}), core_v1.Pod)
    assert effective_requests(pod) == (("pods", 1),)


RESIZING = {
    "containerStatuses": [
        {"name": "main", "resources": {"requests": {"cpu": "3"}}, "allocatedResources": {"cpu": "2"}},
        {"name": "gone", "resources": {"requests": {"cpu": "99"}}},
    ]
}


@pytest.mark.parametrize(
    ("wanted", "conditions", "held"),
    [
        ("1", [], 3000),
        ("4", [], 4000),
        ("4", [{"type": "PodResizePending", "reason": "Deferred"}], 4000),
        ("4", [{"type": "PodResizePending", "reason": "Infeasible"}], 3000),
    ],
    ids=["shrinking", "growing", "growth deferred", "growth infeasible"],
)
def test_a_pod_being_resized_holds_the_larger_amount(wanted: str, conditions: list[dict[str, str]], held: int) -> None:
    status = RESIZING | {"conditions": conditions}
    assert requests_of(status, containers=[container(cpu=wanted)]) == {"cpu": held}


def test_a_resize_that_the_kubelet_has_admitted_counts_before_it_is_done() -> None:
    main = {"name": "main", "resources": {"requests": {"cpu": "1"}}, "allocatedResources": {"cpu": "2"}}
    assert requests_of({"containerStatuses": [main]}, containers=[container(cpu="1")]) == {"cpu": 2000}


def test_a_sidecar_being_resized_holds_the_larger_amount() -> None:
    status = {"initContainerStatuses": [{"name": "side", "resources": {"requests": {"cpu": "3"}}}]}
    init = [container("side", sidecar=True, cpu="1")]
    assert requests_of(status, containers=[container(cpu="1")], initContainers=init) == {"cpu": 4000}


def test_an_init_container_that_is_over_is_not_asked_for_its_status() -> None:
    status = {"initContainerStatuses": [{"name": "init", "resources": {"requests": {"cpu": "3"}}}]}
    init = [container("init", cpu="2")]
    assert requests_of(status, containers=[container(cpu="1")], initContainers=init) == {"cpu": 2000}


def test_pod_level_requests_being_resized_hold_the_larger_amount() -> None:
    status = {"resources": {"requests": {"cpu": "3"}}, "allocatedResources": {"cpu": "2", "memory": "1Gi"}}
    assert requests_of(status, containers=[], resources={"requests": {"cpu": "1"}}) == {"cpu": 3000}


def test_an_amount_that_is_none_is_reported() -> None:
    with pytest.raises(BadQuantity, match="'many'"):
        requests_of(containers=[container(cpu="many")])


def test_host_ports_are_those_of_containers_and_sidecars() -> None:
    ports = [{"containerPort": 80}, {"containerPort": 81, "hostPort": 81}]
    udp = [{"containerPort": 53, "hostPort": 53, "protocol": "UDP", "hostIP": "10.0.0.1"}]
    spec = {
        "containers": [{"name": "main", "ports": ports}, {"name": "null", "ports": None}],
        "initContainers": [
            {"name": "init", "ports": [{"containerPort": 9, "hostPort": 9}]},
            {"name": "side", "ports": udp, "restartPolicy": "Always"},
        ],
    }
    pod = convert(pod_json(spec=spec), core_v1.Pod)
    assert set(host_ports(pod)) == {HostPort(81), HostPort(53, "UDP", "10.0.0.1")}
