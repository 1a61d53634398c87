"""Junk of every sort through the real ways in: what is watched, and what kube-scheduler sends.

Objects that make sense have one place replaced: by another type, huge numbers, texts that read like what is wanted,
deep nesting, a mebibyte, or no JSON at all. Always:

- no traceback, and no answer but 200, 400 and 413; whatever a call waits for ends with the objects;
- no input costs more than a second of CPU;
- when everything is deleted nothing is left of it, and the memory stays where it was.

FUZZ_INPUTS says how many inputs there are; `make soak` takes many.
"""

import gc
import json
import os
import random
import resource
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from msgspec import convert, structs

from extender.model.device import CardPolicy
from extender.wire import core_v1
from extender.wire.objects import node_of, pod_of
from tests.builders import gang_annotations, pod_json
from tests.fuzz.junk import JUNK, TEXTS
from tests.fuzz.keys import keys
from tests.fuzz.objects import HOLE, Json, fill, full, paths_of, samples, wire_type, with_hole
from tests.fuzz.world import Input, World

INPUTS = int(os.environ.get("FUZZ_INPUTS", "1500"))
BATCH = 50
DEAREST_S = 1.0
"""Of CPU; a mebibyte of the worst takes a tenth of it."""

MEMORY_PODS = max(240, INPUTS // 100)
MORE_MIB = 16.0
"""In the last third of the pods: what they are made of is 150 KB each."""

VERBS = ("filter", "prioritize", "preempt", "bind")
_NAMED = {("metadata", "name"), ("metadata", "namespace")}
NAMES = tuple(each for each in JUNK if b"/" not in each)
"""A name never has a slash in it, whoever asks the API server for it: it is a part of the object's path."""

_PAGE = '{"metadata":{"resourceVersion":"9"},"items":[%s]}'

fed = 0


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    world = World()
    yield world
    world.close()


def bases(world: World, resource: str) -> list[str]:
    """Return the samples of a resource and one that has every field, as JSON."""
    made = full(wire_type(world.watches[resource].source))
    return [json.dumps(each) for each in (made, *samples(resource))]


def bodies(verb: str, pod: Json) -> list[Json]:
    """Return what kube-scheduler sends of a pod."""
    victims = {"n1": {"Pods": [{"UID": "u"}], "NumPDBViolations": 1}}
    meta, nodes = pod["metadata"], {"items": [{"metadata": {"name": "n1"}}]}
    match verb:
        case "preempt":
            full_victims = {"n1": {"Pods": [pod], "NumPDBViolations": 1}}
            return [{"Pod": pod, "NodeNameToMetaVictims": victims}, {"Pod": pod, "NodeNameToVictims": full_victims}]
        case "bind":
            name = {"PodName": meta["name"], "PodNamespace": meta.get("namespace", ""), "PodUID": meta["uid"]}
            return [{**name, "Node": "n1"}]
        case _:
            return [{"Pod": pod, "NodeNames": ["n1", "n2"]}, {"Pod": pod, "Nodes": nodes}]


class Maker:
    """Makes inputs of four numbers."""

    def __init__(self, world: World) -> None:
        self.resources = sorted(world.watches)
        self.bases = {resource: bases(world, resource) for resource in self.resources}

    def make(self, way: int, what: int, where: int, junk: int) -> list[Input]:
        resource = "pods" if way % 2 else self.resources[what % len(self.resources)]
        base = self.bases[resource][what % len(self.bases[resource])]
        match way % 8:
            case 0 | 1 | 2:
                return [self._event(resource, self._spoiled(base, where, junk))]
            case 3 | 4:
                return [self._event(resource, self._keyed(base, what, where, junk))]
            case 5:
                spoiled = self._spoiled(base, where, junk) if junk % 2 else self._keyed(base, what, where, junk)
                return [self._event(resource, spoiled), *self._calls(spoiled, VERBS[what % 4])]
            case 6:
                return [Input(resource, _PAGE.encode() % b",".join([base.encode(), self._spoiled(base, where, junk)]))]
            case _:
                body = json.dumps(bodies(VERBS[what % 4], json.loads(base))[-(junk % 2)])
                return [Input(VERBS[what % 4], self._spoiled(body, where, junk), is_call=True)]

    def _event(self, resource: str, content: bytes) -> Input:
        kind = (b"ADDED", b"MODIFIED", b"DELETED")[len(content) % 3 if len(content) % 5 == 0 else 0]
        return Input(resource, b'{"type":"%s","object":%s}' % (kind, content))

    def _spoiled(self, base: str, where: int, junk: int) -> bytes:
        paths = paths_of(base)
        path = paths[where % len(paths)]
        junk_here = NAMES if path[-2:] in _NAMED else JUNK
        return fill(with_hole(base, path), junk_here[junk % len(junk_here)])

    def _keyed(self, base: str, what: int, where: int, junk: int) -> bytes:
        """Write junk under one of the keys that are read, as annotation, label or resource."""
        content, key = json.loads(base), keys()[where % len(keys())]
        meta = content.setdefault("metadata", {})
        meta["annotations"] = {**(meta.get("annotations") or {}), key: HOLE}
        meta["labels"] = {**(meta.get("labels") or {}), key: HOLE}
        for each in _quantities(content):
            if what % 3 == 0:
                each[key] = HOLE
        return fill(json.dumps(content), TEXTS[junk % len(TEXTS)])

    def _calls(self, spoiled: bytes, verb: str) -> list[Input]:
        mark = {"metadata": {"name": "w0", "namespace": "default", "uid": "u"}, "mark": HOLE}
        if verb == "bind":
            return [Input(verb, json.dumps(body).encode(), is_call=True) for body in bodies(verb, mark)]
        text = json.dumps(bodies(verb, mark)[0]).encode()
        return [Input(verb, text.replace(json.dumps(mark).encode(), spoiled), is_call=True)]


def _quantities(content: Json) -> Iterator[Any]:
    spec, status = content.get("spec") or {}, content.get("status") or {}
    yield from (status[name] for name in ("allocatable", "capacity") if isinstance(status.get(name), dict))
    for container in spec.get("containers") or ():
        yield container.setdefault("resources", {}).setdefault("requests", {})


@settings(
    max_examples=max(1, INPUTS // BATCH),
    deadline=None,
    database=None,
    phases=[Phase.explicit, Phase.generate, Phase.shrink],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example],
)
@given(st.lists(st.integers(0, 2**24 - 1), min_size=BATCH, max_size=BATCH))
def test_junk_is_refused_or_passed_over_and_leaves_nothing_behind(world: World, seeds: list[int]) -> None:
    global fed  # noqa: PLW0603 - how many there were is printed at the end
    maker = _maker(world)
    inputs = [each for seed in seeds for each in maker.make(*_numbers(seed))]
    world.feed(inputs)
    fed += len(inputs)
    assert not world.take_left(), f"left behind by {[str(each) for each in inputs]}"
    assert world.slowest.seconds < DEAREST_S, world.slowest


def _numbers(seed: int) -> tuple[int, int, int, int]:
    """Return four numbers of one: drawn one by one they would mostly be small."""
    chance = random.Random(seed)  # noqa: S311 - to be had again
    return chance.getrandbits(20), chance.getrandbits(20), chance.getrandbits(20), chance.getrandbits(20)


_makers: list[Maker] = []


def _maker(world: World) -> Maker:
    if not _makers:
        _makers.append(Maker(world))
    return _makers[0]


class Recorded(dict[str, str]):
    """Annotations or labels that note by which keys they are read."""

    def __init__(self, content: dict[str, str], asked: set[object]) -> None:
        super().__init__(content)
        self._asked = asked

    def __getitem__(self, key: str) -> str:
        self._asked.add(key)
        return super().__getitem__(key)

    def __contains__(self, key: object) -> bool:
        self._asked.add(key)
        return super().__contains__(key)

    def get(self, key: str, default: Any = None) -> Any:
        self._asked.add(key)
        return super().get(key, default)


def test_no_annotation_or_label_is_read_that_is_not_fuzzed() -> None:
    asked: set[object] = set()
    kinds: tuple[tuple[str, Any, Callable[[Any], object]], ...] = (
        ("pods", core_v1.Pod, pod_of),
        ("nodes", core_v1.Node, read_node),
    )
    for what, wire, read in kinds:
        for sample in samples(what):
            content = convert(sample, wire)
            meta = content.metadata
            noted = {
                "annotations": Recorded(meta.annotations or {}, asked),
                "labels": Recorded(meta.labels or {}, asked),
            }
            read(structs.replace(content, metadata=structs.replace(meta, **noted)))
    assert len(asked) > 40, "so many keys are looked up of these samples"
    assert asked <= set(keys())


def test_every_kind_that_is_watched_is_fuzzed_and_every_field_of_it(world: World) -> None:
    maker = _maker(world)
    assert set(maker.bases) == set(world.watches)
    assert all(maker.bases.values())
    (pod, *_) = maker.bases["pods"]
    assert {"scheduling_group", "topology_spread_constraints"} <= set(core_v1.PodSpec.__struct_fields__)
    assert {"schedulingGroup", "topologySpreadConstraints"} <= json.loads(pod)["spec"].keys()


def read_node(node: core_v1.Node) -> object:
    return node_of(node, CardPolicy())


def resident_mib() -> float:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 2**20


@pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc")
def test_pods_that_come_and_go_with_ever_new_contents_do_not_fill_the_memory(world: World) -> None:
    """Each is unlike all before it, and large: what is kept for equal ones must not add up."""
    sizes = []
    for number in range(MEMORY_PODS):
        selector = {f"k{number}-{each}": "v" * 60 for each in range(1500)}
        annotations = gang_annotations(f"g{number}", 2) | {"gang.scheduling.koordinator.sh/mode": f"{number}" * 1000}
        pod = pod_json("w0", metadata={"annotations": annotations}, spec={"nodeSelector": selector})
        world.feed([Input("pods", json.dumps({"type": "ADDED", "object": pod}).encode())])
        if number % (MEMORY_PODS // 6) == 0:
            gc.collect()
            sizes.append(resident_mib())
    assert max(sizes[4:]) < min(sizes[2:4]) + MORE_MIB, sizes


def test_so_many_inputs_were_fed_and_none_was_dear(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    with capsys.disabled():
        print(f"\n{fed} inputs; the dearest took {world.slowest.seconds:.3f} s of CPU: {world.slowest.text[:200]}")  # noqa: T201
    assert fed >= INPUTS // BATCH * BATCH
