"""A gang whose members come one by one: it is found whole whoever comes first, and says so while it cannot be whole."""

import re
import time

import pytest

from e2e.cluster import Cluster, Namespace, Object, wait_for
from e2e.nodes import make_node
from tests.e2e.death_watch import watch_deaths
from tests.e2e.pods import DEADLINE_S, members, pod
from tests.e2e.steady import stays

pytestmark = pytest.mark.usefixtures("priority_classes")

SAID_S = 2.0
"""By then the owner of a gang is told why it waits."""

INCOMPLETE = re.compile(r"waits for its members|not exist yet")
TOO_LARGE = re.compile(r"larger than the cluster", re.IGNORECASE)

ROLE = "training.kubeflow.org/replica-type"


@pytest.mark.parametrize("first", ["ps", "worker"])
def test_the_only_packing_is_found_whether_the_parameter_server_comes_first_or_last(
    cluster: Cluster, namespace: Namespace, first: str
) -> None:
    # The parameter server would fit beside two workers, but then the other two fit nowhere.
    cluster.add_nodes([make_node("four", gpus=4, cpu="16"), make_node("one", gpus=1, cpu="8")])
    parameter_server = member("ps", "8", gpus=0)
    workers = [member(f"worker-{index}", "4", gpus=1) for index in range(4)]
    order = [parameter_server, *workers] if first == "ps" else [*workers, parameter_server]
    for each in order:
        namespace.apply(each)
        time.sleep(0.3)  # so that each is tried before the next one exists
    wait_for(lambda: len(namespace.running()) == 5, DEADLINE_S, "all five run")
    assert {each["spec"]["nodeName"] for each in namespace.pods() if each["metadata"]["name"] != "ps"} == {"four"}


def test_an_incomplete_gang_says_so(cluster: Cluster, namespace: Namespace) -> None:
    cluster.add_nodes([make_node(name, gpus=1) for name in "abcd"])
    namespace.apply(*list(members("g", 4))[:3])
    wait_for(lambda: said(namespace, INCOMPLETE), SAID_S, "a pod's events say that members are missing")


def test_an_incomplete_gang_says_so_though_the_cluster_is_full(cluster: Cluster, namespace: Namespace) -> None:
    # kube-scheduler's own plugins refuse every node then, and no extender is asked.
    fill(cluster, namespace)
    namespace.apply(*list(members("g", 4))[:3])
    wait_for(lambda: said(namespace, INCOMPLETE), SAID_S, "a pod's events say that members are missing")


def test_a_gang_larger_than_the_cluster_says_so_once_and_kills_nobody(cluster: Cluster, namespace: Namespace) -> None:
    fill(cluster, namespace)
    with watch_deaths(namespace) as deaths:
        namespace.apply(*members("g", 5, priority="high"))
        wait_for(lambda: said(namespace, TOO_LARGE), DEADLINE_S, "a pod's events say that no such cluster is here")
        assert stays(lambda: times_said(namespace, TOO_LARGE) == 1, for_s=10.0)
        assert not deaths.victims


def fill(cluster: Cluster, namespace: Namespace) -> None:
    cluster.add_nodes([make_node(name, gpus=1) for name in "abcd"])
    namespace.apply(*(pod(f"on-{name}", node=name, priority="low") for name in "abcd"))
    wait_for(lambda: len(namespace.running()) == 4, DEADLINE_S, "the cluster is full")


def member(name: str, cpu: str, gpus: int) -> Object:
    one = next(members("g", 5, gpus=gpus))
    limits = one["spec"]["containers"][0]["resources"]["limits"] | {"cpu": cpu}
    container = one["spec"]["containers"][0] | {"resources": {"limits": limits}}
    metadata = one["metadata"] | {"name": name, "labels": {ROLE: name.partition("-")[0]}}
    return {**one, "metadata": metadata, "spec": one["spec"] | {"containers": [container]}}


def said(namespace: Namespace, text: re.Pattern[str]) -> list[Object]:
    """Return the Events on pods that say so."""
    events = namespace.cluster.api.get(f"{namespace.path}/events?fieldSelector=involvedObject.kind%3DPod")["items"]
    return [event for event in events if text.search(event["message"])]


def times_said(namespace: Namespace, text: re.Pattern[str]) -> int:
    """Return how often it was said: an Event that is repeated is counted in itself."""
    return sum((event.get("series") or {}).get("count", 1) for event in said(namespace, text))
