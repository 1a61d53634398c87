"""How is a kube-scheduler's configuration found by its pod?"""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from extender.cli.asking import Asker
from extender.cli.scheduler_facts import Schedulers, look_around, read_files
from tests.manifests.files import SCHEDULER_CONFIG, Object, pod_spec

FILE = SCHEDULER_CONFIG / "dedicated.yaml"
SYSTEM = "kube-system"
OURS = "gang-extender"


class Told(Asker):
    """An API server that has these pods and ConfigMaps, by namespace."""

    def __init__(self, pods: dict[str, list[Object]], maps: dict[str, dict[str, Object]]) -> None:
        self._pods = pods
        self._maps = maps

    async def items(self, path: str, **_query: str) -> AsyncIterator[bytes]:
        *_, namespace, kind = path.split("/")
        maps = [{"metadata": {"name": name}, "data": data} for name, data in self._maps.get(namespace, {}).items()]
        for each in self._pods.get(namespace, []) if kind == "pods" else maps:
            yield json.dumps(each).encode()

    async def find(self, path: str, query: Any = None) -> Object | None:
        assert query is None
        *_, namespace, _, name = path.split("/")
        data = self._maps.get(namespace, {}).get(name)
        return None if data is None else {"data": data}


def pod(namespace: str, spec: Object) -> Object:
    return {"metadata": {"name": "one", "namespace": namespace}, "spec": spec}


def static_pod(*flags: str, **spec: Any) -> Object:
    """Return kubeadm's, on the host's network."""
    container = {
        "name": "kube-scheduler",
        "image": "registry.k8s.io/kube-scheduler:v1.34.1",
        "command": ["kube-scheduler", *flags],
    }
    return pod(SYSTEM, {"hostNetwork": True, "containers": [container], "volumes": [], **spec})


async def look(pods: dict[str, list[Object]], maps: dict[str, dict[str, Object]] | None = None) -> Schedulers:
    found = await look_around(Told(pods, maps or {}), OURS)
    assert isinstance(found, Schedulers)
    return found


async def test_by_the_config_map_that_the_installed_pod_mounts_and_no_older_one() -> None:
    maps = {OURS: {"gang-scheduler-config": {"dedicated.yaml": FILE.read_text()}, "old": {"dedicated.yaml": "kind: x"}}}
    found = await look({OURS: [pod(OURS, pod_spec())]}, maps)
    (scheduler,) = found.schedulers
    assert scheduler.source == "ConfigMap gang-extender/gang-scheduler-config, key dedicated.yaml"
    assert (scheduler.in_use, scheduler.config.names) == ("", ("gang-scheduler",))
    assert [(each.version, each.config, each.resolves_services) for each in found.processes] == [
        ((1, 36, 3), scheduler.source, True)
    ]


async def test_two_replicas_have_one_configuration() -> None:
    maps = {OURS: {"gang-scheduler-config": {"dedicated.yaml": FILE.read_text()}}}
    found = await look({OURS: [pod(OURS, pod_spec())] * 2}, maps)
    assert (len(found.schedulers), len(found.processes)) == (1, 2)


async def test_a_config_map_that_is_not_there() -> None:
    found = await look({OURS: [pod(OURS, pod_spec())]})
    assert found.unread == [("ConfigMap gang-extender/gang-scheduler-config, key dedicated.yaml", "it is not there")]


async def test_a_file_of_the_node_is_not_seen() -> None:
    found = await look({SYSTEM: [static_pod("--config=/etc/kubernetes/scheduler.yaml")]})
    assert found.schedulers == []
    assert found.unread == [
        (
            "pod kube-system/one, file /etc/kubernetes/scheduler.yaml",
            "it is a file of the node, which cannot be seen from here",
        )
    ]


async def test_a_kube_scheduler_without_a_file_has_no_extender_and_the_lease_of_its_flags() -> None:
    flags = ("--leader-elect", "true", "--leader-elect-resource-name=other", "--feature-gates=A=true,B=false")
    found = await look({SYSTEM: [static_pod(*flags)]})
    (scheduler,), (process,) = found.schedulers, found.processes
    assert (scheduler.config.extenders, scheduler.config.leader_election.lease) == (None, "kube-system/other")
    assert (process.version, process.gates, process.resolves_services) == ((1, 34, 1), {"A": True, "B": False}, False)
    (process,) = (await look({SYSTEM: [static_pod(dnsPolicy="ClusterFirstWithHostNet")]})).processes
    assert process.resolves_services


async def test_where_no_pod_is_seen_config_maps_are_shown_with_a_doubt() -> None:
    found = await look({}, {SYSTEM: {"mine": {"a.yaml": FILE.read_text(), "b.yaml": "kind: Other"}}})
    (scheduler,) = found.schedulers
    assert scheduler.source == "ConfigMap kube-system/mine, key a.yaml"
    assert "not known" in scheduler.in_use


def test_files_that_are_given(tmp_path: Path) -> None:
    (tmp_path / "bad").write_text("kind: Pod")
    found = read_files([FILE, tmp_path / "bad", tmp_path / "none"])
    assert [each.source for each in found.schedulers] == [str(FILE)]
    assert [why.split(":")[0] for _, why in found.unread] == [
        "0 objects of kind KubeSchedulerConfiguration in it, where one is expected",
        "cannot be read",
    ]
