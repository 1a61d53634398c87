"""Hold mode: pods are created with our scheduling gate, wait without a single filter call, and all lose it in time."""

import os
import re
import signal
import subprocess
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator

import pytest

from e2e.cluster import EXTENDER, Cluster, Namespace, Object, start_cluster, wait_for
from extender.model.pod import HOLD_GATE
from tests.e2e.gang_watch import GANG_NAME, MIN_AVAILABLE, SETTLING_S, watch_gangs

pytestmark = pytest.mark.timeout(120)

HOST = "kubernetes.io/hostname"
OTHER_GATE = "example.com/quota"
DEADLINE_S = 30.0


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """Return a control plane of our own, since the policy would hold the other tests' pods, too."""
    with start_cluster(mode="hold") as cluster:
        yield cluster


def pod(name: str, gpus: int = 1, **spec: object) -> Object:
    requests = {"cpu": "10m"} | ({"nvidia.com/gpu": str(gpus)} if gpus else {})
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {
            "schedulerName": "gang-scheduler",
            "terminationGracePeriodSeconds": 0,
            "containers": [{"name": "main", "image": "train", "resources": {"requests": requests, "limits": requests}}],
            **spec,
        },
    }


def member(name: str, size: int, gpus: int = 1, **spec: object) -> Object:
    made = pod(name, gpus, **spec)
    made["metadata"] |= {"labels": {"job": "j"}, "annotations": {GANG_NAME: "j", MIN_AVAILABLE: str(size)}}
    return made


def gates(namespace: Namespace) -> dict[str, list[str]]:
    """Return the names of each pod's gates."""
    return {
        each["metadata"]["name"]: [gate["name"] for gate in each["spec"].get("schedulingGates", ())]
        for each in namespace.pods()
    }


def take_gates_off(namespace: Namespace, name: str) -> None:
    """Do as a user who edits the pod."""
    namespace.cluster.api.patch(f"{namespace.path}/pods/{name}", {"spec": {"schedulingGates": None}})


def filter_calls(cluster: Cluster) -> float:
    """Return how many filter calls the extender has answered."""
    return counted(cluster, "verb_duration_seconds_count", 'verb="filter"')


def counted(cluster: Cluster, metric: str, label: str) -> float:
    """Return the sum of the extender's own figures of this metric that have the label."""
    with urllib.request.urlopen(f"{cluster.probe_url}/metrics", timeout=5) as answer:  # noqa: S310 - our own process
        text = answer.read().decode()
    return sum(map(float, re.findall(rf"^gang_extender_{metric}{{.*{label}.*}} (\S+)$", text, re.MULTILINE)))


def filter_calls_while_busy(namespace: Namespace, busy: str) -> float:
    """Return how many filter calls it takes that a running pod's status is updated 30 times in 3 seconds."""
    before = filter_calls(namespace.cluster)
    for index in range(30):
        namespace.cluster.api.patch(f"{namespace.path}/pods/{busy}/status", {"status": {"message": f"step {index}"}})
        time.sleep(0.1)
    return filter_calls(namespace.cluster) - before


def wait_running(namespace: Namespace, count: int, why: str) -> None:
    wait_for(lambda: len(namespace.running()) == count, DEADLINE_S, why)
    assert not any(gates(namespace).values())


def test_a_gang_that_waits_costs_no_filter_call_and_runs_whole_when_a_node_joins(
    cluster: Cluster, namespace: Namespace
) -> None:
    cluster.add_node("gpu-0", gpus=3)
    namespace.apply(pod("busy", gpus=0))
    wait_running(namespace, 1, "the pod without a gang runs")
    for index in range(4):
        namespace.apply(member(f"w-{index}", 4))

    assert filter_calls_while_busy(namespace, "busy") == 0
    assert "1 Insufficient nvidia.com/gpu" in namespace.describe_pod("w-3"), "they are told why they wait"
    assert gates(namespace) == {"busy": []} | {f"w-{index}": [HOLD_GATE] for index in range(4)}

    # Without its gate one of them is turned away, again and again: that is the load that is saved.
    take_gates_off(namespace, "w-0")
    assert filter_calls_while_busy(namespace, "busy") > 10

    with watch_gangs(namespace) as watch:
        cluster.add_node("gpu-1", gpus=1)
        watch.wait_bound("j", 4, DEADLINE_S)
    assert watch.longest_in_part_s() < SETTLING_S
    wait_running(namespace, 5, "all run")


def test_further_members_of_a_gang_that_runs_go_one_by_one(cluster: Cluster, namespace: Namespace) -> None:
    cluster.add_node("gpu-0", gpus=3)
    for index in range(2):
        namespace.apply(member(f"w-{index}", 2))
    wait_running(namespace, 2, "the gang runs")

    for index in range(2, 4):
        namespace.apply(member(f"w-{index}", 2))

    wait_running(namespace, 3, "one more finds room, and none is held for ever")


def test_an_extender_killed_between_two_releases_goes_on_when_it_is_back(
    cluster: Cluster, namespace: Namespace
) -> None:
    size = 200  # a busy machine looks at the gates some ten times a second, and sixty are gone between two looks
    for index in range(size):
        namespace.apply(member(f"w-{index}", size, gpus=0))
    for name in ("cpu-0", "cpu-1"):
        cluster.add_node(name, cpu="32")

    wait_for(lambda: is_partly_released(namespace), DEADLINE_S, "the first gates are off")
    os.kill(cluster.processes[EXTENDER].pid, signal.SIGKILL)
    held = Counter(map(bool, gates(namespace).values()))
    cluster.restart_extender()

    assert held[True], "it was killed too late: no gate was left"
    assert held[False], "it was killed too early: no gate was off"
    wait_running(namespace, size, "all run")


def is_partly_released(namespace: Namespace) -> bool:
    return not all(gates(namespace).values())


def test_gates_of_others_stay_and_are_waited_for(cluster: Cluster, namespace: Namespace) -> None:
    cluster.add_node("gpu-0", gpus=3)
    quota: list[Object] = [{"name": OTHER_GATE}]
    namespace.apply(pod("alone", schedulingGates=quota))
    namespace.apply(member("w-0", 2, schedulingGates=quota), member("w-1", 2))

    wait_for(lambda: gates(namespace)["alone"] == [OTHER_GATE], DEADLINE_S, "only our gate is taken off")
    assert set(gates(namespace)["w-0"]) == {OTHER_GATE, HOLD_GATE}
    assert gates(namespace)["w-1"] == [HOLD_GATE]

    for name, left in (("alone", []), ("w-0", [{"name": HOLD_GATE}])):
        cluster.api.patch(f"{namespace.path}/pods/{name}", {"spec": {"schedulingGates": left}})
    wait_running(namespace, 3, "all run")


def test_pods_that_were_created_while_the_extender_was_away_are_let_go(cluster: Cluster, namespace: Namespace) -> None:
    cluster.add_node("gpu-0", gpus=3)
    cluster.processes[EXTENDER].stop()
    namespace.apply(pod("alone"), member("w-0", 2), member("w-1", 2))
    before = gates(namespace)

    cluster.restart_extender()

    assert set(map(tuple, before.values())) == {(HOLD_GATE,)}
    wait_running(namespace, 3, "all run")


def test_a_gang_of_higher_priority_preempts_and_runs_whole(cluster: Cluster, namespace: Namespace) -> None:
    metadata = {"name": f"{namespace.name}-high"}
    cluster.apply({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": metadata, "value": 1000})
    cluster.add_node("gpu-0", gpus=1)
    cluster.add_node("gpu-1", gpus=1)
    namespace.apply(pod("low-0"), pod("low-1"))
    wait_running(namespace, 2, "those of low priority run")

    for index in range(2):
        namespace.apply(member(f"w-{index}", 2, priorityClassName=metadata["name"]))

    wait_for(lambda: namespace.running() == ["w-0", "w-1"], DEADLINE_S, "the gang runs instead of them")


def test_a_pod_that_has_a_node_is_left_alone(cluster: Cluster, namespace: Namespace) -> None:
    """The API server would refuse it with a gate."""
    cluster.add_node("gpu-0", gpus=1)
    namespace.apply(pod("fixed", nodeName="gpu-0"), pod("foreign", schedulerName="default-scheduler", gpus=0))
    wait_running(namespace, 2, "both run")


def test_an_extender_that_may_not_change_pods_says_so_once_and_tries_seldom(
    cluster: Cluster, namespace: Namespace
) -> None:
    cluster.add_node("gpu-0", gpus=3)
    binding = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
    granted = cluster.api.get(f"{binding}/gang-extender-hold")
    cluster.api.delete(f"{binding}/gang-extender-hold")
    time.sleep(1)  # until the API server's authorizer has noticed
    before = cluster.log_tail(EXTENDER, 1000).count("cannot patch resource")

    namespace.apply(*(pod(f"w-{index}") for index in range(3)))
    wait_for(
        lambda: counted(cluster, "releases_total", 'result="refused"') >= 3, DEADLINE_S, "the releases are refused"
    )
    time.sleep(3)

    assert counted(cluster, "releases_total", 'result="refused"') == 3
    assert cluster.log_tail(EXTENDER, 1000).count("cannot patch resource") == before + 1
    granted["metadata"] = {"name": granted["metadata"]["name"]}
    cluster.api.create(binding, granted)
    wait_running(namespace, 3, "they run once it may")


def test_a_namesake_created_since_keeps_its_gate(cluster: Cluster, namespace: Namespace) -> None:
    """The API server refuses the patch of another UID, as the stand-in for it in the other tests does."""
    namespace.apply(member("w-0", 2))
    patch = '{"metadata": {"uid": "another"}, "spec": {"schedulingGates": [{"$patch": "delete", "name": "%s"}]}}'
    with pytest.raises(subprocess.CalledProcessError) as refusal:
        cluster.kubectl("patch", "pod", "w-0", "-n", namespace.name, "--type=strategic", "-p", patch % HOLD_GATE)
    assert "metadata.uid" in refusal.value.stderr
    assert gates(namespace) == {"w-0": [HOLD_GATE]}


@pytest.mark.parametrize("first", ["ps", "worker"])
def test_workers_that_must_be_beside_their_parameter_server_run(
    cluster: Cluster, namespace: Namespace, first: str
) -> None:
    """In filter mode they do not: kube-scheduler asks for a worker once, before it knows of the server."""
    for index in range(3):
        cluster.add_node(f"gpu-{index}", gpus=4 if index == 1 else 2)
    term = {"topologyKey": HOST, "labelSelector": {"matchLabels": {"role": "ps"}}}
    beside = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    members = [in_role("ps", member("ps-0", 4))]
    members += [in_role("worker", member(f"worker-{index}", 4, affinity=beside)) for index in range(3)]
    namespace.apply(*sorted(members, key=lambda each: each["metadata"]["labels"]["role"] != first))

    wait_running(namespace, 4, "all run")
    assert {each["spec"]["nodeName"] for each in namespace.pods()} == {"gpu-1"}


def in_role(role: str, made: Object) -> Object:
    made["metadata"]["labels"] |= {"role": role, "training.kubeflow.org/replica-type": role}
    return made
