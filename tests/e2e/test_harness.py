"""Is the control plane that the scenarios run on a true one, and does it leave nothing behind?"""

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from e2e.client import ApiClient, ApiError, Object
from e2e.cluster import Cluster, Namespace, StartError, start_cluster, wait_for
from e2e.kubelet import attend
from extender.apiserver import connect

CONTROL_PLANE = ["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl", "kwok"]


def pod(name: str, **spec: Any) -> Object:
    containers = [{"name": "main", "image": "none"}]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {"containers": containers, **spec}}


def test_the_api_server_says_which_version_it_is(cluster: Cluster) -> None:
    assert not cluster.api.get("/version")["gitVersion"].startswith("v0")


@pytest.mark.parametrize("scheduler", ["default-scheduler", "gang-scheduler"])
def test_a_pod_runs_by_either_scheduler(cluster: Cluster, namespace: Namespace, scheduler: str) -> None:
    cluster.add_node("node-0")

    namespace.apply(pod("single", schedulerName=scheduler))

    wait_for(namespace.running, deadline_s=10, why="the pod runs")
    assert f"{scheduler}  Successfully assigned" in namespace.describe_pod("single")


def test_a_running_pod_is_ready_with_its_sidecars_and_done_with_its_init_containers(
    cluster: Cluster, namespace: Namespace
) -> None:
    cluster.add_node("node-0")

    sidecar = {"name": "sidecar", "image": "none", "restartPolicy": "Always"}
    namespace.apply(pod("whole", initContainers=[{"name": "init", "image": "none"}, sidecar]))

    wait_for(namespace.running, deadline_s=10, why="the pod runs")
    status = namespace.pods()[0]["status"]
    assert {each["type"]: each["status"] for each in status["conditions"]} == dict.fromkeys(
        ["PodScheduled", "PodReadyToStartContainers", "Initialized", "ContainersReady", "Ready"], "True"
    )
    states = {
        each["name"]: list(each["state"]) for each in status["initContainerStatuses"] + status["containerStatuses"]
    }
    assert states == {"init": ["terminated"], "sidecar": ["running"], "main": ["running"]}


def test_a_pod_made_anew_under_its_old_name_runs_each_time(cluster: Cluster, namespace: Namespace) -> None:
    cluster.add_node("node-0")
    uids = set()
    for _ in range(5):
        namespace.apply(pod("phoenix"))
        wait_for(namespace.running, deadline_s=10, why="the pod runs")
        uids |= {each["metadata"]["uid"] for each in namespace.pods()}
        namespace.delete_pod("phoenix")
        wait_for(lambda: not namespace.pods(), deadline_s=10, why="the pod is gone")

    assert len(uids) == 5


async def test_the_kubelets_stand_in_leaves_a_namesake_alone(cluster: Cluster, namespace: Namespace) -> None:
    """What it still has to do for a pod that is gone does not hit the one that has its name now."""
    namespace.apply(pod("namesake"))
    (waiting,) = namespace.pods()
    gone = waiting | {"metadata": waiting["metadata"] | {"uid": "00000000-0000-0000-0000-000000000000"}}
    ending = {"deletionTimestamp": "2026-01-01T00:00:00Z", "deletionGracePeriodSeconds": 30}
    server = await connect(str(cluster.kubeconfig))

    await attend(server, gone)
    await attend(server, gone | {"metadata": gone["metadata"] | ending})
    await server.close()

    (left,) = namespace.pods()
    assert (left["metadata"]["uid"], left["status"]["phase"]) == (waiting["metadata"]["uid"], "Pending")
    assert "deletionTimestamp" not in left["metadata"]


@pytest.mark.usefixtures("namespace")
def test_nothing_of_a_node_is_left_when_it_comes_again(cluster: Cluster) -> None:
    for gpus in (1, 2):
        cluster.add_node("node-0", gpus, labels={"zone": "a"})
        assert cluster.api.get("/api/v1/nodes/node-0")["status"]["allocatable"]["nvidia.com/gpu"] == str(gpus)
        cluster.delete_nodes()
        assert cluster.api.find("/api/v1/nodes/node-0") is None


@pytest.mark.usefixtures("namespace")
def test_a_node_that_the_api_server_refuses_is_named(cluster: Cluster) -> None:
    with pytest.raises(ApiError, match=r"^HTTP 400: node crooked: .*quantities must match"):
        cluster.add_node("crooked", cpu="x32")


def test_the_extender_has_the_rights_of_its_service_account_and_no_more(cluster: Cluster, namespace: Namespace) -> None:
    namespace.apply(pod("victim"))
    config = yaml.safe_load((cluster.folder / "gang-extender.yaml").read_text())
    extender = ApiClient.from_kubeconfig(Path(config["kubeconfig"]))

    assert len(extender.get(f"{namespace.path}/pods")["items"]) == 1
    with pytest.raises(ApiError, match='"system:serviceaccount:gang-extender:gang-extender" cannot delete') as refusal:
        extender.delete(f"{namespace.path}/pods/victim")
    extender.close()
    assert refusal.value.status == 403


def test_the_extender_can_be_restarted_with_other_deadlines(cluster: Cluster, namespace: Namespace) -> None:
    cluster.add_node("node-0")
    before = cluster.processes["extender"].pid

    cluster.restart_extender(gangs={"gatheringSeconds": 1.5})

    assert cluster.processes["extender"].pid != before
    namespace.apply(pod("single", schedulerName="gang-scheduler"))
    wait_for(namespace.running, deadline_s=10, why="the pod runs")
    cluster.restart_extender()


@pytest.fixture
def nodes_file(tmp_path: Path) -> Path:
    path = tmp_path / "nodes.yaml"
    path.write_text(
        "{apiVersion: v1, kind: Node, metadata: {name: a}, status: {allocatable: {cpu: 1, memory: 1Gi, pods: 10}}}"
    )
    return path


@pytest.fixture
def temporary(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return where temporary folders are made; tmp_path is too long for sockets."""
    with tempfile.TemporaryDirectory() as folder:
        set_temporary(folder, monkeypatch)
        yield Path(folder)


def set_temporary(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", folder)
    monkeypatch.setattr("tempfile.tempdir", folder)


@pytest.mark.controlplane
def test_up_prints_a_kubeconfig_that_works_and_leaves_nothing_on_term(nodes_file: Path, temporary: Path) -> None:
    command = [sys.executable, "-m", "e2e", "up", "--nodes", str(nodes_file)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as up:  # noqa: S603 - ourselves
        assert up.stdout
        said = up.stdout.readline()
        kubeconfig = Path(said.removeprefix("export KUBECONFIG=").strip())
        api = ApiClient.from_kubeconfig(kubeconfig)
        names = [node["metadata"]["name"] for node in api.get("/api/v1/nodes")["items"]]
        api.close()
        started = list(children(up.pid))
        up.send_signal(signal.SIGTERM)
        rest = up.stdout.read()

    assert (said.startswith("export KUBECONFIG=/"), rest, names, up.returncode) == (True, "", ["a"], 0)
    assert len(started) == 9, "six programs of the control plane, the extender, and stand-ins of kubelets and DLRover"
    assert not any(is_alive(each) for each in started)
    assert not list(temporary.iterdir())


def test_a_start_that_fails_half_way_says_why_and_leaves_nothing(
    tmp_path: Path, temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    etcd_pid = tmp_path / "etcd.pid"
    assets = fake_binaries(
        tmp_path, {"etcd": f"echo $$ > {etcd_pid}; sleep 60", "kube-apiserver": "sleep 1; echo no luck"}
    )
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(assets))

    with pytest.raises(StartError, match=r"kube-apiserver ended by itself with code 0.*\nno luck\n"), start_cluster():
        pass

    assert not is_alive(int(etcd_pid.read_text()))
    assert not list(temporary.iterdir())


def test_a_temporary_folder_too_deep_for_sockets_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(fake_binaries(tmp_path, {})))
    deep = tmp_path / ("x" * 100)
    deep.mkdir()
    set_temporary(str(deep), monkeypatch)

    with pytest.raises(StartError, match="set TMPDIR to a shorter path"), start_cluster():
        pass


def fake_binaries(folder: Path, scripts: dict[str, str]) -> Path:
    assets = folder / "assets"
    assets.mkdir()
    for name in CONTROL_PLANE:
        (assets / name).write_text(f"#!/bin/sh\n{scripts.get(name, '')}\n")
        (assets / name).chmod(0o755)
    return assets


def children(pid: int) -> Iterator[int]:
    for stat in Path("/proc").glob("[0-9]*/stat"):
        if int(stat.read_text().rpartition(")")[2].split()[1]) == pid:
            yield int(stat.parent.name)


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
