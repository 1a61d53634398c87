"""A whole real control plane on this machine: how is it started, asked and stopped?

    with start_cluster() as cluster:
        cluster.add_node("gpu-0", gpus=1)
        jobs = cluster.namespace("jobs")
        jobs.apply(Path("job.yaml").read_text())
        wait_for(lambda: jobs.running("app=worker"), deadline_s=10, why="a worker runs")
        print(cluster.kubectl("get", "pods", "-n", jobs.name), jobs.describe_pod("worker-0"))

Real: etcd, kube-apiserver, kube-controller-manager, a kube-scheduler for `default-scheduler`, and as their own
ServiceAccounts with the RBAC of manifests/ the kube-scheduler of scheduler-config/dedicated.yaml and the extender.
Stand-ins: kwok for the nodes, e2e/kubelet.py for what kubelets do with pods.
"""

import functools
import os
import ssl
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote, urlsplit

from e2e import components, credentials
from e2e.build import Progress, control_plane_binaries, report_to_stderr
from e2e.client import ApiClient, ApiError, Object, parse_objects
from e2e.nodes import completed, is_usable, make_node
from e2e.processes import DeadlineExceededError, Process, StartError, figures, free_ports, is_ok, wait_for

__all__ = ["Cluster", "DeadlineExceededError", "Mode", "Namespace", "Object", "StartError", "start_cluster", "wait_for"]

EXTENDER = "extender"
GANG_SCHEDULER = "gang-scheduler"
LEADING = "gang_extender_leading"

Mode = Literal["filter", "hold"]
"""How pods wait that may not run yet: turned away by the filter verb, or held by a scheduling gate."""

_START_S = 50.0  # 8 s are usual on two idle cores
_LONGEST_FOLDER = 92  # a socket's path has at most 103 characters on macOS and 107 on Linux
_NODE_READY_S = 20.0
_TOKEN_S = 30 * 24 * 3600  # nobody renews it, and `up` may stay up for long


@contextmanager
def start_cluster(
    *, with_extender: bool = True, mode: Mode = "filter", progress: Progress = report_to_stderr
) -> Iterator["Cluster"]:
    """Build what is missing, start everything, yield when all is ready; stop all of it and leave nothing.

    Without the extender its kube-scheduler is left out as well: the plain control plane. In mode `hold` the policy of
    manifests/hold gives pods the scheduling gate. Raises BuildError, StartError.
    """
    binaries = control_plane_binaries(progress)
    with tempfile.TemporaryDirectory(prefix="gang-e2e-") as folder:
        if len(folder) > _LONGEST_FOLDER:
            raise StartError(f"{folder}: too long for the path of a socket; set TMPDIR to a shorter path")
        cluster = Cluster(Path(folder), binaries, progress)
        try:
            cluster.start(mode if with_extender else None)
            yield cluster
        finally:
            cluster.stop()


class Cluster:
    """A control plane; made by `start_cluster`."""

    def __init__(self, folder: Path, binaries: Mapping[str, Path], progress: Progress) -> None:
        self.folder = folder
        self.processes: dict[str, Process] = {}
        self._binaries = binaries
        self._progress = progress
        self.logs = folder / "logs"
        self.logs.mkdir()
        server, self._extender, self._probe, *self._ports = free_ports(6)
        self.api_url = f"https://127.0.0.1:{server}"
        self._credentials = credentials.Credentials(folder, self.api_url)
        self.kubeconfig = self._credentials.user_kubeconfig(credentials.ADMIN)
        self.api = ApiClient.from_kubeconfig(self.kubeconfig)
        self.extender_url = f"http://127.0.0.1:{self._extender}"
        self.probe_url = f"http://127.0.0.1:{self._probe}"
        self._api_seen_by_extender = ""
        self._extender_seen_by_scheduler = f"127.0.0.1:{self._extender}"

    @functools.cached_property
    def tls(self) -> ssl.SSLContext:
        """What the API server, the kube-schedulers and kube-controller-manager are known by."""
        return ssl.create_default_context(cafile=self._credentials.certificate)

    # Life cycle

    def start(self, mode: "Mode | None") -> None:
        """Start everything, the extender only in a mode, and wait until it is ready; raises StartError."""
        started_s = time.monotonic()
        self._start_binary("etcd", components.etcd(self.folder))
        self._start_binary("kube-apiserver", components.kube_apiserver(self.folder, self._credentials))
        self._wait_ready({"kube-apiserver": self._api_is_ready})
        probes = self._start_components()
        if mode is not None:
            probes |= self._start_gang_scheduling()
        if mode == "hold":
            probes |= self._hold_pods()
        self._wait_ready(probes)
        self._progress(f"the control plane is ready after {time.monotonic() - started_s:.1f} s")

    def stop(self) -> None:
        """End all processes, each before those that it needs: kube-apiserver hangs once etcd is gone."""
        self.api.close()
        for process in reversed(self.processes.values()):
            process.stop()

    def log_tail(self, name: str, lines: int = 30) -> str:
        """Return the last lines of a process's log."""
        return self.processes[name].log_tail(lines)

    def check(self) -> None:
        """Raise StartError if a process has ended by itself."""
        for process in self.processes.values():
            process.check()

    def start_process(self, name: str, command: Sequence[str], env: Mapping[str, str] | None = None) -> Process:
        """Start one more process of this cluster, such as an operator: logged in its folder, stopped with it."""
        process = Process(name, command, self.logs / f"{name}.log", env)
        self.processes[name] = process
        return process

    def restart_extender(
        self, gangs: Mapping[str, Any] | None = None, settings: Mapping[str, Any] | None = None
    ) -> None:
        """Start the extender anew with these settings (`gangs`: of that section) and wait until it is ready."""
        self._write_extender_config(gangs, settings)
        self.processes[EXTENDER].restart()
        self._wait_ready({EXTENDER: self._extender_is_ready})

    def restart_gang_scheduler(self, settings: Mapping[str, Any] | None = None, flags: Sequence[str] = ()) -> None:
        """Start the extender's kube-scheduler anew, these settings in its file and these flags behind its own."""
        process = self.processes[GANG_SCHEDULER]
        process.stop()
        # Else it would wait until the lease of the one before it is over.
        self.api.delete("/apis/coordination.k8s.io/v1/namespaces/gang-extender/leases/gang-scheduler")
        process.command = [*self._gang_scheduler_command(settings), *flags]
        process.restart()
        self._wait_ready({GANG_SCHEDULER: self._gang_scheduler_is_ready})

    def reroute(self, api: str, verbs: str) -> None:
        """Let the extender find the API server at this URL, and kube-scheduler the extender at that; restart both.

        The extender last, since it waits for its kube-scheduler to be elected.
        """
        self._api_seen_by_extender, self._extender_seen_by_scheduler = api, urlsplit(verbs).netloc
        self.restart_gang_scheduler()
        self.restart_extender()

    def revive(self, name: str) -> float:
        """Start a process that was killed as it was before, wait until it serves and return how long that took."""
        began_s = time.monotonic()
        self.processes[name].restart()
        self._wait_ready({name: self._probe_of(name)})
        return time.monotonic() - began_s

    def wait_serving(self, name: str) -> None:
        """Wait until a process that was paused serves; start it again, as its pod would be, where it gave itself up."""
        process, serves = self.processes[name], self._probe_of(name)
        since_s = time.monotonic()
        while time.monotonic() < since_s + 1.0:  # who has lost the lease answers for a moment more, and ends then
            if process.has_ended:
                process.restart()
            since_s = since_s if serves() else time.monotonic()
            time.sleep(0.05)

    def set_mode(self, mode: "Mode") -> None:
        """Let pods wait that way from now on, and wait until the API server does so."""
        is_held = mode == "hold"
        for obj in parse_objects(*(path.read_text(encoding="utf-8") for path in components.HOLD_MANIFESTS)):
            if is_held:
                self.api.apply(obj)
            else:
                self.api.delete(self.api.path_of(obj))
        wait_for(lambda: self._are_pods_held() == is_held, _START_S, f"pods are made as in mode {mode}")

    def service_account_kubeconfig(self, namespace: str, name: str, server: str = "") -> Path:
        """Return a kubeconfig with a token of this ServiceAccount, which must exist, for this server if not our own."""
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token"
        request = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"expirationSeconds": _TOKEN_S},
        }
        token = self.api.create(path, request)["status"]["token"]
        return self._credentials.kubeconfig(f"{namespace}-{name}{urlsplit(server).port or ''}", token, server)

    # What scenarios do

    def kubectl(self, *args: str, stdin: str = "") -> str:
        """Return what kubectl prints, as admin; raises CalledProcessError, with its standard error as a note."""
        command = [str(self._binaries["kubectl"]), f"--cache-dir={self.folder / 'kubectl-cache'}", *args]
        env = os.environ | {"KUBECONFIG": str(self.kubeconfig)}
        try:
            done = subprocess.run(command, input=stdin, env=env, check=True, capture_output=True, text=True)
        except subprocess.CalledProcessError as error:
            error.add_note(error.stderr)
            raise
        return done.stdout

    def apply(self, *objects: Object | str, namespace: str = "") -> None:
        """Apply dicts and YAML streams; `namespace` is for namespaced objects that name none. Raises ApiError."""
        for obj in parse_objects(*objects):
            self.api.apply(obj, namespace)

    def namespace(self, name: str) -> "Namespace":
        """Make a namespace in which pods can be created."""
        self.api.create("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        account = f"/api/v1/namespaces/{name}/serviceaccounts/default"
        wait_for(lambda: self.api.find(account), deadline_s=20, why=f"namespace {name} has its default ServiceAccount")
        return Namespace(self, name)

    def add_node(self, name: str, gpus: int = 0, **offer: Any) -> None:
        """Add a node of `e2e.nodes.make_node` and wait until pods may be placed there."""
        self.add_nodes([make_node(name, gpus, **offer)])

    def add_nodes(self, nodes: Sequence[Object]) -> None:
        """Add Node objects and wait until pods may be placed on them; raises ApiError, which names the node."""
        names = {node["metadata"]["name"] for node in nodes}
        for node in nodes:
            try:
                self.api.create("/api/v1/nodes", completed(node))
            except ApiError as error:
                raise ApiError(error.status, f"node {node['metadata']['name']}: {error.message}") from error
        wait_for(lambda: names <= self._usable_nodes(), _NODE_READY_S, f"kwok makes the nodes {sorted(names)} Ready")

    def delete_node(self, name: str) -> None:
        """Delete a node; its pods stay until the garbage collector finds them."""
        self.api.delete(f"/api/v1/nodes/{name}")

    def delete_nodes(self) -> None:
        """Delete all nodes."""
        self.api.delete("/api/v1/nodes")

    @property
    def gang_scheduler_url(self) -> str:
        """Where the extender's kube-scheduler serves its own state."""
        return f"https://127.0.0.1:{self._ports[2]}"

    @property
    def extender_settings(self) -> Path:
        """The extender's configuration file."""
        return self._extender_config

    # Parts

    def _usable_nodes(self) -> set[str]:
        return {node["metadata"]["name"] for node in self.api.get("/api/v1/nodes")["items"] if is_usable(node)}

    def _start_binary(self, binary: str, flags: Sequence[str], name: str = "") -> None:
        self.start_process(name or binary, [str(self._binaries[binary]), *flags])

    def _start_components(self) -> dict[str, Callable[[], bool]]:
        """Start what needs nothing but the API server and return how each is found ready."""
        controllers, scheduler, _ = self._ports
        kubeconfig = self._credentials.user_kubeconfig
        as_controllers, as_scheduler = kubeconfig(credentials.CONTROLLER_MANAGER), kubeconfig(credentials.SCHEDULER)
        as_nodes = kubeconfig(credentials.NODES)
        self._start_binary(
            "kube-controller-manager",
            components.kube_controller_manager(self._credentials, as_controllers, controllers),
        )
        self._start_binary("kube-scheduler", components.default_scheduler(self._credentials, as_scheduler, scheduler))
        self._start_binary("kwok", components.kwok(as_nodes))
        self.start_process("kubelet-stand-in", components.kubelet_stand_in(as_nodes))
        default_account = "/api/v1/namespaces/default/serviceaccounts/default"
        return {
            "kube-controller-manager": lambda: self.api.find(default_account) is not None,
            "kube-scheduler": lambda: is_ok(f"https://127.0.0.1:{scheduler}/readyz", self.tls),
        }

    def _start_gang_scheduling(self) -> dict[str, Callable[[], bool]]:
        """Start the extender and its kube-scheduler as manifests/ would."""
        self.apply(*(path.read_text(encoding="utf-8") for path in components.BASE_MANIFESTS))
        self._write_extender_config()
        self.start_process(EXTENDER, components.extender(self._extender_config))
        self.start_process(GANG_SCHEDULER, self._gang_scheduler_command())
        return {EXTENDER: self._extender_is_ready, GANG_SCHEDULER: self._gang_scheduler_is_ready}

    def _gang_scheduler_command(self, settings: Mapping[str, Any] | None = None) -> list[str]:
        kubeconfig = self.service_account_kubeconfig("gang-extender", "gang-scheduler")
        config = self.folder / "gang-scheduler.yaml"
        text = components.gang_scheduler_config(kubeconfig, self._extender_seen_by_scheduler, settings)
        config.write_text(text, encoding="utf-8")
        flags = components.gang_scheduler(self._credentials, kubeconfig, self._ports[2], config)
        return [str(self._binaries["kube-scheduler"]), *flags]

    def _gang_scheduler_is_ready(self) -> bool:
        return is_ok(f"https://127.0.0.1:{self._ports[2]}/readyz", self.tls)

    def _hold_pods(self) -> dict[str, Callable[[], bool]]:
        self.apply(*(path.read_text(encoding="utf-8") for path in components.HOLD_MANIFESTS))
        return {"the policy of hold mode": self._are_pods_held}

    def _are_pods_held(self) -> bool:
        spec = {"schedulerName": GANG_SCHEDULER, "containers": [{"name": "main", "image": "none"}]}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "probe"}, "spec": spec}
        try:
            made = self.api.create("/api/v1/namespaces/default/pods", pod, dry_run=True)
        except ApiError:  # the namespace has no default ServiceAccount yet
            return False
        return "schedulingGates" in made["spec"]

    @property
    def _extender_config(self) -> Path:
        return self.folder / "gang-extender.yaml"

    def _write_extender_config(
        self, gangs: Mapping[str, Any] | None = None, settings: Mapping[str, Any] | None = None
    ) -> None:
        kubeconfig = self.service_account_kubeconfig("gang-extender", "gang-extender", self._api_seen_by_extender)
        text = components.extender_config(kubeconfig, self._extender, self._probe, gangs, settings)
        self._extender_config.write_text(text, encoding="utf-8")

    def _probe_of(self, name: str) -> Callable[[], bool]:
        of_api = self._api_is_ready  # which asks etcd as well
        return {
            "etcd": of_api,
            "kube-apiserver": of_api,
            EXTENDER: self._extender_is_ready,
            GANG_SCHEDULER: self._gang_scheduler_is_ready,
        }[name]

    def _api_is_ready(self) -> bool:
        # The key is written after the certificate, which is then whole.
        return self._credentials.key.exists() and is_ok(f"{self._credentials.server}/readyz", self.tls)

    def _extender_is_ready(self) -> bool:
        """Whether it decides; its kube-scheduler must have been elected for that."""
        return is_ok(f"{self.probe_url}/readyz") and figures(f"{self.probe_url}/metrics").get(LEADING) == 1

    def _wait_ready(self, probes: Mapping[str, Callable[[], bool]]) -> None:
        waiting = dict(probes)
        end_s = time.monotonic() + _START_S
        while waiting:
            self.check()
            for name in [name for name, is_ready in waiting.items() if is_ready()]:
                del waiting[name]
                self._progress(f"{name} is ready")
            if waiting and time.monotonic() >= end_s:
                tails = (f"Last log lines of {name}:\n{self.processes[name].log_tail()}" for name in waiting)
                raise StartError("\n".join([f"not ready within {_START_S:g} s: {', '.join(waiting)}", *tails]))
            time.sleep(0.05)
        self.check()


class Namespace:
    """One namespace, as scenarios see it; made by `Cluster.namespace`."""

    def __init__(self, cluster: Cluster, name: str) -> None:
        self.cluster = cluster
        self.name = name
        self.path = f"/api/v1/namespaces/{name}"

    def apply(self, *objects: Object | str) -> None:
        """Apply dicts and YAML streams here."""
        self.cluster.apply(*objects, namespace=self.name)

    def pods(self, selector: str = "") -> list[Object]:
        """Return the pods that match the label selector, by creation and then name."""
        items: list[Object] = self.cluster.api.get(f"{self.path}/pods?labelSelector={quote(selector)}")["items"]
        return sorted(items, key=lambda pod: (pod["metadata"]["creationTimestamp"], pod["metadata"]["name"]))

    def pod(self, name: str) -> Object | None:
        """Return this pod, or None when there is none."""
        return self.cluster.api.find(f"{self.path}/pods/{name}")

    def running(self, selector: str = "") -> list[str]:
        """Return the names of the pods in phase Running."""
        return [pod["metadata"]["name"] for pod in self.pods(selector) if pod["status"]["phase"] == "Running"]

    def events(self, pod: str) -> list[Object]:
        """Return the events about this pod, oldest first."""
        path = f"{self.path}/events?fieldSelector=involvedObject.kind%3DPod,involvedObject.name%3D{pod}"
        items: list[Object] = self.cluster.api.get(path)["items"]
        return sorted(items, key=lambda event: event["metadata"]["creationTimestamp"])

    def describe_pod(self, name: str) -> str:
        """Return what `kubectl describe pod` says."""
        return self.cluster.kubectl("describe", "pod", name, "-n", self.name)

    def delete_pod(self, name: str) -> None:
        """Begin the deletion of this pod, as `kubectl delete --wait=false` does."""
        self.cluster.api.delete(f"{self.path}/pods/{name}")

    def delete(self) -> None:
        """Delete the namespace and wait until its pods are gone; the rest is left to the namespace controller."""
        self.cluster.api.delete(self.path)
        self.cluster.api.delete(f"{self.path}/pods", grace_period_s=0)
        wait_for(lambda: not self.pods(), deadline_s=20, why=f"the pods of namespace {self.name} are gone")
