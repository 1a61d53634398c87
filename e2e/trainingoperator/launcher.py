"""How does Kubeflow's own training operator run without a kubelet to mount its certificates?

It generates a serving certificate into a Secret and waits until the Secret's files appear in its folder, which is a
kubelet's work and done here. Its webhook server is never called, as its webhooks are not registered; it listens on
every address because the operator has no setting for that.
"""

import base64
import json
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import yaml

from e2e.build import training_operator_binary
from e2e.cluster import Cluster, Object, wait_for
from e2e.crd import wait_until_served
from e2e.processes import free_port, is_ok

MODULE = "github.com/kubeflow/training-operator"
NAMESPACE = "kubeflow"
SECRET = "training-operator-webhook-cert"  # noqa: S105 - the name of a Secret
JOBS = ("tfjob", "pytorchjob")

_WANTED_KINDS = ("Namespace", "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Secret")

_CERTIFICATE_SEEN = Path("/tmp/k8s-webhook-server/serving-certs/tls.crt")  # noqa: S108 - compiled into the operator
"""The operator waits until this file exists, yet reads its certificate below TMPDIR."""

_READY_S = 40.0  # 3 s are usual; it looks for the file after 1, 3, 7, 15 and 31 s, and later by as much again by chance


def start_training_operator(cluster: Cluster) -> None:
    """Install what Kubeflow's standalone overlay does, start the operator and wait until it is ready."""
    cluster.apply(*_installation(cluster))
    kubeconfig = cluster.service_account_kubeconfig(NAMESPACE, "training-operator")
    temporary = cluster.folder / "training-operator"
    certificates = temporary / "k8s-webhook-server" / "serving-certs"
    certificates.mkdir(parents=True)
    health_address = f"127.0.0.1:{free_port()}"
    command = [
        str(training_operator_binary()),
        f"--kubeconfig={kubeconfig}",
        f"--health-probe-bind-address={health_address}",
        f"--webhook-server-port={free_port()}",
        "--metrics-bind-address=0",
        *(f"--enable-scheme={job}" for job in JOBS),
    ]
    cluster.start_process("training-operator", command, {"TMPDIR": str(temporary)})
    _mount_certificate(cluster, certificates)
    wait_for(lambda: _is_ready(cluster, health_address), _READY_S, "the training operator is ready")
    _forget_certificate()
    for job in JOBS:
        wait_until_served(cluster, "kubeflow.org/v1", f"{job}s")


def _installation(cluster: Cluster) -> Iterator[Object]:
    # Without what a kubelet would run, and without webhooks, which nobody would answer.
    overlay = _module_folder() / "manifests" / "overlays" / "standalone"
    wanted_crds = [f"{job}s.kubeflow.org" for job in JOBS]
    for each in yaml.load_all(cluster.kubectl("kustomize", str(overlay)), Loader=yaml.CSafeLoader):
        if each["kind"] in _WANTED_KINDS or each["metadata"]["name"] in wanted_crds:
            yield each
        elif each["kind"] == "ValidatingWebhookConfiguration":
            yield each | {"webhooks": []}


def _module_folder() -> Path:
    command = ["go", "mod", "download", "-json", MODULE]
    done = subprocess.run(command, cwd=Path(__file__).parent, check=True, capture_output=True)
    return Path(json.loads(done.stdout)["Dir"])


def _mount_certificate(cluster: Cluster, folder: Path) -> None:
    path = f"/api/v1/namespaces/{NAMESPACE}/secrets/{SECRET}"
    data = wait_for(lambda: cluster.api.get(path).get("data"), _READY_S, "the training operator makes its certificate")
    for name, content in data.items():
        (folder / name).write_bytes(base64.b64decode(content))


def _forget_certificate() -> None:
    _CERTIFICATE_SEEN.unlink(missing_ok=True)
    with suppress(OSError):  # not empty, or gone: another control plane is at the same
        _CERTIFICATE_SEEN.parent.rmdir()
        _CERTIFICATE_SEEN.parent.parent.rmdir()


def _is_ready(cluster: Cluster, health_address: str) -> bool:
    cluster.check()
    # Each time, as another control plane's operator may just have become ready and taken it away.
    _CERTIFICATE_SEEN.parent.mkdir(parents=True, exist_ok=True)
    _CERTIFICATE_SEEN.touch()
    return is_ok(f"http://{health_address}/readyz")
