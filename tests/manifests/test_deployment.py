"""Does the Deployment hold together: two identities, ports, images, configuration?"""

import re
import tomllib
from pathlib import PurePosixPath

import pytest

from extender.config import ServerConfig, load_config
from extender.effects.binding import LAST_LOOK_S
from extender.verbs.bind import POSTING_S
from tests.manifests.files import BASE, ROOT, Object, container, manifest, pod_spec, scheduler_config

TOKENS = "/var/run/secrets/kubernetes.io/serviceaccount"
CONTAINERS = ("extender", "kube-scheduler")


def volume_at(name: str, path: str) -> Object:
    """Return the volume that this container finds at `path`."""
    (mount,) = (m for m in container(name)["volumeMounts"] if m["mountPath"] == path)
    (volume,) = (v for v in pod_spec()["volumes"] if v["name"] == mount["name"])
    return dict(volume)


def test_each_container_is_given_its_own_identity_and_no_other() -> None:
    secret = manifest("Secret", volume_at("extender", TOKENS)["secret"]["secretName"])
    assert secret["type"] == "kubernetes.io/service-account-token"
    assert secret["metadata"]["annotations"] == {"kubernetes.io/service-account.name": "gang-extender"}

    assert pod_spec()["serviceAccountName"] == "gang-scheduler"
    (token,) = (s for s in volume_at("kube-scheduler", TOKENS)["projected"]["sources"] if "serviceAccountToken" in s)
    assert token == {"serviceAccountToken": {"path": "token"}}

    assert pod_spec()["automountServiceAccountToken"] is False
    mounted = {name: {mount["name"] for mount in container(name)["volumeMounts"]} for name in CONTAINERS}
    assert not mounted["extender"] & mounted["kube-scheduler"]


def test_a_container_finds_with_its_token_what_in_cluster_clients_read() -> None:
    sources = volume_at("kube-scheduler", TOKENS)["projected"]["sources"]
    paths = {
        item["path"]
        for s in sources
        for kind in ("configMap", "downwardAPI")
        for item in s.get(kind, {}).get("items", [])
    }
    assert paths == {"ca.crt", "namespace"}


@pytest.mark.parametrize("name", CONTAINERS)
def test_a_container_has_no_rights_on_its_node(name: str) -> None:
    assert container(name)["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    pod = pod_spec()["securityContext"]
    assert pod["runAsNonRoot"]
    assert pod["runAsUser"] >= 10_000
    assert pod["seccompProfile"] == {"type": "RuntimeDefault"}
    assert not {"hostNetwork", "hostPID", "hostIPC"} & pod_spec().keys()


def test_the_extender_is_probed_where_it_serves_probes_and_not_where_it_serves_verbs() -> None:
    extender = container("extender")
    assert extender["ports"] == [{"name": "probes", "containerPort": ServerConfig().probe_port}]
    assert {extender[p]["httpGet"]["port"] for p in ("startupProbe", "readinessProbe", "livenessProbe")} == {"probes"}
    assert ServerConfig().probe_port != ServerConfig().port


def test_a_scheduler_whose_extender_is_not_ready_is_restarted_to_give_up_its_lease() -> None:
    probe = container("kube-scheduler")["livenessProbe"]
    assert probe["httpGet"] == {"path": "/readyz", "port": ServerConfig().probe_port}
    assert probe["periodSeconds"] * probe["failureThreshold"] >= 60


def test_the_extender_starts_before_its_scheduler_and_ends_after_it() -> None:
    assert container("extender") in pod_spec()["initContainers"]
    assert container("extender")["restartPolicy"] == "Always"
    assert container("extender")["startupProbe"]["httpGet"]["path"] == "/readyz"
    assert pod_spec()["terminationGracePeriodSeconds"] > POSTING_S + LAST_LOOK_S


def test_the_pod_does_not_wait_for_the_scheduler_that_it_brings() -> None:
    brought = {profile["schedulerName"] for profile in scheduler_config("dedicated.yaml")["profiles"]}
    assert pod_spec()["schedulerName"] not in brought


@pytest.mark.parametrize(
    ("name", "argument"), [("extender", "/etc/gang-extender/config.yaml"), ("kube-scheduler", "dedicated.yaml")]
)
def test_a_container_reads_a_configuration_that_is_mounted(name: str, argument: str) -> None:
    path = PurePosixPath(container(name)["args"][-1].removeprefix("--config="))
    assert str(path).endswith(argument)
    assert "configMap" in volume_at(name, str(path.parent))


def test_kube_scheduler_is_started_by_name_since_its_image_starts_something_else() -> None:
    assert container("kube-scheduler")["command"] == ["kube-scheduler"]
    assert "command" not in container("extender"), "whose entrypoint the Dockerfile says"


def test_the_extender_accepts_the_configuration_that_it_is_given() -> None:
    assert load_config(BASE / "config.yaml").server == ServerConfig()


def test_the_images_are_of_the_versions_that_are_tested() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert container("extender")["image"] == f"gang-extender:{version}"

    built = re.search(r"k8s\.io/kubernetes (v\S+)", (ROOT / "e2e" / "controlplane" / "go.mod").read_text())
    assert built
    assert container("kube-scheduler")["image"] == f"registry.k8s.io/kube-scheduler:{built[1]}"


def test_the_priority_class_has_a_quota_where_a_provider_wants_one() -> None:
    quota = manifest("ResourceQuota", "critical-pods")["spec"]
    (scope,) = quota["scopeSelector"]["matchExpressions"]
    assert scope["values"] == [pod_spec()["priorityClassName"]]
    assert int(quota["hard"]["pods"]) > 2 * manifest("Deployment", "gang-scheduler")["spec"]["replicas"]


def test_one_replica_at_a_time_may_go() -> None:
    deployment = manifest("Deployment", "gang-scheduler")
    budget = manifest("PodDisruptionBudget", "gang-scheduler")
    assert deployment["spec"]["replicas"] == 2
    assert budget["spec"] == {"maxUnavailable": 1, "selector": deployment["spec"]["selector"]}
