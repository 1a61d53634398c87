"""The least that kube-scheduler needs to judge pods: etcd, kube-apiserver and itself.

No controllers and no kubelets, so that nothing changes but what we change. Three of the API server's admission plugins
are off, which count on controllers: one taints every new node, one wants ServiceAccounts, one keeps volumes from going.
"""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import yaml

from e2e import components, credentials
from e2e.build import Progress, control_plane_binaries, report_to_stderr
from e2e.cluster import Cluster
from e2e.fidelity.generate import SCHEDULER
from e2e.processes import free_ports, is_ok


class JudgesBench(Cluster):
    """A control plane on which nothing moves by itself; made by `start_bench`."""

    def start_judge(self) -> None:
        """Start it and wait until it is ready; raises StartError."""
        self.recorder_port, port = free_ports(2)
        self._start_binary("etcd", components.etcd(self.folder))
        flags = components.kube_apiserver(self.folder, self._credentials)
        flags.append("--disable-admission-plugins=TaintNodesByCondition,ServiceAccount,StorageObjectInUseProtection")
        self._start_binary("kube-apiserver", flags)
        self._wait_ready({"kube-apiserver": self._api_is_ready})
        kubeconfig = self._credentials.user_kubeconfig(credentials.SCHEDULER)
        config = self.folder / "fidelity-scheduler.yaml"
        config.write_text(_scheduler_config(kubeconfig, self.recorder_port), encoding="utf-8")
        self._start_binary("kube-scheduler", components.gang_scheduler(self._credentials, kubeconfig, port, config))
        self._wait_ready({"kube-scheduler": lambda: is_ok(f"https://127.0.0.1:{port}/readyz", self.tls)})


@contextmanager
def start_bench(progress: Progress = report_to_stderr) -> Iterator[JudgesBench]:
    """Start it, yield when it is ready, stop all of it and leave nothing; raises BuildError, StartError."""
    binaries = control_plane_binaries(progress)
    with tempfile.TemporaryDirectory(prefix="gang-fidelity-") as folder:
        bench = JudgesBench(Path(folder), binaries, progress)
        try:
            bench.start_judge()
            yield bench
        finally:
            bench.stop()


def _scheduler_config(kubeconfig: Path, recorder_port: int) -> str:
    """Return a stock configuration but for the recorder; nothing is preempted, since nothing is ever placed."""
    return yaml.safe_dump(
        {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "clientConnection": {"kubeconfig": str(kubeconfig), "qps": 5000, "burst": 5000},
            "leaderElection": {"leaderElect": False},
            "percentageOfNodesToScore": 100,
            "profiles": [
                {
                    "schedulerName": SCHEDULER,
                    "plugins": {"multiPoint": {"disabled": [{"name": "DefaultPreemption"}]}},
                }
            ],
            "extenders": [
                {
                    "urlPrefix": f"http://127.0.0.1:{recorder_port}",
                    "filterVerb": "filter",
                    "httpTimeout": "30s",
                    "nodeCacheCapable": True,
                }
            ],
        }
    )
