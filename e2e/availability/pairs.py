"""Two pods of the Deployment: how are they started, ended and asked who leads?

In mode sidecar each is a pair of an extender and a kube-scheduler; in mode service it is an extender, and one
kube-scheduler finds them by a stand-in for a Service. Each pod has a host name of its own, in a UTS namespace of its
own; that needs Linux and util-linux.
"""

import os
import signal
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from e2e import components
from e2e.availability.service import Endpoint, Service
from e2e.build import Progress, control_plane_binaries, report_to_stderr
from e2e.cluster import LEADING, Cluster, wait_for
from e2e.processes import Process, figures, free_ports, is_ok

Part = Literal["extender", "scheduler"]
Mode = Literal["sidecar", "service"]
PARTS: dict[Mode, tuple[Part, ...]] = {"sidecar": ("extender", "scheduler"), "service": ("extender",)}

LEASE_S, RENEW_S, RETRY_S = 6, 4, 1
"""kube-scheduler's own are 15, 10 and 2 s; these keep a test short, and a busy machine from losing the lead."""

_OWN_LEASE = {"mode": "service", "resourceName": "gang-extender", "leaseDurationSeconds": LEASE_S}

START_S = 60.0
LEAD_S = 60.0


class Pair:
    """One pod's containers."""

    def __init__(self, cluster: "PairedCluster", name: str) -> None:
        self.name = name
        self.processes: dict[Part, Process] = {}
        self._cluster = cluster
        self._verbs, self._probe, self._secure = free_ports(3)
        self.endpoint = Endpoint(self._verbs, f"http://127.0.0.1:{self._probe}/readyz")

    def start(self, parts: Sequence[Part] = ()) -> None:
        """Start these anew, or all, the extender first, each when the one before is ready, as the kubelet does."""
        for part in parts or PARTS[self._cluster.mode]:
            if part in self.processes:
                self.processes[part].restart()
            else:
                command = self._extender() if part == "extender" else self._scheduler()
                self.processes[part] = self._cluster.start_process(f"{part}-{self.name}", _on_host(self.name, command))
            wait_for(lambda part=part: self._is_ready(part), START_S, f"{part} of pair {self.name} is ready")  # type: ignore[misc]

    def kill(self, parts: Sequence[Part]) -> None:
        """End these with SIGKILL."""
        for part in parts:
            self.processes[part].kill()

    def signal(self, part: Part, number: signal.Signals) -> None:
        """Send a signal, as SIGSTOP, to one of them."""
        os.killpg(self.processes[part].pid, number)

    def stop(self) -> None:
        """End all as a pod's end does: its sidecar last."""
        for part in reversed(PARTS[self._cluster.mode]):
            self.processes[part].stop()

    def revive(self) -> None:
        """Start again what has ended by itself, as a kube-scheduler does that loses its lease on a busy machine."""
        for part in [part for part, process in self.processes.items() if process.has_ended]:
            self.start((part,))

    @property
    def leads(self) -> bool:
        """Whether its extender decides."""
        return figures(f"http://127.0.0.1:{self._probe}/metrics").get(LEADING) == 1

    def _is_ready(self, part: Part) -> bool:
        if part == "extender":
            return _has_listed(self.endpoint.probe)
        return is_ok(f"https://127.0.0.1:{self._secure}/readyz", self._cluster.tls)

    def _extender(self) -> list[str]:
        kubeconfig = self._cluster.service_account_kubeconfig("gang-extender", "gang-extender")
        config = self._cluster.folder / f"extender-{self.name}.yaml"
        settings = {"leaderElection": _OWN_LEASE} if self._cluster.mode == "service" else None
        text = components.extender_config(kubeconfig, self._verbs, self._probe, settings=settings)
        config.write_text(text, encoding="utf-8")
        return components.extender(config)

    def _scheduler(self) -> list[str]:
        return self._cluster.scheduler_command(self.name, self._verbs, self._secure)


class PairedCluster(Cluster):
    """A control plane with two pairs instead of one; made by `start_pairs`."""

    mode: Mode = "sidecar"
    pairs: tuple[Pair, Pair]

    def start_pairs(self, mode: Mode) -> None:
        """Start everything and wait until one pair leads."""
        self.mode = mode
        self.start(None)
        manifests = [*components.BASE_MANIFESTS, *([components.SERVICE_RIGHTS] if mode == "service" else [])]
        self.apply(*(path.read_text(encoding="utf-8") for path in manifests))
        self.pairs = Pair(self, "a"), Pair(self, "b")
        for pair in self.pairs:
            pair.start()
        if mode == "service":
            service = Service(lambda: [pair.endpoint for pair in self.pairs])
            (port,) = free_ports(1)
            self.start_process("scheduler", self.scheduler_command("only", service.port, port))
        self.leader()

    def leader(self) -> Pair:
        """Return the pair that leads, as soon as one does."""
        (pair, *_) = wait_for(lambda: [pair for pair in self.pairs if pair.leads], LEAD_S, "a pair leads")
        return pair

    def scheduler_command(self, name: str, extender: int, port: int) -> list[str]:
        """Return the command of a kube-scheduler that serves on `port` and calls the extender on this one."""
        kubeconfig = self.service_account_kubeconfig("gang-extender", "gang-scheduler")
        config = self.folder / f"scheduler-{name}.yaml"
        election = _election() if self.mode == "sidecar" else {"leaderElection": {"leaderElect": False}}
        text = components.gang_scheduler_config(kubeconfig, f"127.0.0.1:{extender}", election)
        config.write_text(text, encoding="utf-8")
        flags = components.gang_scheduler(self._credentials, kubeconfig, port, config)
        return [str(self._binaries["kube-scheduler"]), *flags]


@contextmanager
def start_pairs(mode: Mode = "sidecar", progress: Progress = report_to_stderr) -> Iterator[PairedCluster]:
    """Start a control plane with two pairs, stop all of it and leave nothing; raises BuildError, StartError."""
    binaries = control_plane_binaries(progress)
    with tempfile.TemporaryDirectory(prefix="gang-pairs-") as folder:
        cluster = PairedCluster(Path(folder), binaries, progress)
        began_s = time.monotonic()
        try:
            cluster.start_pairs(mode)
            progress(f"a pair leads after {time.monotonic() - began_s:.1f} s")
            yield cluster
        finally:
            cluster.stop()


def _on_host(name: str, command: Sequence[str]) -> list[str]:
    rights = [] if os.geteuid() == 0 else ["--map-root-user"]
    return ["unshare", "--uts", *rights, "sh", "-c", 'hostname "$0" && exec "$@"', f"pair-{name}", *command]


def _has_listed(readyz: str) -> bool:
    """Whether it has listed the cluster, and lacks at most the lead to be ready."""
    try:
        with urllib.request.urlopen(f"{readyz}?verbose", timeout=5) as answer:  # noqa: S310 - our own processes' http
            text = answer.read().decode()
    except urllib.error.HTTPError as error:
        text = error.read().decode()
    except OSError:
        return False
    return "[-]watch" not in text


def _election() -> dict[str, Any]:
    times = {"leaseDuration": f"{LEASE_S}s", "renewDeadline": f"{RENEW_S}s", "retryPeriod": f"{RETRY_S}s"}
    lease = {"resourceName": "gang-scheduler", "resourceNamespace": "gang-extender"}
    return {"leaderElection": {"leaderElect": True, **times, **lease}}
