"""Does the extender stay as it is, however long it works? Mixed jobs come and go, and its process is watched.

Gangs that fit, gangs that wait, gangs whose members are lost or never come, shares of GPUs, single pods, pods with our
scheduling gate; nodes come and go under them. Memory, open files, sockets and tasks of the last third are compared with
those of the second one. At the end what can run must run, and when all is deleted nothing may be held any more.
"""

import random
import re
import time
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median

from e2e.bench.gangs import GPU, members, pod
from e2e.bench.report import Row
from e2e.client import Object
from e2e.cluster import EXTENDER, Cluster, Namespace, start_cluster, wait_for
from e2e.components import HOLD_RIGHTS
from e2e.nodes import make_node

NODES, GPUS = 8, 4
MOST_PODS = 60
"""Twice as many as there are GPUs: there is always somebody who waits."""

EVERY_S = 5.0
"""Between two looks at the process."""

MORE_ALLOWED = {"RSS MB": 0.05, "files": 0.2, "sockets": 0.2, "tasks": 0.2}
"""How much above that of the second third the median of the last one may be. All but memory come and go with calls that
wait for their gang."""

_SETTLED_S = 90.0
"""Two rounds of deadlines: of members that do not come, and of those that come late."""

_HELD = ("reservations", "held_binds", "queued_binds", "gangs")
_GATE = "gang-extender.io/hold"


def soak(minutes: float, seed: int) -> Iterator[Row]:
    """Yield what is seen every few seconds; raises AssertionError where something grows or is left behind."""
    with start_cluster() as cluster:
        cluster.apply(HOLD_RIGHTS.read_text(encoding="utf-8"))
        cluster.add_nodes([_node(index) for index in range(NODES)])
        namespace = cluster.namespace("soak")
        load = _Load(namespace, random.Random(seed))  # noqa: S311 - the same load again, for the same seed
        idle = _look(cluster, 0.0)
        rows = []
        for row in _under_load(cluster, load, minutes * 60.0):
            rows.append(row)
            yield row
        _finish(cluster, namespace, idle)
        grown = [
            f"{name} went from {before:g} to {after:g}"
            for name, before, after in thirds(rows)
            if _grew(name, before, after)
        ]
        assert not grown, grown


def thirds(rows: Sequence[Row]) -> list[tuple[str, float, float]]:
    """Return what is watched, with its medians in the second and in the last third."""
    third = max(1, len(rows) // 3)
    second, last = rows[third : 2 * third] or rows, rows[-third:]
    return [
        (name, median(float(row[name]) for row in second), median(float(row[name]) for row in last))
        for name in MORE_ALLOWED
    ]


def summary(rows: Sequence[Row]) -> list[Row]:
    """Return the table of the thirds."""
    return [
        {"of the extender": name, "second third": before, "last third": after, "pods so far": rows[-1]["pods so far"]}
        for name, before, after in thirds(rows)
    ]


def _grew(name: str, before: float, after: float) -> bool:
    return after > before * (1 + MORE_ALLOWED[name]) + 1


class _Load:
    """Jobs of all sorts, of which the oldest go when there are too many."""

    def __init__(self, namespace: Namespace, chance: random.Random) -> None:
        self.created = 0
        self._namespace = namespace
        self._chance = chance
        self._jobs: list[list[str]] = []
        self._serial = 0

    def step(self) -> None:
        """Let something happen."""
        match self._chance.randrange(12):
            case 0 if self._jobs:
                self._delete([self._chance.choice(self._chance.choice(self._jobs))])
            case 1:
                self._replace_node()
            case _:
                self._create()
        while sum(map(len, self._jobs)) > MOST_PODS:
            self._delete(self._jobs.pop(0))

    def _create(self) -> None:
        self._serial += 1
        name = f"j{self._serial}"
        made = self._job(name)
        for each in made:
            each["spec"] |= {"schedulingGates": [{"name": _GATE}]} if self._serial % 3 == 0 else {}
        self._namespace.apply(*made)
        self.created += len(made)
        self._jobs.append([each["metadata"]["name"] for each in made])

    def _job(self, name: str) -> list[Object]:
        size = self._chance.randint(2, 8)
        match self._chance.randrange(8):
            case 0:
                return [pod(name, 1)]
            case 1:
                return [_share(pod(name, 0))]
            case 2 | 3:
                return [_share(each) for each in members(name, size, 0)]
            case 4:
                return list(members(name, NODES * GPUS + 1))[:size]  # the others never come, nor would they fit
            case 5:
                return list(members(name, size))[:-1]
            case _:
                return list(members(name, size))

    def _delete(self, names: Sequence[str]) -> None:
        for name in names:
            self._namespace.delete_pod(name)

    def _replace_node(self) -> None:
        index = self._chance.randrange(NODES)
        self._namespace.cluster.delete_node(f"soak-{index}")
        self._namespace.cluster.add_nodes([_node(index)])


def _node(index: int) -> Object:
    """Return a node; every other one has cards of which shares are given, as KubeShare's collector lists them."""
    node = make_node(f"soak-{index}", GPUS, cpu="96")
    if index % 2:
        listed = "".join(f"GPU-{index}-{card}:16384," for card in range(GPUS))
        node["metadata"]["annotations"] = {"kubeshare/gpu_info": listed}
    return node


def _share(each: Object) -> Object:
    asked = {"kubeshare/gpu_request": "0.4", "kubeshare/gpu_limit": "1.0"}
    each["metadata"]["annotations"] = {**each["metadata"].get("annotations", {}), **asked}
    each["spec"]["containers"][0]["resources"]["limits"].pop(GPU, None)
    return each


def _under_load(cluster: Cluster, load: _Load, seconds: float) -> Iterator[Row]:
    began_s = time.monotonic()
    next_look_s = began_s + EVERY_S
    while (now_s := time.monotonic()) < began_s + seconds:
        load.step()
        cluster.check()
        time.sleep(0.25)
        if now_s >= next_look_s:
            next_look_s += EVERY_S
            yield {**_look(cluster, now_s - began_s), "pods so far": load.created}


def _look(cluster: Cluster, at_s: float) -> dict[str, float]:
    process = Path(f"/proc/{cluster.processes[EXTENDER].pid}")
    status = (process / "status").read_text(encoding="utf-8")
    resident = re.search(r"VmRSS:\s+(\d+) kB", status)
    assert resident is not None
    files = [_target(each) for each in (process / "fd").iterdir()]
    metrics = _metrics(cluster)
    return {
        "minutes": at_s / 60,
        "RSS MB": int(resident[1]) / 1024,
        "files": len(files),
        "sockets": sum(each.startswith("socket:") for each in files),
        "tasks": metrics["tasks"],
        **{name: metrics[name] for name in _HELD},
    }


def _target(file: Path) -> str:
    try:
        return str(file.readlink())
    except FileNotFoundError:  # closed since
        return ""


def _metrics(cluster: Cluster) -> dict[str, float]:
    """Return our gauges, each summed over its labels."""
    with urllib.request.urlopen(f"{cluster.probe_url}/metrics", timeout=10) as answer:  # noqa: S310 - our own process
        text = answer.read().decode()
    found: dict[str, float] = {}
    for name, value in re.findall(r"^gang_extender_(\w+)(?:{.*})? (\S+)$", text, re.MULTILINE):
        found[name] = found.get(name, 0.0) + float(value)
    return found


def _finish(cluster: Cluster, namespace: Namespace, idle: dict[str, float]) -> None:
    """With room enough, let all run that can; then delete everything: no gate and nothing held may be left."""
    cluster.add_nodes([_node(index) for index in range(NODES, 5 * NODES)])

    def whole_jobs_run() -> bool:
        waiting = [each for each in namespace.pods() if not each["spec"].get("nodeName")]
        return not [each for each in waiting if _job_is_whole(each, namespace)]

    wait_for(whole_jobs_run, _SETTLED_S, "every gang that is whole runs")
    gated = [
        p["metadata"]["name"]
        for p in namespace.pods()
        if p["spec"].get("nodeName") and p["spec"].get("schedulingGates")
    ]
    assert not gated, gated
    cluster.api.delete(f"{namespace.path}/pods", grace_period_s=0)
    wait_for(lambda: not namespace.pods(), _SETTLED_S, "all pods are gone")
    wait_for(lambda: not _left(cluster), _SETTLED_S, "nothing is held any more")
    wait_for(lambda: _look(cluster, 0.0)["tasks"] <= idle["tasks"] + 1, _SETTLED_S, "no task goes on")


def _left(cluster: Cluster) -> dict[str, float]:
    metrics = _metrics(cluster)
    return {name: metrics[name] for name in _HELD if metrics[name]}


def _job_is_whole(each: Object, namespace: Namespace) -> bool:
    annotations = each["metadata"].get("annotations", {})
    needed = int(annotations.get("gang.scheduling.koordinator.sh/min-available", "1"))
    jobs = [str(other["metadata"]["name"]).partition("-")[0] for other in namespace.pods()]
    return jobs.count(str(each["metadata"]["name"]).partition("-")[0]) >= needed
