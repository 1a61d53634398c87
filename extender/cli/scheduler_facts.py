"""Which kube-schedulers are there, and how are they configured?

Known by the files that the user gives, by /configz, by the pods of kube-scheduler and what these mount, or else by the
ConfigMaps that look like it.
"""

import re
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

import orjson
from msgspec import Struct

from extender.apiserver import Response
from extender.cli.asking import NOT_ENDED, Asker, UnseenError, origin
from extender.doctor.facts import Process, Scheduler, Version
from extender.doctor.finding import Unseen
from extender.doctor.scheduler_config import (
    KIND,
    BadSchedulerConfigError,
    LeaderElection,
    SchedulerConfig,
    read_scheduler_config,
)

Object = dict[str, Any]

SYSTEM = "kube-system"

_IMAGE = re.compile(r"(?:^|/)kube-scheduler(?::v?(\d+)\.(\d+)\.(\d+))?")
_BUILD = re.compile(r'kubernetes_build_info\{.*git_version="([^"]+)"')
_GATE = re.compile(r'kubernetes_feature_enabled\{name="([^"]+)".*\} ([01])$')
_NO_CONFIG = "it was started without --config, so it has no extender"


class Schedulers(Struct):
    """What was found out."""

    schedulers: list[Scheduler]
    unread: list[tuple[str, str]]
    processes: list[Process]


def read_files(paths: Sequence[Path]) -> Schedulers:
    """Read the files that the user gives."""
    found = Schedulers([], [], [])
    for path in paths:
        try:
            _take(found, str(path), path.read_bytes())
        except OSError as error:
            found.unread.append((str(path), f"cannot be read: {error.strerror}"))
    return found


async def ask_configz(asker: Asker, url: str) -> Schedulers:
    """Ask a kube-scheduler itself how it is configured, and by its metrics what it is; `asker` talks to its address."""
    found = Schedulers([], [], [])
    asker.api.host = origin(url)
    answer = await asker.get("/configz")
    if isinstance(answer, Unseen) or answer.status != 200:
        why = answer.why if isinstance(answer, Unseen) else "there is no /configz"
        found.unread.append((url, why))
    else:
        _take(found, f"{origin(url)}/configz", answer.body)
        metrics = await asker.get("/metrics")
        if isinstance(metrics, Response) and metrics.status == 200:
            found.processes.append(_by_metrics(f"{origin(url)}/configz", metrics.body.decode()))
    return found


def _by_metrics(source: str, text: str) -> Process:
    version, gates = "", {}
    for line in text.splitlines():
        if match := _BUILD.match(line):
            version = match[1]
        elif match := _GATE.match(line):
            gates[match[1]] = match[2] == "1"
    return Process(source, _version(f"kube-scheduler:{version}"), gates, config=source)


async def look_around(asker: Asker, namespace: str) -> Schedulers | Unseen:
    """Look at the pods of kube-scheduler and at ConfigMaps, in our namespace and in the system's."""
    found = Schedulers([], [], [])
    try:
        for where in dict.fromkeys((namespace, SYSTEM)):
            async for pod in _objects(asker, f"/api/v1/namespaces/{where}/pods", fieldSelector=NOT_ENDED):
                for container in _kube_schedulers(pod):
                    await _look_at(asker, found, pod, container)
        if not found.processes:
            await _maps_that_look_like_it(asker, found, namespace)
    except UnseenError as error:
        return error.unseen
    return found


async def _look_at(asker: Asker, found: Schedulers, pod: Object, container: Object) -> None:
    flags, spec = flags_of(container), pod["spec"]
    name = f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
    source = source_of_pod = f"pod {name}"
    if "config" not in flags:
        found.schedulers.append(
            Scheduler(f"{source} ({_NO_CONFIG})", SchedulerConfig(leader_election=_election(flags)))
        )
    else:
        source = mounted_at(pod, container, flags["config"]) or f"{source}, file {flags['config']}"
        await _read_mounted(asker, found, source, pod["metadata"]["namespace"])
    host = bool(spec.get("hostNetwork"))
    found.processes.append(
        Process(
            name=source_of_pod,
            version=_version(container["image"]),
            gates=_gates(flags.get("feature-gates", "")),
            resolves_services=not host or spec.get("dnsPolicy") == "ClusterFirstWithHostNet",
            config=source,
        )
    )


async def _read_mounted(asker: Asker, found: Schedulers, source: str, namespace: str) -> None:
    known = {each.source for each in found.schedulers} | {where for where, _ in found.unread}
    if source in known:
        return
    if not source.startswith("ConfigMap "):
        found.unread.append((source, "it is a file of the node, which cannot be seen from here"))
        return
    name, key = source.removeprefix(f"ConfigMap {namespace}/").split(", key ")
    content = await asker.find(f"/api/v1/namespaces/{namespace}/configmaps/{name}")
    if isinstance(content, Unseen):
        found.unread.append((source, content.why))
    elif content is None or key not in content.get("data", {}):
        found.unread.append((source, "it is not there"))
    else:
        _take(found, source, content["data"][key].encode())


async def _maps_that_look_like_it(asker: Asker, found: Schedulers, namespace: str) -> None:
    why = "no pod of kube-scheduler was seen, so whether one runs with it is not known"
    for where in dict.fromkeys((namespace, SYSTEM)):
        async for content in _objects(asker, f"/api/v1/namespaces/{where}/configmaps"):
            for key, text in (content.get("data") or {}).items():
                if re.search(rf"^kind: *{KIND}\s*$", text, re.MULTILINE):
                    _take(found, f"ConfigMap {where}/{content['metadata']['name']}, key {key}", text.encode(), why)


def _take(found: Schedulers, source: str, text: bytes, in_use: str = "") -> None:
    try:
        found.schedulers.append(Scheduler(source, read_scheduler_config(text), in_use))
    except BadSchedulerConfigError as error:
        found.unread.append((source, str(error)))


async def _objects(asker: Asker, path: str, **query: str) -> AsyncIterator[Object]:
    async for item in asker.items(path, **query):
        yield orjson.loads(item)


def _kube_schedulers(pod: Object) -> Iterator[Object]:
    for container in pod["spec"]["containers"]:
        program = PurePosixPath((container.get("command") or [""])[0]).name
        if _IMAGE.search(container.get("image", "")) or program == "kube-scheduler":
            yield container


def flags_of(container: Object) -> dict[str, str]:
    """Return what a container is started with, by the name of the flag."""
    words = iter([*(container.get("command") or [])[1:], *(container.get("args") or [])])
    flags: dict[str, str] = {}
    last = ""
    for word in words:
        if word.startswith("-"):
            last, _, value = word.lstrip("-").partition("=")
            flags[last] = value
        elif last and not flags[last]:
            flags[last] = word
    return flags


def _election(flags: dict[str, str]) -> LeaderElection:
    return LeaderElection(
        leader_elect=flags.get("leader-elect", "true") != "false",
        resource_name=flags.get("leader-elect-resource-name", "kube-scheduler"),
        resource_namespace=flags.get("leader-elect-resource-namespace", SYSTEM),
    )


def mounted_at(pod: Object, container: Object, path: str) -> str:
    """Return which ConfigMap's key the file is; empty where it is none."""
    for mount in container.get("volumeMounts") or ():
        if PurePosixPath(path).is_relative_to(mount["mountPath"]):
            (volume,) = (v for v in pod["spec"]["volumes"] if v["name"] == mount["name"])
            source = volume.get("configMap")
            if source:
                key = mount.get("subPath") or str(PurePosixPath(path).relative_to(mount["mountPath"]))
                renamed = {item["path"]: item["key"] for item in source.get("items") or ()}
                return f"ConfigMap {pod['metadata']['namespace']}/{source['name']}, key {renamed.get(key, key)}"
    return ""


def _version(image: str) -> Version | None:
    match = _IMAGE.search(image)
    return (int(match[1]), int(match[2]), int(match[3])) if match and match[1] else None


def _gates(text: str) -> dict[str, bool]:
    pairs = (each.partition("=") for each in text.split(",") if each)
    return {name.strip(): value.strip().lower() == "true" for name, _, value in pairs}
