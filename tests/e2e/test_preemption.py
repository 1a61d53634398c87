"""Whom does a gang of high priority kill? Nobody for nothing: exactly whose room it needs, and only to run whole."""

import os
import time
from collections.abc import Iterable

import pytest

from e2e.cluster import Cluster, Namespace, Object, wait_for
from e2e.nodes import make_node
from tests.e2e.death_watch import watch_deaths
from tests.e2e.pods import DEADLINE_S, at, bound, members, pod
from tests.e2e.steady import stays

pytestmark = pytest.mark.usefixtures("priority_classes")

QUIET_S = float(os.environ.get("QUIET_SECONDS", "10"))
"""For so long nobody may die. kube-scheduler tries a rejected pod again after 1, 2, 4 and 8 s, so that ten seconds see
three tries; what only a longer watch could find is looked for with QUIET_SECONDS=60."""

HEARD_S = 1.0
"""By then a change of a node has long been heard of: milliseconds are usual."""


def test_a_gang_that_lacks_a_member_kills_nobody(cluster: Cluster, namespace: Namespace) -> None:
    full_of_singles(cluster, namespace, "abc")
    with watch_deaths(namespace) as deaths:
        namespace.apply(*list(members("g", 3, priority="high"))[:2])
        assert stays(lambda: not deaths.victims, QUIET_S)


def test_the_first_member_of_a_gang_does_not_kill_one_pod_after_another(cluster: Cluster, namespace: Namespace) -> None:
    # kube-scheduler preempts without having asked an extender's filter: for a pod that filter then rejects, it preempts
    # on the next node, and the next.
    full_of_singles(cluster, namespace, "abc")
    with watch_deaths(namespace) as deaths:
        namespace.apply(next(members("g", 3, priority="high")))
        assert stays(lambda: not deaths.victims, QUIET_S)


def test_a_gang_that_would_not_fit_without_all_the_others_either_kills_nobody(
    cluster: Cluster, namespace: Namespace
) -> None:
    full_of_singles(cluster, namespace, "abc")
    with watch_deaths(namespace) as deaths:
        namespace.apply(*members("g", 4, priority="high"))
        assert stays(lambda: not deaths.victims, QUIET_S)


def test_the_fewest_die_and_those_of_the_lowest_priority(cluster: Cluster, namespace: Namespace) -> None:
    add_nodes(cluster, "abcd", gpus=2)
    run(namespace, pod("half-of-a", node="a", priority="low"))
    run(namespace, pod("all-of-b", gpus=2, node="b", priority="low"))
    run(namespace, *(pod(f"{half}-half-of-c", node="c", priority="low") for half in ("left", "right")))
    run(namespace, pod("all-of-d", gpus=2, node="d", priority="middle"))
    gang_runs_and_kills(namespace, {"half-of-a", "all-of-b"}, members("g", 2, gpus=2, priority="high"))


def test_pods_that_a_disruption_budget_guards_are_spared_where_others_do(
    cluster: Cluster, namespace: Namespace
) -> None:
    add_nodes(cluster, "abcd")
    guarded = {"app": "guarded"}
    run(namespace, *(pod(f"on-{node}", node=node, priority="low", labels=guarded) for node in "ab"))
    run(namespace, *(pod(f"on-{node}", node=node, priority="low") for node in "cd"))
    guard(namespace, guarded, pods=2)
    gang_runs_and_kills(namespace, {"on-c", "on-d"}, members("g", 2, priority="high"))


def test_a_running_gang_is_spared_where_single_pods_do(cluster: Cluster, namespace: Namespace) -> None:
    add_nodes(cluster, "abcd")
    run(namespace, *(pod(f"on-{node}", node=node, priority="low") for node in "cd"))
    later()
    run_gang(namespace, "r", "ab")
    gang_runs_and_kills(namespace, {"on-c", "on-d"}, members("g", 2, priority="high"))


def test_one_gang_dies_rather_than_a_part_of_each_of_two(cluster: Cluster, namespace: Namespace) -> None:
    add_nodes(cluster, "abcd")
    for gang, nodes in (("left", "ac"), ("right", "bd")):
        run(
            namespace, *(at(member, node) for member, node in zip(members(gang, 2, priority="low"), nodes, strict=True))
        )
    with watch_deaths(namespace) as deaths:
        namespace.apply(*members("g", 2, priority="high"))
        wait_for(lambda: len(running(namespace, "g-")) == 2, DEADLINE_S, "the gang runs whole")
        assert deaths.victims in ({"left-0", "left-1"}, {"right-0", "right-1"})


def test_a_single_pod_kills_one_pod_though_a_gang_waits_for_the_same_room(
    cluster: Cluster, namespace: Namespace
) -> None:
    full_of_singles(cluster, namespace, "abc")
    namespace.apply(*members("waiting", 2, priority="low"))
    with watch_deaths(namespace) as deaths:
        namespace.apply(pod("urgent", priority="high"))
        wait_for(lambda: running(namespace, "urgent"), DEADLINE_S, "the single pod runs")
        assert stays(lambda: len(deaths.victims) == 1, QUIET_S)
    assert not bound(namespace, "waiting-")


def test_a_single_pod_kills_where_no_running_gang_breaks(cluster: Cluster, namespace: Namespace) -> None:
    add_nodes(cluster, "abc")
    run(namespace, pod("on-c", node="c", priority="low"))
    later()
    run_gang(namespace, "r", "ab")
    with watch_deaths(namespace) as deaths:
        namespace.apply(pod("urgent", priority="high"))
        wait_for(lambda: running(namespace, "urgent"), DEADLINE_S, "the single pod runs")
        assert deaths.victims == {"on-c"}


def test_nobody_else_dies_once_a_planned_node_is_cordoned_and_the_gang_cannot_be_whole(
    cluster: Cluster, namespace: Namespace
) -> None:
    add_nodes(cluster, "abc")
    # A victim that takes its time: without its room the gang cannot go on.
    run(namespace, *(slow_to_die(pod(f"on-{node}", node=node, priority="low")) for node in "abc"))
    try:
        with watch_deaths(namespace) as deaths:
            namespace.apply(*members("g", 3, priority="high"))
            deaths.wait_first(DEADLINE_S)
            spared = next((node for node in "cba" if f"on-{node}" not in deaths.victims), "c")
            cluster.api.patch(f"/api/v1/nodes/{spared}", {"spec": {"unschedulable": True}})
            heard_s = time.monotonic() + HEARD_S
            time.sleep(HEARD_S)
            for name in deaths.victims:
                let_die(namespace, name)
            assert stays(lambda: not deaths.later_than(heard_s), QUIET_S)
        assert not bound(namespace, "g-")
    finally:
        for node in "abc":
            let_die(namespace, f"on-{node}")


def gang_runs_and_kills(namespace: Namespace, expected: set[str], gang: Iterable[Object]) -> None:
    with watch_deaths(namespace) as deaths:
        pods = list(gang)
        namespace.apply(*pods)
        wait_for(lambda: len(running(namespace, "g-")) == len(pods), DEADLINE_S, "the gang runs whole")
        assert deaths.victims == expected


def full_of_singles(cluster: Cluster, namespace: Namespace, names: str) -> None:
    add_nodes(cluster, names)
    run(namespace, *(pod(f"on-{name}", node=name, priority="low") for name in names))


def add_nodes(cluster: Cluster, names: str, gpus: int = 1) -> None:
    cluster.add_nodes([make_node(name, gpus) for name in names])


def run(namespace: Namespace, *pods: Object) -> None:
    names = {each["metadata"]["name"] for each in pods}
    namespace.apply(*pods)
    wait_for(lambda: names <= set(namespace.running()), DEADLINE_S, f"{sorted(names)} run")


def run_gang(namespace: Namespace, gang: str, nodes: str) -> None:
    pods = members(gang, len(nodes), priority="low")
    run(namespace, *(at(member, node) for member, node in zip(pods, nodes, strict=True)))


def running(namespace: Namespace, prefix: str) -> list[str]:
    return [name for name in namespace.running() if name.startswith(prefix)]


def later() -> None:
    """Pass a second, the unit of a pod's start: kube-scheduler rather kills who started last."""
    time.sleep(1.1)


def guard(namespace: Namespace, labels: Object, pods: int) -> None:
    """Make a PodDisruptionBudget that allows no disruption, and wait until its controller has said so."""
    budget: Object = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "guard"},
        "spec": {"minAvailable": pods, "selector": {"matchLabels": labels}},
    }
    namespace.apply(budget)
    path = namespace.cluster.api.path_of(budget, namespace.name)

    def is_counted() -> bool:
        status = namespace.cluster.api.get(path).get("status", {})
        return bool(status.get("currentHealthy") == pods and status.get("disruptionsAllowed") == 0)

    wait_for(is_counted, DEADLINE_S, "the disruption controller counts the guarded pods")


def slow_to_die(victim: Object) -> Object:
    return {**victim, "metadata": {**victim["metadata"], "finalizers": ["example.com/slow"]}}


def let_die(namespace: Namespace, name: str) -> None:
    if namespace.pod(name) is not None:
        namespace.cluster.api.patch(f"{namespace.path}/pods/{name}", {"metadata": {"finalizers": None}})
