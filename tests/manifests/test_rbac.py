"""Who may do what? Asserted whole, so that a right more is as much a failure as a right less."""

from collections.abc import Iterator

from tests.manifests.files import Object, manifest, manifests, scheduler_config

EXTENDER = "gang-extender"
SCHEDULER = "gang-scheduler"


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


def test_the_extender_may_read_pods_nodes_and_namespaces_bind_nominate_and_report_and_nothing_else() -> None:
    assert rights(manifest("ClusterRole", EXTENDER)) == {
        ("", "namespaces", "", "get"),
        ("", "namespaces", "", "list"),
        ("", "namespaces", "", "watch"),
        ("", "nodes", "", "get"),
        ("", "nodes", "", "list"),
        ("", "nodes", "", "watch"),
        ("", "pods", "", "get"),
        ("", "pods", "", "list"),
        ("", "pods", "", "watch"),
        ("", "pods/binding", "", "create"),
        ("", "pods/status", "", "patch"),
        ("events.k8s.io", "events", "", "create"),
        ("events.k8s.io", "events", "", "patch"),
    }
    assert list(roles_of(EXTENDER)) == [("the cluster", "ClusterRole", EXTENDER)]


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
        ("coordination.k8s.io", "leases", "", "create"),
        ("coordination.k8s.io", "leases", lease, "get"),
        ("coordination.k8s.io", "leases", lease, "update"),
    }


def test_nobody_else_is_given_anything() -> None:
    subjects = [subject for binding in manifests() for subject in binding.get("subjects", ())]
    assert {(s["kind"], s["namespace"], s["name"]) for s in subjects} == {
        ("ServiceAccount", "gang-extender", EXTENDER),
        ("ServiceAccount", "gang-extender", SCHEDULER),
    }
