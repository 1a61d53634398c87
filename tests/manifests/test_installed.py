"""Do the real kubectl, kube-apiserver and kube-scheduler take what we give them?"""

import json
import os
import subprocess
from pathlib import Path

import pytest
import yaml

from e2e.authority import Authority
from e2e.build import control_plane_binaries
from e2e.cluster import Cluster, wait_for
from tests.manifests.files import BASE, GPU_ENV, HAMI, HOLD, SCHEDULER_CONFIG, SERVICE, TLS, Object, manifest, manifests

pytestmark = pytest.mark.controlplane

NAMESPACE = "gang-extender"
EXTENDER = "gang-extender"
SCHEDULER = "gang-scheduler"
SECRET = f"/api/v1/namespaces/{NAMESPACE}/secrets/gang-extender-token"


@pytest.fixture(scope="module", params=[BASE, HOLD], ids=["base", "hold"])
def folder(request: pytest.FixtureRequest) -> Path:
    """Return what is installed: filter mode, and hold mode on top of it."""
    folder: Path = request.param
    return folder


@pytest.fixture(scope="module")
def sources(folder: Path) -> list[Object]:
    """Return the objects as the files have them."""
    return manifests() + (manifests(HOLD) if folder == HOLD else [])


@pytest.fixture(scope="module")
def rendered(folder: Path) -> list[Object]:
    """Return what `kubectl apply -k` would send."""
    return list(yaml.safe_load_all(run([control_plane_binaries()["kubectl"], "kustomize", folder])))


def run(command: list[str | Path]) -> str:
    """Return what the command prints; its complaints are shown when it fails."""
    result = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - built by e2e
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_kustomize_changes_no_rule_of_a_role(sources: list[Object], rendered: list[Object]) -> None:
    """It does where a rule names an object that has the name of a generated one."""
    written, installed = (
        {(m["kind"], m["metadata"]["name"]): m["rules"] for m in each if m["kind"] in ("Role", "ClusterRole")}
        for each in (sources, rendered)
    )
    assert len(written) in (3, 4)
    assert installed == written


@pytest.mark.parametrize("beside", [GPU_ENV, HAMI], ids=["gpu-env", "hami"])
def test_what_is_installed_beside_the_base_can_be_rendered(beside: Path) -> None:
    shown = list(yaml.safe_load_all(run([control_plane_binaries()["kubectl"], "kustomize", beside])))
    assert {(m["kind"], m["metadata"]["name"]) for m in shown} == {
        (m["kind"], m["metadata"]["name"]) for m in manifests(beside)
    }
    assert all(m["metadata"]["labels"]["app.kubernetes.io/name"] == "gang-extender" for m in shown)


def test_a_changed_configuration_starts_new_pods(rendered: list[Object]) -> None:
    """The ConfigMaps have the hash of their content in the name, and the Deployment follows."""
    maps = {m["metadata"]["name"]: m["data"] for m in rendered if m["kind"] == "ConfigMap"}
    (deployment,) = (m for m in rendered if m["kind"] == "Deployment")
    volumes = deployment["spec"]["template"]["spec"]["volumes"]

    assert {volume["configMap"]["name"] for volume in volumes if "configMap" in volume} == maps.keys()
    assert {key: text for data in maps.values() for key, text in data.items()} == {
        "config.yaml": (BASE / "config.yaml").read_text(),
        "dedicated.yaml": (SCHEDULER_CONFIG / "dedicated.yaml").read_text(),
    }


@pytest.fixture
def with_tls(tmp_path: Path) -> Path:
    """Return an overlay with mutual TLS, as users write one."""
    base, tls = (os.path.relpath(folder, tmp_path) for folder in (BASE, TLS))
    (tmp_path / "kustomization.yaml").write_text(yaml.safe_dump({"resources": [base], "components": [tls]}))
    return tmp_path


def test_with_tls_both_configurations_are_replaced_and_the_secrets_mounted(cluster: Cluster, with_tls: Path) -> None:
    rendered = list(yaml.safe_load_all(run([control_plane_binaries()["kubectl"], "kustomize", with_tls])))
    maps = {key: text for m in rendered if m["kind"] == "ConfigMap" for key, text in m["data"].items()}
    assert maps == {name: (TLS / name).read_text() for name in ("config.yaml", "dedicated.yaml")}

    (deployment,) = (m for m in rendered if m["kind"] == "Deployment")
    spec: Object = deployment["spec"]["template"]["spec"]
    secrets = {volume["secret"]["secretName"] for volume in spec["volumes"] if "secret" in volume}
    assert secrets == {"gang-extender-token", "gang-extender-tls", "gang-scheduler-tls"}
    assert [len(c["volumeMounts"]) for c in (*spec["initContainers"], *spec["containers"])] == [3, 3]
    command = ("apply", "--server-side", "--force-conflicts", "--dry-run=server", "--validate=strict", "-k")
    assert len(cluster.kubectl(*command, str(with_tls), "-o", "name").splitlines()) == len(rendered)
    assert try_pod(cluster, spec) == "pod/one-replica\n"


def test_service_mode_has_its_own_configurations_and_no_token_that_lasts() -> None:
    rendered = list(yaml.safe_load_all(run([control_plane_binaries()["kubectl"], "kustomize", SERVICE])))
    maps = {key: text for m in rendered if m["kind"] == "ConfigMap" for key, text in m["data"].items()}
    assert maps == {name: (SERVICE / name).read_text() for name in ("config.yaml", "dedicated.yaml")}
    assert [m for m in rendered if m["kind"] == "Secret"] == []
    containers = {
        m["metadata"]["name"]: [c["name"] for c in m["spec"]["template"]["spec"]["containers"]]
        for m in rendered
        if m["kind"] == "Deployment"
    }
    assert containers == {"gang-scheduler": ["kube-scheduler"], "gang-extender": ["extender"]}


def test_every_object_says_what_it_belongs_to(sources: list[Object], rendered: list[Object]) -> None:
    assert len(rendered) == len(sources) + 2
    assert {m["metadata"]["labels"]["app.kubernetes.io/name"] for m in rendered} == {"gang-extender"}


def test_the_api_server_takes_all_of_it(cluster: Cluster, folder: Path, rendered: list[Object]) -> None:
    command = (
        "apply",
        "--server-side",
        "--force-conflicts",
        "--dry-run=server",
        "--validate=strict",
        "-k",
        str(folder),
    )
    said = cluster.kubectl(*command, "-o", "name").splitlines()
    assert sorted(name.partition("/")[2] for name in said) == sorted(m["metadata"]["name"] for m in rendered)


def test_the_pods_pass_the_strictest_security_profile_and_others_do_not(
    cluster: Cluster, rendered: list[Object]
) -> None:
    (deployment,) = (m for m in rendered if m["kind"] == "Deployment")
    spec: Object = deployment["spec"]["template"]["spec"]

    assert try_pod(cluster, spec) == "pod/one-replica\n"
    with pytest.raises(subprocess.CalledProcessError) as refusal:
        try_pod(cluster, spec | {"hostNetwork": True})
    assert "violates PodSecurity" in refusal.value.stderr


def try_pod(cluster: Cluster, spec: Object) -> str:
    """Have the API server admit such a pod without keeping it."""
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "one-replica", "namespace": NAMESPACE}, "spec": spec}
    return cluster.kubectl("create", "--dry-run=server", "-o", "name", "-f", "-", stdin=json.dumps(pod))


def test_the_secret_is_filled_with_a_token_of_the_extender(cluster: Cluster) -> None:
    cluster.apply(manifest("Secret", "gang-extender-token"))
    data = wait_for(lambda: cluster.api.get(SECRET).get("data"), deadline_s=10, why="the token controller fills it")
    assert data.keys() == {"ca.crt", "namespace", "token"}


@pytest.mark.parametrize(
    ("who", "verb", "what", "allowed"),
    [
        (EXTENDER, "create", {"resource": "pods", "subresource": "binding"}, True),
        (EXTENDER, "patch", {"resource": "pods", "subresource": "status"}, True),
        (EXTENDER, "watch", {"resource": "nodes"}, True),
        (EXTENDER, "create", {"group": "events.k8s.io", "resource": "events"}, True),
        (EXTENDER, "patch", {"resource": "pods"}, False),
        (EXTENDER, "delete", {"resource": "pods"}, False),
        (EXTENDER, "create", {"resource": "pods"}, False),
        (EXTENDER, "get", {"resource": "secrets"}, False),
        (EXTENDER, "patch", {"resource": "nodes"}, False),
        (EXTENDER, "update", {"group": "coordination.k8s.io", "resource": "leases", "name": SCHEDULER}, False),
        (SCHEDULER, "update", {"group": "coordination.k8s.io", "resource": "leases", "name": SCHEDULER}, True),
        (SCHEDULER, "create", {"group": "coordination.k8s.io", "resource": "leases"}, True),
        (SCHEDULER, "delete", {"resource": "pods"}, True),
        (SCHEDULER, "list", {"resource": "persistentvolumes"}, True),
        (SCHEDULER, "get", {"resource": "secrets"}, False),
        (SCHEDULER, "patch", {"resource": "nodes"}, False),
    ],
)
def test_the_api_server_allows_what_is_needed_and_refuses_the_rest(
    cluster: Cluster, who: str, verb: str, what: dict[str, str], *, allowed: bool
) -> None:
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {
            "user": f"system:serviceaccount:{NAMESPACE}:{who}",
            "resourceAttributes": {"namespace": NAMESPACE, "verb": verb} | what,
        },
    }
    answer = cluster.api.create("/apis/authorization.k8s.io/v1/subjectaccessreviews", review)
    assert answer["status"]["allowed"] is allowed


@pytest.mark.parametrize("file", ["dedicated.yaml", "shared.yaml"])
def test_kube_scheduler_reads_its_configuration_as_it_is_written(file: str, tmp_path: Path) -> None:
    """Strict decoding and validation; the settings come back with the defaults of this version filled in."""
    written = read_by_kube_scheduler(yaml.safe_load((SCHEDULER_CONFIG / file).read_text()), tmp_path)
    assert [entry["httpTimeout"] for entry in written["extenders"][:2]] == ["2s", "1m30s"]
    assert "gang-scheduler" in [profile["schedulerName"] for profile in written["profiles"]]


def test_kube_scheduler_reads_its_configuration_with_tls_and_the_secret(tmp_path: Path) -> None:
    authority = Authority("any")
    authority.client("system:kube-scheduler").write(tmp_path / "gang-scheduler-tls", authority.certificate)
    text = (TLS / "dedicated.yaml").read_text().replace("/etc/", f"{tmp_path}/")
    written = read_by_kube_scheduler(yaml.safe_load(text), tmp_path)
    assert [entry["enableHTTPS"] for entry in written["extenders"]] == [True] * 3
    assert {entry["tlsConfig"]["serverName"] for entry in written["extenders"]} == {"gang-extender.gang-extender.svc"}


def test_kube_scheduler_refuses_a_name_that_two_entries_manage(tmp_path: Path) -> None:
    """Which is why shared.yaml asks for two marks."""
    config = yaml.safe_load((SCHEDULER_CONFIG / "shared.yaml").read_text())
    loop, binding, _ = config["extenders"]
    binding["managedResources"] = loop["managedResources"]
    with pytest.raises(AssertionError, match="duplicate extender managed resource name"):
        read_by_kube_scheduler(config, tmp_path)


def read_by_kube_scheduler(config: Object, folder: Path) -> Object:
    """Return the configuration as kube-scheduler understood it; it is told of a server that is never asked."""
    kubeconfig, given, written = folder / "kubeconfig", folder / "given.yaml", folder / "written.yaml"
    nowhere = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "nowhere", "cluster": {"server": "https://127.0.0.1:1"}}],
        "contexts": [{"name": "nowhere", "context": {"cluster": "nowhere"}}],
        "current-context": "nowhere",
    }
    kubeconfig.write_text(yaml.safe_dump(nowhere))
    config["clientConnection"]["kubeconfig"] = str(kubeconfig)
    given.write_text(yaml.safe_dump(config))
    program = control_plane_binaries()["kube-scheduler"]
    run([program, f"--config={given}", f"--write-config-to={written}", "--secure-port=0"])
    result: Object = yaml.safe_load(written.read_text())
    return result
