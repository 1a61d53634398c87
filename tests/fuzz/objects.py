"""Objects that make sense, to be spoiled: samples of every dialect, and one of each kind with all that is read."""

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from msgspec import inspect
from msgspec.json import Decoder

from extender.watch.reflector import Source
from tests.builders import gang_annotations, node_json, pod_json

Json = dict[str, Any]
Path_ = tuple[str | int, ...]

_DIALECTS = Path(__file__).parent.parent / "wire" / "dialects"

_CARDS: tuple[tuple[dict[str, str], dict[str, str], dict[str, str]], ...] = (
    ({"kubeshare/gpu_request": "0.5", "kubeshare/gpu_limit": "1.0", "kubeshare/gpu_mem": "1024"}, {}, {}),
    ({}, {"sharedgpu/gpu_request": "0.5", "sharedgpu/gpu_limit": "1.0", "sharedgpu/gpu_mem": "1024"}, {}),
    ({"gpu-fraction": "0.5", "gpu-fraction-num-devices": "2"}, {}, {}),
    ({"gpu-memory": "1024"}, {}, {}),
    ({"hami.io/gpu-scheduler-policy": "spread"}, {}, {"nvidia.com/gpu": "1", "nvidia.com/gpumem": "1024"}),
    ({"nvidia.com/use-gputype": "A100"}, {}, {"nvidia.com/gpu": "2", "nvidia.com/gpucores": "30"}),
    ({}, {}, {"koordinator.sh/gpu-core": "50", "koordinator.sh/gpu-memory-ratio": "50"}),
    ({}, {}, {"koordinator.sh/gpu.shared": "2", "koordinator.sh/gpu-memory": "2Gi"}),
    ({}, {}, {"aliyun.com/gpu-mem": "4"}),
    ({}, {}, {"volcano.sh/vgpu-number": "1", "volcano.sh/vgpu-memory": "1024", "volcano.sh/vgpu-cores": "10"}),
    ({}, {}, {"volcano.sh/gpu-memory": "1024"}),
    ({}, {}, {"volcano.sh/gpu-number": "1"}),
)
"""Annotations, labels and limits of a pod that asks for GPUs, in each system's terms."""

_HAMI = json.dumps(
    [{"id": f"GPU-{n}", "index": n, "count": 10, "devmem": 16384, "devcore": 100, "health": True} for n in (0, 1)]
)
_NODES: tuple[tuple[dict[str, str], dict[str, str], dict[str, str]], ...] = (
    ({}, {}, {}),
    ({"kubeshare/gpu_info": "GPU-0:16384,GPU-1:16384"}, {"nvidia.com/gpu.product": "A100"}, {}),
    ({}, {"nvidia.com/gpu.count": "2", "nvidia.com/gpu.memory": "16384", "nvidia.com/gpu.replicas": "1"}, {}),
    (
        {"hami.io/node-nvidia-register": _HAMI, "hami.io/node-nvidia-score": '[{"uuid":"GPU-0","score":{"GPU-1":3}}]'},
        {},
        {},
    ),
    ({"hami.io/node-nvidia-register": "GPU-0,10,16384,100,A100,0,true:"}, {}, {}),
    ({"volcano.sh/node-vgpu-register": "GPU-0,10,16384,A100,true:"}, {}, {"volcano.sh/vgpu-number": "10"}),
    ({}, {}, {"aliyun.com/gpu-mem": "32", "aliyun.com/gpu-count": "2"}),
    ({"volcano.sh/gpu-unhealthy-ids": "1"}, {}, {"volcano.sh/gpu-memory": "32768", "volcano.sh/gpu-number": "2"}),
)


def wire_type(source: Source[Any]) -> Any:
    """Return the type to which a kind of object is decoded: its fields are those that are read."""
    cells = (cell.cell_contents for cell in source.kind.read.__closure__ or ())
    return next(each.type for each in cells if isinstance(each, Decoder))


@cache
def samples(resource: str) -> tuple[Json, ...]:
    """Return the samples of a resource, `pods` or `podgroups.GROUP`."""
    if resource == "pods":
        return (*_sample_pods(), *(each for each in _of_dialects() if each["kind"] == "Pod"))
    if resource == "nodes":
        return tuple(node_json("n1", metadata={"annotations": a, "labels": b}, allocatable=c) for a, b, c in _NODES)
    return tuple(each for each in _of_dialects() if resource_of(each) == resource)


def _sample_pods() -> Iterator[Json]:
    for annotations, labels, limits in _CARDS:
        spec = {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1", **limits}, "limits": limits}}]}
        metadata = {"annotations": {**gang_annotations("g", 1), **annotations}, "labels": labels}
        yield pod_json(metadata=metadata, spec=spec)
        yield pod_json(metadata={"annotations": annotations, "labels": labels}, spec={**spec, "nodeName": "n1"})


@cache
def _of_dialects() -> tuple[Json, ...]:
    documents = [
        document
        for path in sorted(_DIALECTS.glob("*.yaml"))
        for document in yaml.safe_load_all(path.read_text("utf-8"))
    ]
    return tuple(_dated(each) for document in documents for each in document["objects"])


def _dated(sample: Json) -> Json:
    return json.loads(json.dumps({**sample, "metadata": {"uid": "u", **sample["metadata"]}}, default=str))  # type: ignore[no-any-return]


def resource_of(sample: Json) -> str:
    """Return `pods`, or `podgroups.GROUP`."""
    group = sample["apiVersion"].rpartition("/")[0]
    return f"{sample['kind'].lower()}s" + (f".{group}" if group else "")


def full(wire: Any) -> Json:
    """Return an object with every field of the type."""
    made: Json = _made(inspect.type_info(wire))
    return made


def _made(kind: inspect.Type) -> Any:  # noqa: PLR0911 - one answer for each type there is
    match kind:
        case inspect.StructType(fields=fields):
            return {field.encode_name: _made(field.type) for field in fields}
        case inspect.UnionType(types=types):
            return _made(next(each for each in types if not isinstance(each, inspect.NoneType)))
        case inspect.VarTupleType(item_type=item) | inspect.ListType(item_type=item):
            return [_made(item)]
        case inspect.DictType(value_type=value):
            return {"k": _made(value)}
        case inspect.IntType():
            return 1
        case inspect.BoolType():
            return True
        case inspect.DateTimeType():
            return "2026-01-02T03:04:05Z"
        case inspect.RawType():
            return {"metadata": {"labels": {"k": "v"}}, "spec": pod_json()["spec"]}
        case inspect.LiteralType(values=values):
            return values[0]
        case _:
            return "1"


@cache
def paths_of(sample: str) -> tuple[Path_, ...]:
    """Return every place in the JSON."""
    return tuple(_paths(json.loads(sample)))


def _paths(content: object, here: Path_ = ()) -> Iterator[Path_]:
    if here:
        yield here
    if isinstance(content, dict):
        for key, value in content.items():
            yield from _paths(value, (*here, key))
    elif isinstance(content, list):
        for place, value in enumerate(content):
            yield from _paths(value, (*here, place))


HOLE = "@@here@@"


def with_hole(sample: str, path: Path_) -> str:
    """Return the JSON with a hole at the place."""
    content = json.loads(sample)
    _put(content, path, HOLE)
    return json.dumps(content)


def _put(content: Any, path: Path_, value: object) -> None:
    for step in path[:-1]:
        content = content[step]
    content[path[-1]] = value


def fill(text: str, raw: bytes) -> bytes:
    """Put raw JSON into the hole."""
    return text.encode().replace(json.dumps(HOLE).encode(), raw)
