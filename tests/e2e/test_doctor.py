"""Does the doctor find on the real control plane what is wrong there, and nothing once it is mended?

kube-scheduler tells its configuration itself (/configz); where it does not start with a mistake, that is shown.
"""

import io
import json
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pytest
import yaml

from e2e import scenarios
from e2e.cluster import Cluster, Namespace, wait_for
from e2e.crd import wait_until_served
from extender.cli.gang_extender import main
from tests.manifests.files import BASE, HOLD, SCHEDULER_CONFIG, Object, manifest, manifests, pod_spec
from tests.manifests.test_installed import read_by_kube_scheduler

Answer = list[dict[str, str]]
NAMESPACE = "gang-extender"
SOON_S = 20.0


def run(*arguments: str | Path) -> tuple[int, str, str]:
    """Run the command in this process, which spares a second; return its exit status and what it printed."""
    printed, complaints = io.StringIO(), io.StringIO()
    with redirect_stdout(printed), redirect_stderr(complaints):
        status = main(["doctor", *map(str, arguments)])
    return status, printed.getvalue(), complaints.getvalue()


def seen_in_cluster(cluster: Cluster, *more: str | Path) -> Answer:
    """Look as the admin does, without being told where the kube-scheduler is; return what is not ok."""
    return amiss("--kubeconfig", cluster.kubeconfig, "--config", cluster.extender_settings, "--beside-extender", *more)


def seen(cluster: Cluster, *more: str | Path) -> Answer:
    """Look as the admin does, and ask the kube-scheduler; return what is not ok."""
    return seen_in_cluster(cluster, "--configz", cluster.gang_scheduler_url, *more)


def amiss(*arguments: str | Path) -> Answer:
    """Return the findings that are not ok."""
    status, printed, complaints = run(*arguments, "--output", "json")
    assert printed, complaints
    answer = json.loads(printed)
    assert status == answer["exit"] == int(any(each["level"] == "error" for each in answer["findings"]))
    return [each for each in answer["findings"] if each["level"] != "ok"]


def one(findings: Answer) -> dict[str, str]:
    """Return the only finding."""
    assert len(findings) == 1, findings
    return findings[0]


def extenders(*changes: dict[str, Any]) -> dict[str, Any]:
    """Return the extenders of the repository's file, each changed so."""
    entries = yaml.safe_load((SCHEDULER_CONFIG / "dedicated.yaml").read_text())["extenders"]
    return {"extenders": [entry | change for entry, change in zip(entries, (*changes, {}, {}), strict=False)]}


def test_what_the_harness_runs_with_the_repositorys_files_is_all_right(cluster: Cluster) -> None:
    assert seen(cluster) == []
    status, printed, _ = run(
        "--kubeconfig",
        cluster.kubeconfig,
        "--config",
        cluster.extender_settings,
        "--configz",
        cluster.gang_scheduler_url,
    )
    assert status == 0
    assert "ok       verbs" in printed
    assert "unknown  the extender itself: no pod with a container extender" in printed


@pytest.fixture
def mended(cluster: Cluster) -> Iterator[None]:
    """Start the kube-scheduler with the repository's file again, and see that all is well."""
    yield
    cluster.restart_gang_scheduler()
    assert seen(cluster) == []


@pytest.mark.usefixtures("mended")
def test_a_kube_scheduler_that_runs_with_many_mistakes(cluster: Cluster) -> None:
    loop = {"nodeCacheCapable": False, "ignorable": True, "preemptVerb": "", "httpTimeout": "30s", "weight": 1}
    profile = {
        "schedulerName": "gang-scheduler",
        "plugins": {"multiPoint": {"disabled": [{"name": "DefaultPreemption"}]}},
    }
    cluster.restart_gang_scheduler(
        extenders(loop, {"httpTimeout": "10s"})
        | {"percentageOfNodesToScore": 100, "podMaxBackoffSeconds": 40, "profiles": [profile], "clientConnection": {}}
    )
    assert {(each["check"], each["level"], each["mend"].split(" (")[0]) for each in seen(cluster)} == {
        ("verbs", "error", "add to extenders[0]: preemptVerb: preempt"),
        ("nodeCacheCapable", "error", "nodeCacheCapable: true"),
        ("ignorable", "error", "ignorable: false"),
        ("httpTimeout of bind", "error", "httpTimeout: 90s"),
        ("httpTimeout of filter, prioritize and preempt", "warning", "httpTimeout: 2s"),
        ("weight", "warning", "weight: 15"),
        ("percentageOfNodesToScore", "error", "percentageOfNodesToScore: 1, here, or 100 in the extender's settings"),
        ("plugins", "warning", "enable DefaultPreemption again"),
        ("back-off", "warning", "podMaxBackoffSeconds: 12"),
        ("clientConnection", "warning", "clientConnection: {qps: 500, burst: 1000}"),
    }


@pytest.mark.usefixtures("mended")
def test_a_kube_scheduler_that_schedules_gangs_itself(cluster: Cluster) -> None:
    """Its feature gates are read from its metrics."""
    cluster.restart_gang_scheduler(flags=["--feature-gates=GenericWorkload=true,GangScheduling=true"])
    found = one(seen(cluster))
    assert (found["check"], found["mend"]) == (
        "feature gates of kube-scheduler",
        "--feature-gates=GangScheduling=false",
    )


@pytest.mark.usefixtures("mended")
def test_a_kube_scheduler_that_calls_nobody(cluster: Cluster, namespace: Namespace) -> None:
    """The file says so, and so do the pods that are bound all the same."""
    cluster.restart_gang_scheduler({"extenders": []})
    cluster.restart_extender()
    cluster.add_node("here")
    namespace.apply(waiting_member("w", "app"))
    wait_for(namespace.running, SOON_S, "the pod is bound")
    assert [(each["check"], each["level"]) for each in seen(cluster)] == [
        ("extender entries", "error"),
        ("extender is called", "warning"),
    ]
    namespace.delete_pod("w")
    wait_for(lambda: not namespace.pods(), SOON_S, "the pod is gone")


def test_a_file_that_calls_where_nobody_listens(cluster: Cluster, tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    entry = {"urlPrefix": "http://127.0.0.1:1/v1"}
    content = yaml.safe_load((SCHEDULER_CONFIG / "dedicated.yaml").read_text()) | extenders(entry, entry)
    file.write_text(yaml.safe_dump(content))
    found = seen_in_cluster(cluster, "--scheduler-config", file)
    assert [each["check"] for each in found if each["level"] == "error"] == [
        "urlPrefix",
        "urlPrefix",
        "extender answers at the entries' URL",
    ]
    assert str(file) in found[0]["where"]


@pytest.mark.parametrize(
    ("change", "check", "complaint"),
    [
        (({"weight": 0},), "weight", "must have a positive weight"),
        (
            ({"bindVerb": "bind", "urlPrefix": "http://127.0.0.1:9/other"},),
            "other extenders",
            "only one extender can implement bind",
        ),
        (
            ({"managedResources": [{"name": "nvidia.com/gpumem"}]},),
            "managedResources: names",
            "duplicate extender managed",
        ),
        (({"managedResources": [{"name": "gpu"}]},), "managedResources: names", "invalid extended resource name"),
    ],
    ids=["weight 0", "two that bind", "one name twice", "no name of a resource"],
)
def test_a_file_that_kube_scheduler_refuses(
    cluster: Cluster, change: tuple[dict[str, Any], ...], check: str, complaint: str, tmp_path: Path
) -> None:
    content = yaml.safe_load((SCHEDULER_CONFIG / "dedicated.yaml").read_text()) | extenders(*change)
    file = tmp_path / "config.yaml"
    file.write_text(yaml.safe_dump(content))
    found = seen_in_cluster(cluster, "--scheduler-config", file)
    assert [each for each in found if each["check"] == check and "refuses the file" in each["what"]], found
    with pytest.raises(AssertionError, match=complaint):
        read_by_kube_scheduler(content, tmp_path)


def test_a_right_that_was_taken_away_and_given_back(cluster: Cluster) -> None:
    role = manifest("ClusterRole", "gang-extender")
    rules = [rule for rule in role["rules"] if rule["resources"] not in (["pods/binding"], ["pods/status"])]
    cluster.apply({**role, "rules": rules})
    found = wait_for(lambda: seen(cluster), SOON_S, "the rights are gone")
    assert [each["what"].split(":")[0] for each in found] == [
        "may not create pods/binding",
        "may not patch pods/status",
    ]
    assert {each["mend"] for each in found} == {"kubectl apply -f manifests/base/rbac.yaml"}

    cluster.kubectl("apply", "--server-side", "--force-conflicts", "-f", str(BASE / "rbac.yaml"))
    wait_for(lambda: seen(cluster) == [], SOON_S, "the rights are back")


def test_the_extender_itself_asks_for_its_own_rights_and_says_what_it_may_not_see(cluster: Cluster) -> None:
    mine = cluster.service_account_kubeconfig(NAMESPACE, "gang-extender")
    found = amiss("--kubeconfig", mine, "--config", cluster.extender_settings, "--beside-extender")
    assert not [each for each in found if "right of the extender" in each["check"]]
    assert {(each["check"], each["level"]) for each in found} == {
        ("KubeSchedulerConfiguration", "unknown"),
        ("pods of kube-scheduler", "unknown"),
        ("policy gang-extender-hold", "unknown"),
        ("policy gang-extender-gpu-env", "unknown"),
    }


def waiting_member(name: str, label: str) -> Object:
    """Return a pod that leaves it to a PodGroup what its gang is."""
    spec = {"schedulerName": "gang-scheduler", "containers": [{"name": "main", "image": "none"}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {label: "g"}}, "spec": spec}


def test_a_pod_group_whose_crd_is_missing_then_too_new_and_then_there(cluster: Cluster, namespace: Namespace) -> None:
    kind = "podgroups.scheduling.x-k8s.io"
    namespace.apply(waiting_member("w", "scheduling.x-k8s.io/pod-group"))
    found = one(seen(cluster))
    assert (found["check"], found["level"]) == (f"API {kind}", "error")
    assert kind in found["mend"]

    newer, right = (scenarios.pod_group_crd("scheduling.x-k8s.io", version) for version in ("v1beta9", "v1alpha1"))
    try:
        cluster.apply(newer)
        wait_until_served(cluster, "scheduling.x-k8s.io/v1beta9", "podgroups")
        assert "served as v1beta9 and not as v1alpha1" in one(seen(cluster))["what"]
        right["spec"]["versions"] += [{**newer["spec"]["versions"][0], "storage": False}]
        cluster.apply(right)
        wait_until_served(cluster, "scheduling.x-k8s.io/v1alpha1", "podgroups")
        wait_for(lambda: seen(cluster) == [], SOON_S, "the CRD is there")
    finally:
        cluster.api.delete(cluster.api.path_of(newer))


def test_pods_that_ask_for_what_nobody_knows(cluster: Cluster, namespace: Namespace) -> None:
    """All that kube-scheduler says of the mark is "Insufficient"."""
    cluster.add_node("here")
    marked, stranger = waiting_member("marked", "app"), waiting_member("stranger", "app")
    marked["spec"]["containers"][0]["resources"] = {"limits": {"gang-extender.io/member": "1"}}
    stranger["spec"]["schedulerName"] = "default-scheduler"
    stranger["spec"]["schedulingGates"] = [{"name": "example.com/later"}]
    stranger["metadata"]["annotations"] = {"gang.scheduling.koordinator.sh/name": "g"}
    namespace.apply(marked, stranger)
    wait_for(
        lambda: "Insufficient gang-extender.io/member" in namespace.describe_pod("marked"), SOON_S, "it is refused"
    )

    assert [(each["check"], each["level"]) for each in seen(cluster)] == [
        ("gangs name our scheduler", "warning"),
        ("members have the marks that a shared kube-scheduler asks for, and no others", "error"),
    ]
    namespace.delete_pod("marked")
    namespace.delete_pod("stranger")
    wait_for(lambda: seen(cluster) == [], SOON_S, "nobody asks for it any more")


def test_the_settings_are_found_in_the_cluster_and_a_mistake_in_them(cluster: Cluster) -> None:
    def settings(text: str) -> Object:
        metadata = {"name": "settings", "namespace": NAMESPACE}
        kind = "apiVersion: gang-extender.io/v1alpha1\nkind: GangExtenderConfiguration\n"
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"config.yaml": kind + text}}

    def found() -> Answer:
        port = yaml.safe_load(cluster.extender_settings.read_text())["server"]["port"]
        cluster.apply(settings(f"server: {{port: {port}}}\n{text}"))
        return amiss("--kubeconfig", cluster.kubeconfig, "--configz", cluster.gang_scheduler_url)

    try:
        text = "gangs: {bindingSeconds: 100}"
        assert [each["check"] for each in found()] == ["httpTimeout of bind", "the extender itself"]
        text = "gangs: {bindingSecond: 100}"
        first = found()[0]
        assert (first["check"], first["level"]) == ("the extender's settings", "error")
        assert "bindingSecond" in first["what"]
        assert first["where"] == f"ConfigMap {NAMESPACE}/settings, key config.yaml"
    finally:
        cluster.api.delete(cluster.api.path_of(settings("")))


def test_hold_mode_by_halves(cluster: Cluster) -> None:
    """Each part is taken away in turn, and comes back with the command that the doctor gives."""
    cluster.set_mode("hold")
    try:
        assert seen(cluster) == []
        parts = {each["kind"]: each for each in manifests(HOLD)}
        for kind, said in {
            "MutatingAdmissionPolicyBinding": "no binding puts it into force",
            "MutatingAdmissionPolicy": "its binding is there, the policy is not",
            "ClusterRoleBinding": "may not patch pods: held pods never lose their gate",
        }.items():
            cluster.api.delete(cluster.api.path_of(parts[kind]))
            found = wait_for(lambda: seen(cluster), SOON_S, f"{kind} is gone")
            assert said in one(found)["what"]
            assert "manifests/hold" in found[0]["mend"]
            cluster.apply(parts[kind])
            wait_for(lambda: seen(cluster) == [], SOON_S, f"{kind} is back")
    finally:
        cluster.set_mode("filter")


def test_a_kube_scheduler_is_found_by_its_pod_and_the_config_map_that_it_mounts(cluster: Cluster) -> None:
    """The pods are stand-ins: nothing runs in them. An older ConfigMap with a mistake is in use by nobody."""
    cluster.add_node("here")
    good = (SCHEDULER_CONFIG / "dedicated.yaml").read_text()
    port = yaml.safe_load(cluster.extender_settings.read_text())["server"]["port"]
    good = good.replace("127.0.0.1:8888", f"127.0.0.1:{port}")
    bad = good.replace("ignorable: false", "ignorable: true")
    spec = pod_spec() | {"nodeName": "here", "priorityClassName": ""}
    name = next(volume for volume in spec["volumes"] if volume["name"] == "scheduler-config")["configMap"]["name"]
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "one", "namespace": NAMESPACE}, "spec": spec}

    def config_map(name: str, text: str) -> Object:
        metadata = {"name": name, "namespace": NAMESPACE}
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"dedicated.yaml": text}}

    try:
        cluster.apply(config_map(name, good), config_map("older", bad), pod)
        assert [each for each in seen_in_cluster(cluster) if each["level"] != "unknown"] == []
        cluster.apply(config_map(name, bad))
        found = seen_in_cluster(cluster)
        assert [each["check"] for each in found] == ["ignorable", "ignorable"]
        assert f"ConfigMap {NAMESPACE}/{name}, key dedicated.yaml" in found[0]["where"]
        outside = amiss("--kubeconfig", cluster.kubeconfig, "--config", cluster.extender_settings)
        assert {each["check"] for each in outside if each["level"] == "unknown"} == {
            "extender is ready",
            "extender answers at the entries' URL",
            "extender is called",
        }
    finally:
        for each in (config_map(name, ""), config_map("older", "")):
            cluster.api.delete(cluster.api.path_of(each))
        cluster.api.delete(f"/api/v1/namespaces/{NAMESPACE}/pods/one", grace_period_s=0)
        cluster.delete_node("here")


def test_without_an_api_server_there_is_nothing_to_see(tmp_path: Path) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:1"}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "users": [{"name": "u", "user": {"token": "none"}}],
        "current-context": "x",
    }
    kubeconfig.write_text(yaml.safe_dump(content))
    status, printed, complaints = run("--kubeconfig", kubeconfig)
    assert (status, printed) == (2, "")
    assert "nothing could be seen" in complaints
