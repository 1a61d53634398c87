"""Which nodes does a file describe, and how is a node made up?

A fake node offers what its object says, so the object must say it.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from e2e.client import Object

_NEEDED = ("cpu", "memory", "pods")  # without one of these no pod at all fits
_NOT_READY = "node.kubernetes.io/not-ready"


class NodeFileError(Exception):
    """The file cannot be used; the text has a line for each thing that is wrong."""


def make_node(
    name: str,
    gpus: int = 0,
    *,
    cpu: str = "32",
    memory: str = "128Gi",
    labels: Mapping[str, str] | None = None,
    taints: Sequence[Mapping[str, str]] = (),
) -> Object:
    """Return a Node that offers this, and room for as many pods as a kubelet allows by default."""
    allocatable = {"cpu": cpu, "memory": memory, "pods": "110"} | ({"nvidia.com/gpu": str(gpus)} if gpus else {})
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **(labels or {})}},
        "spec": {"taints": [dict(taint) for taint in taints]},
        "status": {"allocatable": allocatable},
    }


def completed(node: Object) -> Object:
    """Return the node with its capacity as its allocatable resources, or the other way round, where one is missing."""
    status = node.get("status") or {}
    same = status.get("allocatable") or status.get("capacity") or {}
    return node | {"status": {**status, "capacity": status.get("capacity") or same, "allocatable": same}}


def read_nodes(path: Path) -> list[Object]:
    """Read a YAML stream of Node objects; raises NodeFileError."""
    try:
        documents = list(yaml.load_all(path.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader))
    except OSError as error:
        raise NodeFileError(f"{path}: cannot be read: {error.strerror}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise NodeFileError(f"{path}: not YAML: {error}") from error
    nodes = [document for document in documents if document is not None]
    if problems := [f"{path}: {problem}" for problem in _problems(nodes)]:
        raise NodeFileError("\n".join(problems))
    return nodes


def is_usable(node: Object) -> bool:
    """Whether the node is Ready and the control plane has taken away the taint that it is born with."""
    conditions = node.get("status", {}).get("conditions", ())
    ready = any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)
    return ready and all(taint["key"] != _NOT_READY for taint in node["spec"].get("taints", ()))


def _problems(nodes: Sequence[Any]) -> Iterator[str]:
    if not nodes:
        yield "holds no Node: write at least one, each after a line `---`"
    names: set[str] = set()
    for position, node in enumerate(nodes, start=1):
        where = f"document {position}"
        if not isinstance(node, dict) or (node.get("apiVersion"), node.get("kind")) != ("v1", "Node"):
            yield f"{where}: must be an object with `apiVersion: v1` and `kind: Node`"
            continue
        name = _mapping(node.get("metadata")).get("name")
        if not isinstance(name, str) or not name:
            yield f"{where}: metadata.name must be the node's name"
        elif name in names:
            yield f"{where}: metadata.name: {name!r} is the name of an earlier node as well"
        else:
            names.add(name)
        yield from (f"{where} ({name}): {problem}" for problem in _status_problems(node))


def _status_problems(node: Object) -> Iterator[str]:
    status = _mapping(node.get("status"))
    for section in ("capacity", "allocatable"):
        if not isinstance(status.get(section, {}), dict):
            yield f"status.{section} must map resources to quantities"
            return
    offered = status.get("allocatable") or status.get("capacity") or {}
    missing = [each for each in _NEEDED if each not in offered]
    if missing:
        yield f"status.allocatable lacks {', '.join(missing)}: no pod would fit"


def _mapping(value: object) -> Object:
    return value if isinstance(value, dict) else {}
