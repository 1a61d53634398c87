"""With which flags does each component run?

As in a production cluster where it matters to scheduling (admission, RBAC, node taints, garbage collection, both
kube-schedulers' settings); everything else is chosen for a quick start on loopback.
"""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

from e2e.build import CONTROL_PLANE
from e2e.credentials import Credentials

_REPOSITORY = Path(__file__).parent.parent
DEDICATED_SCHEDULER = _REPOSITORY / "scheduler-config" / "dedicated.yaml"
_EXTENDER_SETTINGS = _REPOSITORY / "manifests" / "base" / "config.yaml"

BASE_MANIFESTS = [
    _REPOSITORY / "manifests" / "base" / f"{name}.yaml" for name in ("namespace", "serviceaccounts", "rbac")
]
SERVICE_RIGHTS = _REPOSITORY / "manifests" / "service" / "rbac.yaml"
HOLD_RIGHTS = _REPOSITORY / "manifests" / "hold" / "rbac.yaml"
HOLD_MANIFESTS = [_REPOSITORY / "manifests" / "hold" / "policy.yaml", HOLD_RIGHTS]


def etcd(folder: Path) -> list[str]:
    """Run etcd on a socket in our folder: it asks nobody who they are, and loopback ports are everybody's."""
    nowhere = "http://127.0.0.1:0"  # must have a host and a port; nobody joins or looks it up
    return [
        f"--data-dir={folder / 'etcd'}",
        f"--listen-client-urls=unix://{folder}/etcd.sock",
        f"--listen-peer-urls=unix://{folder}/peer.sock",
        f"--advertise-client-urls={nowhere}",
        f"--initial-advertise-peer-urls={nowhere}",
        f"--initial-cluster=default={nowhere}",
        "--unsafe-no-fsync",  # the data need not survive the machine
        "--log-level=warn",
    ]


def kube_apiserver(folder: Path, credentials: Credentials) -> list[str]:
    """Serve with TLS and RBAC on; no audit log, which is off without a policy."""
    return [
        f"--etcd-servers=unix://{folder}/etcd.sock",
        "--bind-address=127.0.0.1",
        "--advertise-address=127.0.0.1",
        f"--secure-port={urlsplit(credentials.server).port}",
        "--endpoint-reconciler-type=none",  # an Endpoints object must not hold a loopback address
        f"--cert-dir={credentials.cert_dir}",
        f"--token-auth-file={credentials.tokens_file}",
        "--authorization-mode=RBAC",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={credentials.key}",
        f"--service-account-signing-key-file={credentials.key}",
        "--service-cluster-ip-range=10.0.0.0/24",
        # Kubernetes' own PodGroups, which are alpha. Served, and that is all: no kube-scheduler here has its own gang
        # scheduling switched on, which would compete with ours.
        "--feature-gates=GenericWorkload=true",
        "--runtime-config=scheduling.k8s.io/v1alpha2=true",
    ]


def _serving(credentials: Credentials, kubeconfig: Path, port: int) -> list[str]:
    return [
        "--bind-address=127.0.0.1",
        f"--secure-port={port}",
        f"--tls-cert-file={credentials.certificate}",
        f"--tls-private-key-file={credentials.key}",
        # Who may read /metrics is asked as the component itself.
        f"--authentication-kubeconfig={kubeconfig}",
        f"--authorization-kubeconfig={kubeconfig}",
    ]


def kube_controller_manager(credentials: Credentials, kubeconfig: Path, port: int) -> list[str]:
    """Run all default controllers, the node life cycle's as well: kwok renews the nodes' leases."""
    return [
        f"--kubeconfig={kubeconfig}",
        *_serving(credentials, kubeconfig, port),
        "--leader-elect=false",
        "--use-service-account-credentials=true",
        f"--root-ca-file={credentials.certificate}",
        f"--service-account-private-key-file={credentials.key}",
    ]


def default_scheduler(credentials: Credentials, kubeconfig: Path, port: int) -> list[str]:
    """Run a kube-scheduler as it comes, for schedulerName default-scheduler."""
    return [f"--kubeconfig={kubeconfig}", *_serving(credentials, kubeconfig, port), "--leader-elect=false"]


def gang_scheduler(credentials: Credentials, kubeconfig: Path, port: int, config: Path) -> list[str]:
    """Run the kube-scheduler of the repository's own configuration."""
    return [f"--config={config}", *_serving(credentials, kubeconfig, port)]


def gang_scheduler_config(kubeconfig: Path, extender: str, settings: Mapping[str, Any] | None = None) -> str:
    """Return the repository's file with other addresses and these settings; `extender` is host:port."""
    config: dict[str, Any] = yaml.safe_load(DEDICATED_SCHEDULER.read_text(encoding="utf-8"))
    config |= settings or {}
    config["clientConnection"]["kubeconfig"] = str(kubeconfig)
    for entry in config["extenders"]:
        entry["urlPrefix"] = urlsplit(entry["urlPrefix"])._replace(netloc=extender).geturl()
    return yaml.safe_dump(config)


def extender(config: Path) -> list[str]:
    """Run the extender, by this interpreter."""
    return [sys.executable, "-m", "extender.cli.gang_extender", "serve", "--config", str(config)]


def extender_config(
    kubeconfig: Path,
    port: int,
    probe_port: int,
    gangs: Mapping[str, Any] | None = None,
    settings: Mapping[str, Any] | None = None,
) -> str:
    """Return the repository's file with other addresses and these settings; `gangs` replaces that section."""
    config: dict[str, Any] = yaml.safe_load(_EXTENDER_SETTINGS.read_text(encoding="utf-8"))
    addresses = {"port": port, "probePort": probe_port, "probeAddress": "127.0.0.1"}
    config |= {"kubeconfig": str(kubeconfig), "server": config.get("server", {}) | addresses}
    config |= settings or {}
    if gangs is not None:
        config["gangs"] = dict(gangs)
    return yaml.safe_dump(config)


def kwok(kubeconfig: Path) -> list[str]:
    """Run kwok for the nodes only."""
    return [
        f"--kubeconfig={kubeconfig}",
        f"--config={CONTROL_PLANE / 'kwok.yaml'}",
        "--manage-all-nodes=true",
        "--node-lease-duration-seconds=40",  # a kubelet's default
    ]


def kubelet_stand_in(kubeconfig: Path) -> list[str]:
    """Run our stand-in for the pods."""
    return [sys.executable, "-m", "e2e", "kubelet-stand-in", "--kubeconfig", str(kubeconfig)]
