"""Whoever writes in namespace `a` neither sees nor blocks what is in namespace `b`.

Two worlds are told of the same gangs of `b`; one of them also of whatever a tenant writes in `a`. As long as there is
room enough for both, `b` gets the same answers, and nothing that is said in `a` names what is in `b`.
"""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import structs

from extender.decide.explain import explain_turn
from extender.model.claim import GangClaim, GangKey, Terms
from extender.model.pod import Pod
from tests.bind_rig import BindRig
from tests.builders import a_node, a_pod, gang_annotations, pod_json
from tests.fuzz.keys import keys
from tests.fuzz.world import World
from tests.rig import Rig

Json = dict[str, Any]

GROUPS = "gang.scheduling.koordinator.sh/groups"
THEIRS = "zebra"
"""Stands in every name in `b`, and in nothing that is written in `a`."""


def gang_of(namespace: str, name: str, count: int, groups: tuple[str, ...] = (), **options: Any) -> list[Pod]:
    claim = GangClaim(
        GangKey(f"{namespace}/{name}"), count, terms=Terms(groups=tuple(map(GangKey, sorted(groups))) or None)
    )
    pods = [a_pod(f"{name}-{number}", namespace=namespace, **options) for number in range(count)]
    return [structs.replace(pod, gang=claim) for pod in pods]


def test_a_gang_that_names_another_namespaces_gang_does_not_hold_it_up() -> None:
    rig = Rig(a_node("n1", gpu=2))
    mine = gang_of("a", "mine", 4, ("a/mine", "b/theirs"))
    theirs = gang_of("b", "theirs", 2)
    rig.create(*mine, *theirs)
    rig.later()
    assert [rig.node_for(pod) for pod in theirs] == ["n1", "n1"]


def test_it_takes_no_room_back_that_the_other_one_holds() -> None:
    rig = Rig(a_node("n1", gpu=2))
    theirs = gang_of("b", "theirs", 2)
    rig.create(*theirs)
    rig.later()
    rig.create(*gang_of("a", "mine", 4, ("a/mine", "b/theirs"), priority=5))
    rig.later()
    assert rig.reserved() == 2
    assert [rig.node_for(pod) for pod in theirs] == ["n1", "n1"]


def test_nor_does_it_go_before_others_in_the_name_of_an_older_one() -> None:
    rig = Rig(a_node("n1", gpu=0))
    rig.create(*gang_of("b", "theirs", 1, created_at=1.0, gpu=8))
    between = gang_of("c", "between", 2, created_at=2.0)
    mine = gang_of("a", "mine", 2, ("a/mine", "b/theirs"), created_at=3.0)
    rig.create(*between, *mine)
    rig.later()
    rig.cluster.upsert_node(a_node("n1", gpu=2))
    rig.later()
    assert [rig.node_for(pod) for pod in between] == ["n1", "n1"]


async def test_its_own_members_wait_and_are_not_told_whether_the_other_one_is_there() -> None:
    said = []
    for theirs in ([], gang_of("b", "theirs", 1)):
        rig = BindRig(a_node("n1", gpu=4))
        mine = gang_of("a", "mine", 1, ("a/mine", "b/theirs"))
        rig.create(*mine, *theirs)
        rig.later()
        rig.later(20.0)
        ours = [each for each in rig.announcements if each.pod.namespace == "a"]
        said.append((rig.text_for(mine[0]), [each.note for each in ours]))
    assert said[0] == said[1]
    text, notes = said[0]
    assert text == 'Gang "a/mine" has room, but waits for gang "b/theirs", which it is bound together with'
    assert any("whose own groups do not name this one: it waits" in note for note in notes)


def test_gangs_of_two_namespaces_that_name_each_other_are_bound_together() -> None:
    rig = Rig(a_node("n1", gpu=3))
    both = ("a/mine", "b/theirs")
    mine, theirs = gang_of("a", "mine", 2, both), gang_of("b", "theirs", 2, both)
    rig.create(*mine, *theirs)
    assert "waits for gang" in rig.text_for(mine[0])
    assert rig.reserved() == 0
    rig.cluster.upsert_node(a_node("n2", gpu=1))
    rig.later()
    assert rig.reserved() == 4


def test_a_held_gang_is_not_let_go_for_one_that_does_not_name_it() -> None:
    rig = Rig(a_node("n1", gpu=4))
    mine = gang_of("a", "mine", 1, ("a/mine", "b/theirs"), held=True)
    rig.create(*mine, *gang_of("b", "theirs", 1, held=True))
    rig.later()
    assert rig.take_gates_off() == ["theirs-0"]


def test_a_pod_of_another_namespace_that_has_its_turn_is_not_named() -> None:
    reader, stranger, sibling = a_pod("r", namespace="a"), a_pod(THEIRS, namespace="b"), a_pod("s", namespace="a")
    assert THEIRS not in explain_turn("n1", stranger, reader)
    assert 'pod "a/s"' in explain_turn("n1", sibling, reader)


# --- whatever is written in `a`

_REFERENCES = (
    f"b/{THEIRS}",
    f"b/tfjob/{THEIRS}",
    f"../b/{THEIRS}",
    THEIRS,
    f"b/pod/{THEIRS}-0",
    json.dumps([f"b/{THEIRS}", "a/g"]),
    json.dumps({"node": "n1", "cards": [{"index": 0, "uuid": "", "milli": 9, "bytes": 9, "container": 0}]}),
)


def in_b() -> list[Json]:
    metadata = {"annotations": gang_annotations(THEIRS, 2), "creationTimestamp": "2026-01-02T03:04:04Z"}
    gang = [pod_json(f"{THEIRS}-{number}", namespace="b", metadata=metadata) for number in range(2)]
    owner = {"apiVersion": "kubeflow.org/v1", "kind": "TFJob", "name": THEIRS, "uid": "job", "controller": True}
    made = pod_json(f"{THEIRS}-worker-0", namespace="b", metadata={"ownerReferences": [owner]})
    template = {"spec": made["spec"]}
    job = {
        "apiVersion": "kubeflow.org/v1",
        "kind": "TFJob",
        "metadata": {"name": THEIRS, "namespace": "b", "uid": "job"},
        "spec": {"tfReplicaSpecs": {"Worker": {"replicas": 1, "template": template}}},
    }
    return [job, *gang, made]


def a_tenants_object(key: str, value: str, where: str, count: int) -> Json:
    """Return what a tenant writes: its reference to `b` in one place or another."""
    metadata: Json = {"annotations": gang_annotations("g", count), "labels": {}}
    match where:
        case "annotation" | "label":
            metadata[f"{where}s"][key] = value
        case "owner":
            metadata["annotations"] = {}
            owner = {"apiVersion": "kubeflow.org/v1", "kind": "TFJob", "name": THEIRS, "uid": "job", "controller": True}
            metadata["ownerReferences"] = [owner]
        case "gang":
            metadata["annotations"] = gang_annotations(value, count)
        case "podGroup":
            meta = {"name": THEIRS, "namespace": "a", "uid": "group", "annotations": {GROUPS: value, key: value}}
            version = "scheduling.volcano.sh/v1beta1"
            return {"apiVersion": version, "kind": "PodGroup", "metadata": meta, "spec": {"minMember": count}}
        case "job":
            meta = {"name": THEIRS, "namespace": "a", "uid": "job-a", "annotations": {key: value}}
            replicas = {"Worker": {"replicas": count}}
            spec = {"tfReplicaSpecs": replicas}
            return {"apiVersion": "kubeflow.org/v1", "kind": "TFJob", "metadata": meta, "spec": spec}
        case unknown:
            raise AssertionError(unknown)
    return pod_json(f"p-{where}", namespace="a", metadata=metadata)


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    world = World()
    yield world
    world.close()


def answers(world: World, written: list[Json]) -> tuple[list[Any], list[str]]:
    """Return what `b` is answered, and all that is said in `a`, where that is written."""
    world.clear()
    world.rig.cluster.replace_nodes([a_node(f"n{number}", gpu=8) for number in range(8)])
    world.show(*in_b(), *written)
    world.rig.later()
    theirs: list[Any] = []
    said: list[str] = []
    for each in [*written, *in_b()]:
        if each["kind"] == "Pod":
            _, answer = world.call("filter", {"Pod": each, "NodeNames": [f"n{number}" for number in range(8)]})
            if each["metadata"]["namespace"] == "b":
                told = json.loads(answer)
                theirs.append((bool(told["NodeNames"]), told["FailedAndUnresolvableNodes"], told["Error"]))
            else:
                said.append(answer.decode())
    world.rig.later(2.0)
    world.rig.later(20.0)
    said += [each.note for each in world.rig.announcements if each.pod.namespace == "a"]
    theirs.append(sorted(each.note for each in world.rig.announcements if each.pod.namespace == "b"))
    return theirs, said


_OBJECT = st.builds(
    a_tenants_object,
    st.sampled_from(keys()),
    st.sampled_from(_REFERENCES),
    st.sampled_from(["annotation", "label", "owner", "gang", "podGroup", "job"]),
    st.integers(1, 3),
)


@settings(max_examples=60, deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(_OBJECT, min_size=1, max_size=4, unique_by=lambda each: (each["kind"], each["metadata"]["name"])))
def test_whatever_is_written_in_one_namespace_the_other_one_is_answered_as_without_it(
    world: World, written: list[Json]
) -> None:
    alone, _ = answers(world, [])
    beside, said = answers(world, written)
    assert beside == alone
    own_words = json.dumps(written)
    for text in said:
        for word in (f"{THEIRS}-0", f"{THEIRS}-1", f"{THEIRS}-worker-0"):
            assert word not in text or word in own_words, text
