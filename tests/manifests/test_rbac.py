"""Who may do what? Asserted whole, so that a right more is as much a failure as a right less."""

from collections.abc import Iterator

from extender.config import LeaderElectionConfig
from extender.model.device import CardPolicy
from extender.state.cluster import Cluster
from extender.watch.sources import JOB_VERSIONS, POD_GROUP_PATHS, devices, jobs, pod_groups
from tests.manifests.files import HAMI, HOLD, Object, manifest, manifests, scheduler_config

EXTENDER = "gang-extender"
SCHEDULER = "gang-scheduler"

DECLARE_GANGS = {
    ("scheduling.k8s.io", "podgroups"),
    ("scheduling.sigs.k8s.io", "podgroups"),
    ("scheduling.x-k8s.io", "podgroups"),
    ("scheduling.volcano.sh", "podgroups"),
    ("kubeflow.org", "tfjobs"),
    ("kubeflow.org", "pytorchjobs"),
    ("elastic.iml.github.io", "elasticjobs"),
    ("train.distributed.io", "torchjobs"),
    ("batch", "jobs"),
}


def rights(role: Object) -> set[tuple[str, str, str, str]]:
    """Return (group, resource, the one name or "", verb) one by one."""
    return {
        (group, resource, name, verb)
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for name in rule.get("resourceNames", [""])
        for verb in rule["verbs"]
    }


def roles_of(service_account: str) -> Iterator[tuple[str, str, str]]:
    """Yield (where it counts, kind of the role, its name)."""
    for binding in manifests():
        for subject in binding.get("subjects", ()):
            if subject == {"kind": "ServiceAccount", "name": service_account, "namespace": "gang-extender"}:
                where = binding["metadata"].get("namespace", "the cluster")
                yield where, binding["roleRef"]["kind"], binding["roleRef"]["name"]


def test_the_extender_may_read_what_it_decides_on_bind_nominate_and_report_and_nothing_else() -> None:
    assert rights(manifest("ClusterRole", EXTENDER)) == {
        ("", "namespaces", "", "list"),
        ("", "namespaces", "", "watch"),
        ("", "nodes", "", "list"),
        ("", "nodes", "", "watch"),
        ("", "pods", "", "get"),
        ("", "pods", "", "list"),
        ("", "pods", "", "watch"),
        ("", "pods/binding", "", "create"),
        ("", "pods/status", "", "patch"),
        ("", "persistentvolumeclaims", "", "list"),
        ("", "persistentvolumeclaims", "", "watch"),
        ("", "persistentvolumes", "", "list"),
        ("", "persistentvolumes", "", "watch"),
        ("scheduling.koordinator.sh", "devices", "", "list"),
        ("scheduling.koordinator.sh", "devices", "", "watch"),
        ("policy", "poddisruptionbudgets", "", "list"),
        ("policy", "poddisruptionbudgets", "", "watch"),
        ("scheduling.sigs.k8s.io", "podgroups", "", "patch"),
        ("scheduling.sigs.k8s.io", "podgroups/status", "", "patch"),
        ("scheduling.x-k8s.io", "podgroups/status", "", "patch"),
        ("scheduling.volcano.sh", "podgroups/status", "", "patch"),
        ("events.k8s.io", "events", "", "create"),
        ("events.k8s.io", "events", "", "patch"),
    } | {(group, resource, "", verb) for group, resource in DECLARE_GANGS for verb in ("list", "watch")}
    assert set(roles_of(EXTENDER)) == {
        ("the cluster", "ClusterRole", EXTENDER),
        ("gang-extender", "Role", EXTENDER),
    }


def test_the_extender_may_follow_the_election_of_its_scheduler_and_not_take_part() -> None:
    election = scheduler_config("dedicated.yaml")["leaderElection"]
    role = manifest("Role", EXTENDER)
    assert role["metadata"]["namespace"] == election["resourceNamespace"]
    assert rights(role) == {
        ("coordination.k8s.io", "leases", election["resourceName"], verb) for verb in ("get", "list", "watch")
    }
    followed = LeaderElectionConfig()
    assert (followed.mode, followed.resource_namespace) == ("sidecar", election["resourceNamespace"])
    assert followed.resource_name == election["resourceName"]


def test_in_hold_mode_the_extender_may_change_pods_as_well() -> None:
    """The gate is in the spec, and there is no smaller right."""
    role, binding = (manifest(kind, "gang-extender-hold", HOLD) for kind in ("ClusterRole", "ClusterRoleBinding"))
    assert rights(role) == {("", "pods", "", "patch")}
    assert (binding["roleRef"]["kind"], binding["roleRef"]["name"]) == ("ClusterRole", "gang-extender-hold")
    assert binding["subjects"] == [{"kind": "ServiceAccount", "name": EXTENDER, "namespace": "gang-extender"}]
    assert {m["kind"] for m in manifests(HOLD) if "Role" in m["kind"]} == {"ClusterRole", "ClusterRoleBinding"}


def test_where_hamis_plugin_runs_the_extender_may_lock_nodes_as_well() -> None:
    """The lock is an annotation, read and written, and there is no smaller right."""
    role, binding = (manifest(kind, "gang-extender-hami", HAMI) for kind in ("ClusterRole", "ClusterRoleBinding"))
    assert rights(role) == {("", "nodes", "", "get"), ("", "nodes", "", "patch")}
    assert (binding["roleRef"]["kind"], binding["roleRef"]["name"]) == ("ClusterRole", "gang-extender-hami")
    assert binding["subjects"] == [{"kind": "ServiceAccount", "name": EXTENDER, "namespace": "gang-extender"}]
    assert {m["kind"] for m in manifests(HAMI)} == {"ClusterRole", "ClusterRoleBinding"}


def test_the_second_scheduler_has_a_schedulers_roles_and_its_own_lease() -> None:
    assert sorted(roles_of(SCHEDULER)) == [
        ("gang-extender", "Role", SCHEDULER),
        ("kube-system", "Role", "extension-apiserver-authentication-reader"),
        ("the cluster", "ClusterRole", "system:kube-scheduler"),
        ("the cluster", "ClusterRole", "system:volume-scheduler"),
    ]


def test_the_lease_that_may_be_written_is_the_one_that_the_scheduler_is_told_to_use() -> None:
    election = scheduler_config("dedicated.yaml")["leaderElection"]
    role = manifest("Role", SCHEDULER)
    lease = election["resourceName"]

    assert role["metadata"]["namespace"] == election["resourceNamespace"]
    assert rights(role) == {
        ("coordination.k8s.io", "leases", lease, "get"),
        ("coordination.k8s.io", "leases", lease, "update"),
    }


def test_nobody_else_is_given_anything() -> None:
    subjects = [subject for binding in manifests() for subject in binding.get("subjects", ())]
    assert {(s["kind"], s["namespace"], s["name"]) for s in subjects} == {
        ("ServiceAccount", "gang-extender", EXTENDER),
        ("ServiceAccount", "gang-extender", SCHEDULER),
    }


def test_the_extender_may_read_every_kind_that_it_watches() -> None:
    cluster = Cluster(["gang-scheduler"])
    sources = [pod_groups(cluster, api) for api in POD_GROUP_PATHS] + [jobs(cluster, kind) for kind in JOB_VERSIONS]
    watched = {tuple(source.path.split("/")[2::2]) for source in sources}
    assert watched == DECLARE_GANGS
    assert devices(cluster, CardPolicy()).path.split("/")[2::2] == ["scheduling.koordinator.sh", "devices"]
