"""No right is spare: each one of manifests/ is taken away, the others left, and what breaks is named.

The extender of the scenarios runs with these roles and nothing else. A right more in manifests/ fails here until it is
shown what for.
"""

import json
import re
import urllib.error
import urllib.request
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from e2e import scenarios
from e2e.cluster import EXTENDER, GANG_SCHEDULER, Cluster, Namespace, Object, start_cluster, wait_for
from e2e.crd import wait_until_served
from extender.model.device import CardPolicy
from extender.state.cluster import Cluster as State
from extender.watch.reflector import Source
from extender.watch.sources import JOB_VERSIONS, POD_GROUP_PATHS, devices, jobs, pod_groups
from tests.e2e.gpu_nodes import add_hami_node, gpu_pod
from tests.e2e.pods import members, pod
from tests.e2e.rights import FOLDERS, NAMESPACE, Right, rights, roles, without
from tests.e2e.steady import stays
from tests.manifests.files import HAMI, manifests

pytestmark = pytest.mark.timeout(120)

DEADLINE_S = 30.0
ACCOUNT = {"kind": "ServiceAccount", "name": "gang-extender", "namespace": NAMESPACE}
POD_GROUPS = {
    "scheduling.sigs.k8s.io": "v1alpha1",
    "scheduling.x-k8s.io": "v1alpha1",
    "scheduling.volcano.sh": "v1beta1",
}
KOORDINATOR = "scheduling.sigs.k8s.io"
SERVED = {*POD_GROUPS, "scheduling.k8s.io", "batch"}
"""By another stand-in, or by the API server itself."""

shown: set[Right] = set()
"""What was seen to break something."""


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """Return a control plane of our own, in hold mode and where HAMi's plugin would run: with all there is to give."""
    with start_cluster(mode="hold") as cluster:
        cluster.apply(*manifests(HAMI))
        cluster.apply(*(scenarios.pod_group_crd(group, version) for group, version in POD_GROUPS.items()))
        cluster.apply(*(crd(source) for source in optional_kinds() if group_of(source) not in SERVED))
        for source in optional_kinds():
            _, _, group, version, plural = source.path.split("/")
            wait_until_served(cluster, f"{group}/{version}", plural)
        cluster.restart_extender()
        yield cluster


def optional_kinds() -> list[Source[Any]]:
    """Return what is watched that a cluster need not have."""
    state = State(["gang-scheduler"])
    groups = [pod_groups(state, api) for api in POD_GROUP_PATHS]
    return [*groups, *(jobs(state, kind) for kind in JOB_VERSIONS), devices(state, CardPolicy())]


def crd(source: Source[Any]) -> Object:
    """Return a stand-in for the kind's CustomResourceDefinition."""
    _, _, group, version, plural = source.path.split("/")
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    served = {"name": version, "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    kind = source.kind.name
    names = {"kind": kind, "listKind": f"{kind}List", "plural": plural, "singular": kind.lower()}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {"group": group, "scope": "Namespaced", "names": names, "versions": [served]},
    }


def group_of(source: Source[Any]) -> str:
    return source.path.split("/")[2]


def right(resource: str, verb: str, group: str = "", role: str = "ClusterRole/gang-extender", name: str = "") -> Right:
    found = Right(role, group, resource, verb, name)
    assert found in rights(), "manifests/ do not give it"
    return found


def metric(cluster: Cluster, name: str, **labels: str) -> float:
    with urllib.request.urlopen(f"{cluster.probe_url}/metrics", timeout=5) as answer:  # noqa: S310 - our own process
        text = answer.read().decode()
    wanted = [f'{key}="{value}"' for key, value in labels.items()]
    found = re.findall(rf"^gang_extender_{name}(?:{{(.*)}})? (\S+)$", text, re.MULTILINE)
    return sum(float(value) for given, value in found if all(each in given for each in wanted))


def is_above(cluster: Cluster, before: float, name: str) -> bool:
    return metric(cluster, name, result="refused") > before


def readyz(cluster: Cluster) -> str:
    try:
        with urllib.request.urlopen(f"{cluster.probe_url}/readyz?verbose", timeout=5) as answer:  # noqa: S310 - ours
            return str(answer.read().decode())
    except urllib.error.HTTPError as refusal:
        return refusal.read().decode()
    except OSError:
        return ""


def reasons(namespace: Namespace, name: str) -> list[str]:
    return [event["reason"] for event in namespace.events(name)]


def bound(namespace: Namespace, *names: str) -> bool:
    pods = [namespace.pod(name) for name in names]
    return all(each is not None and each["spec"].get("nodeName") for each in pods)


def test_the_extender_runs_as_the_account_that_has_these_roles_and_no_others(cluster: Cluster) -> None:
    config = yaml.safe_load(Path(cluster.processes[EXTENDER].command[-1]).read_text(encoding="utf-8"))
    token = json.loads(Path(config["kubeconfig"]).read_text(encoding="utf-8"))["users"][0]["user"]["token"]
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}}
    who = cluster.api.create("/apis/authentication.k8s.io/v1/tokenreviews", review)["status"]["user"]
    assert who["username"] == f"system:serviceaccount:{NAMESPACE}:gang-extender"

    given = set()
    for kind in ("clusterrolebindings", "rolebindings"):
        for binding in cluster.api.get(f"/apis/rbac.authorization.k8s.io/v1/{kind}")["items"]:
            if ACCOUNT in binding.get("subjects", ()):
                given.add(f"{binding['roleRef']['kind']}/{binding['roleRef']['name']}")
    assert given == {name for name in roles() if "/gang-extender" in name}
    for name in given:
        assert cluster.api.get(cluster.api.path_of(roles()[name]))["rules"] == roles()[name]["rules"]


def test_without_list_a_watch_is_never_synced_and_the_extender_not_ready(cluster: Cluster) -> None:
    taken = [each for each in rights() if each.verb == "list" and each.resource != "leases"]
    with without(cluster, *taken):
        cluster.processes[EXTENDER].restart()
        lines = [f"[-]watch {each.watched} not synced" for each in taken]
        wait_for(lambda: all(line in readyz(cluster) for line in lines), DEADLINE_S, f"/readyz says all of {lines}")
        assert "[+]watch" not in readyz(cluster), "whatever is watched is among them"
    cluster.restart_extender()
    shown.update(taken)


def test_without_watch_changes_are_only_seen_by_listing_again_and_again(cluster: Cluster) -> None:
    taken = [each for each in rights() if each.verb == "watch"]
    with without(cluster, *taken):
        cluster.processes[EXTENDER].restart()

        wait_for(lambda: readyz(cluster) != "", DEADLINE_S, "the extender answers")

        def are_all_refused() -> bool:
            return all(
                metric(cluster, "watch_reconnects_total", resource=each.watched, reason="refused") for each in taken
            )

        wait_for(are_all_refused, DEADLINE_S, "the metric counts each watch that is refused")
    cluster.restart_extender()
    shown.update(taken)


def test_without_the_right_to_bind_no_pod_runs(cluster: Cluster, namespace: Namespace) -> None:
    taken = right("pods/binding", "create")
    cluster.add_node("n1", gpus=2)
    with without(cluster, taken):
        namespace.apply(*members("g", 2))
        wait_for(lambda: metric(cluster, "bindings_total", result="refused"), DEADLINE_S, "the metric counts refusals")
        wait_for(
            lambda: 'cannot create resource \\"pods/binding\\"' in json.dumps(namespace.events("g-0")),
            DEADLINE_S,
            "the pod's events say what is forbidden",
        )
        assert not bound(namespace, "g-0")
    wait_for(lambda: bound(namespace, "g-0", "g-1"), DEADLINE_S, "with it the gang runs")
    shown.add(taken)


def test_without_the_right_to_get_a_pod_nobody_knows_whether_it_is_bound(
    cluster: Cluster, namespace: Namespace
) -> None:
    taken = right("pods", "get")
    cluster.add_node("n1", gpus=2)
    namespace.apply(pod("p"))
    wait_for(lambda: bound(namespace, "p"), DEADLINE_S, "the pod is bound")
    found = namespace.pod("p")
    assert found is not None
    again = {"PodName": "p", "PodNamespace": namespace.name, "PodUID": found["metadata"]["uid"], "Node": "n1"}
    assert bind(cluster, again) == "", "kube-scheduler asks again where it did not hear the answer"
    with without(cluster, taken):
        assert "did not say" in bind(cluster, again)
    shown.add(taken)


def bind(cluster: Cluster, body: dict[str, str]) -> str:
    request = urllib.request.Request(f"{cluster.extender_url}/v1/bind", json.dumps(body).encode(), method="POST")  # noqa: S310 - our own process
    with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310 - as above
        return str(json.loads(answer.read())["Error"])


def test_without_the_right_to_patch_a_pods_status_no_member_is_nominated(
    cluster: Cluster, namespace: Namespace
) -> None:
    taken = right("pods/status", "patch")
    cluster.set_mode("filter")
    try:
        with without(cluster, taken):
            before = metric(cluster, "nominations_total", result="refused")
            namespace.apply(*members("g", 2))
            wait_for(lambda: len(namespace.events("g-1")), DEADLINE_S, "kube-scheduler turns the members away")
            cluster.add_node("n1", gpus=2)
            wait_for(
                lambda: metric(cluster, "nominations_total", result="refused") > before,
                DEADLINE_S,
                "the metric counts a nomination that was refused",
            )
    finally:
        cluster.set_mode("hold")
    shown.add(taken)


def test_without_the_right_to_patch_pods_held_ones_stay_held(cluster: Cluster, namespace: Namespace) -> None:
    taken = right("pods", "patch", role="ClusterRole/gang-extender-hold")
    cluster.add_node("n1", gpus=2)
    with without(cluster, taken):
        namespace.apply(pod("p"))
        wait_for(lambda: metric(cluster, "releases_total", result="refused"), DEADLINE_S, "the metric counts it")
        assert stays(lambda: not bound(namespace, "p"), 2.0)
    wait_for(lambda: bound(namespace, "p"), 45.0, "with it the pod runs, at the next try")
    shown.add(taken)


def test_without_the_right_to_write_events_nobody_is_told(cluster: Cluster, namespace: Namespace) -> None:
    taken = right("events", "create", "events.k8s.io")
    with without(cluster, taken):
        before = metric(cluster, "events_total", result="refused")
        namespace.apply(next(members("g", 3)))
        wait_for(lambda: metric(cluster, "events_total", result="refused") > before, DEADLINE_S, "the metric counts it")
        assert "GangIncomplete" not in reasons(namespace, "g-0")
    shown.add(taken)


def test_without_the_right_to_patch_events_a_repeated_one_is_not_counted(
    cluster: Cluster, namespace: Namespace
) -> None:
    taken = right("events", "patch", "events.k8s.io")
    namespace.apply(next(members("g", 3)))

    wait_for(lambda: "GangIncomplete" in reasons(namespace, "g-0"), DEADLINE_S, "an event says that it is incomplete")
    _, *others = members("g", 3)
    with without(cluster, taken):
        before = metric(cluster, "events_total", result="refused")
        namespace.apply(*others)
        wait_for(lambda: "FailedScheduling" in reasons(namespace, "g-1"), DEADLINE_S, "the gang is complete")
        for each in others:
            namespace.cluster.api.delete(f"{namespace.path}/pods/{each['metadata']['name']}", grace_period_s=0)
        wait_for(lambda: metric(cluster, "events_total", result="refused") > before, DEADLINE_S, "the metric counts it")
    shown.add(taken)


@pytest.mark.parametrize("group", POD_GROUPS)
def test_without_the_right_to_patch_a_pod_groups_status_it_has_none(
    cluster: Cluster, namespace: Namespace, group: str
) -> None:
    taken = [right("podgroups/status", "patch", group)]
    taken += [right("podgroups", "patch", group)] if group == KOORDINATOR else []
    for number, each in enumerate(taken):
        with without(cluster, each):
            before = metric(cluster, "pod_group_statuses_total", result="refused")
            name = f"group-{number}"
            namespace.apply(pod_group(group, name), one_of(group, name))
            grows = partial(is_above, cluster, before, "pod_group_statuses_total")
            wait_for(grows, DEADLINE_S, "the metric counts it")
            version = POD_GROUPS[group]
            found = cluster.api.get(f"/apis/{group}/{version}/namespaces/{namespace.name}/podgroups/{name}")
            assert not found.get("status")
    shown.update(taken)


def pod_group(group: str, name: str) -> dict[str, object]:
    version = f"{group}/{POD_GROUPS[group]}"
    return {"apiVersion": version, "kind": "PodGroup", "metadata": {"name": name}, "spec": {"minMember": 2}}


def one_of(group: str, name: str) -> dict[str, object]:
    labels = {"scheduling.sigs.k8s.io": "pod-group.scheduling.sigs.k8s.io", "scheduling.x-k8s.io": f"{group}/pod-group"}
    if group in labels:
        return pod(f"{name}-0", labels={labels[group]: name})
    return pod(f"{name}-0", annotations={"scheduling.volcano.sh/group-name": name})


@pytest.mark.parametrize("verb", ["get", "patch"])
def test_without_the_rights_on_nodes_no_pod_is_bound_where_hamis_plugin_needs_a_lock(
    cluster: Cluster, namespace: Namespace, verb: str
) -> None:
    taken = right("nodes", verb, role="ClusterRole/gang-extender-hami")
    add_hami_node(cluster, "n1")
    with without(cluster, taken):
        namespace.apply(gpu_pod("p", {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "1024"}))
        wait_for(
            lambda: f'cannot {verb} resource \\"nodes\\"' in json.dumps(namespace.events("p")).replace('\\\\"', '\\"'),
            DEADLINE_S,
            "the pod's events say what is forbidden",
        )
        assert not bound(namespace, "p")
    wait_for(lambda: bound(namespace, "p"), DEADLINE_S, "with it the pod is bound")
    shown.add(taken)


def test_without_the_right_to_get_the_lease_the_extender_never_leads(cluster: Cluster) -> None:
    taken = lease_right("get")
    with without(cluster, taken):
        cluster.processes[EXTENDER].restart()
        wait_for(lambda: "readyz check passed" in readyz(cluster), DEADLINE_S, "the extender has listed everything")
        assert stays(lambda: metric(cluster, "leading") == 0, 5.0)
    cluster.restart_extender()
    shown.add(taken)


def test_without_the_right_to_list_the_lease_its_changes_are_only_seen_by_looking(cluster: Cluster) -> None:
    taken = lease_right("list")
    with without(cluster, taken):
        cluster.processes[EXTENDER].restart()

        def is_refused() -> bool:
            return metric(cluster, "watch_reconnects_total", resource=taken.watched, reason="refused") > 0

        wait_for(lambda: readyz(cluster) != "" and is_refused(), DEADLINE_S, "the metric counts the list")
    cluster.restart_extender()
    shown.add(taken)


def lease_right(verb: str) -> Right:
    return right("leases", verb, "coordination.k8s.io", "Role/gang-extender", "gang-scheduler")


@pytest.mark.parametrize("verb", ["get", "update"])
def test_without_the_rights_on_its_lease_the_second_kube_scheduler_does_not_lead(cluster: Cluster, verb: str) -> None:
    taken = right("leases", verb, "coordination.k8s.io", "Role/gang-scheduler", "gang-scheduler")
    process = cluster.processes[GANG_SCHEDULER]
    process.stop()
    cluster.api.delete(f"/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/gang-scheduler")
    with without(cluster, taken):
        process.log.write_text("")
        process.restart()
        wait_for(
            lambda: f'cannot {verb} resource \\"leases\\"' in process.log.read_text(), DEADLINE_S, "its log says so"
        )
    cluster.restart_gang_scheduler()
    shown.add(taken)


def test_nothing_is_given_that_was_not_shown_to_be_needed(cluster: Cluster) -> None:
    cluster.check()
    assert rights() - shown == set()
    assert len(FOLDERS) == 3
