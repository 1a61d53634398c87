"""Two pods of the Deployment: how are pairs of an extender and a kube-scheduler started, ended and asked who leads?

Each pair has a host name of its own, as a pod has, in a UTS namespace of its own; that needs Linux and util-linux.
"""

import os
import signal
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from e2e import components
from e2e.build import Progress, control_plane_binaries, report_to_stderr
from e2e.cluster import LEADING, Cluster, wait_for
from e2e.processes import Process, figures, free_ports, is_ok

Part = Literal["extender", "scheduler"]
PARTS: tuple[Part, ...] = ("extender", "scheduler")

LEASE_S, RENEW_S, RETRY_S = 6, 4, 1
"""kube-scheduler's own are 15, 10 and 2 s; these keep a test short, and a busy machine from losing the lead."""

START_S = 60.0
LEAD_S = 60.0


class Pair:
    """One pod's two containers."""

    def __init__(self, cluster: "PairedCluster", name: str) -> None:
        self.name = name
        self.processes: dict[Part, Process] = {}
        self._cluster = cluster
        self._verbs, self._probe, self._secure = free_ports(3)

    def start(self, parts: Sequence[Part] = PARTS) -> None:
        """Start these anew, the extender first, each when the one before is ready, as the kubelet does."""
        for part in parts:
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
        """End both as a pod's end does: its sidecar last."""
        for part in reversed(PARTS):
            self.processes[part].stop()

    @property
    def leads(self) -> bool:
        """Whether its extender decides."""
        return figures(f"http://127.0.0.1:{self._probe}/metrics").get(LEADING) == 1

    def _is_ready(self, part: Part) -> bool:
        if part == "extender":
            return is_ok(f"http://127.0.0.1:{self._probe}/readyz")
        return is_ok(f"https://127.0.0.1:{self._secure}/readyz", self._cluster.tls)

    def _extender(self) -> list[str]:
        kubeconfig = self._cluster.service_account_kubeconfig("gang-extender", "gang-extender")
        config = self._cluster.folder / f"extender-{self.name}.yaml"
        config.write_text(components.extender_config(kubeconfig, self._verbs, self._probe), encoding="utf-8")
        return components.extender(config)

    def _scheduler(self) -> list[str]:
        return self._cluster.scheduler_command(self.name, f"127.0.0.1:{self._verbs}", self._secure)


class PairedCluster(Cluster):
    """A control plane with two pairs instead of one; made by `start_pairs`."""

    pairs: tuple[Pair, Pair]

    def start_pairs(self) -> None:
        """Start everything and wait until one pair leads."""
        self.start(None)
        self.apply(*(path.read_text(encoding="utf-8") for path in components.BASE_MANIFESTS))
        self.pairs = Pair(self, "a"), Pair(self, "b")
        for pair in self.pairs:
            pair.start()
        self.leader()

    def leader(self) -> Pair:
        """Return the pair that leads, as soon as one does."""
        (pair, *_) = wait_for(lambda: [pair for pair in self.pairs if pair.leads], LEAD_S, "a pair leads")
        return pair

    def scheduler_command(self, name: str, extender: str, port: int) -> list[str]:
        """Return the command of a kube-scheduler that calls the extender at host:port."""
        kubeconfig = self.service_account_kubeconfig("gang-extender", "gang-scheduler")
        config = self.folder / f"scheduler-{name}.yaml"
        config.write_text(components.gang_scheduler_config(kubeconfig, extender, _election()), encoding="utf-8")
        flags = components.gang_scheduler(self._credentials, kubeconfig, port, config)
        return [str(self._binaries["kube-scheduler"]), *flags]


@contextmanager
def start_pairs(progress: Progress = report_to_stderr) -> Iterator[PairedCluster]:
    """Start a control plane with two pairs, stop all of it and leave nothing; raises BuildError, StartError."""
    binaries = control_plane_binaries(progress)
    with tempfile.TemporaryDirectory(prefix="gang-pairs-") as folder:
        cluster = PairedCluster(Path(folder), binaries, progress)
        began_s = time.monotonic()
        try:
            cluster.start_pairs()
            progress(f"a pair leads after {time.monotonic() - began_s:.1f} s")
            yield cluster
        finally:
            cluster.stop()


def _on_host(name: str, command: Sequence[str]) -> list[str]:
    rights = [] if os.geteuid() == 0 else ["--map-root-user"]
    return ["unshare", "--uts", *rights, "sh", "-c", 'hostname "$0" && exec "$@"', f"pair-{name}", *command]


def _election() -> dict[str, Any]:
    times = {"leaseDuration": f"{LEASE_S}s", "renewDeadline": f"{RENEW_S}s", "retryPeriod": f"{RETRY_S}s"}
    lease = {"resourceName": "gang-scheduler", "resourceNamespace": "gang-extender"}
    return {"leaderElection": {"leaderElect": True, **times, **lease}}
