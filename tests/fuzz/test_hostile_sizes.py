"""One tenant writes what is far too large. It is answered, it costs little, and nobody else waits for it."""

import json
import time
from collections.abc import Callable, Iterator

import pytest

from tests.builders import a_node, gang_annotations, pod_json
from tests.fuzz.hostile import SIZES, Json, a_member
from tests.fuzz.world import World

NODES = [f"n{number:03}" for number in range(300)]

DEARER = 25
"""Times what a plain gang costs. Without bounds it was hundreds of times, or the memory was full first."""

ANSWER_BYTES = 6000
"""For each node, however long the texts are that the pod is made of."""


@pytest.fixture(scope="module")
def worlds() -> Iterator[World]:
    world = World()
    yield world
    world.close()


@pytest.fixture
def world(worlds: World) -> World:
    worlds.clear()
    worlds.rig.cluster.replace_nodes([a_node(name, gpu=8) for name in NODES])
    worlds.rig.later()
    return worlds


def their_gang() -> list[Json]:
    metadata = {"annotations": gang_annotations("theirs", 4)}
    return [pod_json(f"w{number}", namespace="b-tenant", metadata=metadata) for number in range(4)]


def seconds(work: Callable[[], object]) -> float:
    began_s = time.process_time()
    work()
    return time.process_time() - began_s


def plan(world: World, objects: list[Json]) -> float:
    """Let the objects in; return what it takes to plan what they ask for."""
    world.show(*objects)
    return seconds(world.rig.later)


def empty(world: World) -> None:
    for watch in world.watches.values():
        if watch.source.resource != "nodes":
            watch.source.replace(())
    world.rig.later(1000.0)


@pytest.mark.parametrize("size", SIZES)
def test_a_hostile_size_costs_little_and_keeps_nobody_waiting(world: World, size: str) -> None:
    plan(world, [a_member()])
    empty(world)
    usual_s = plan(world, [a_member()])
    usual_s += plan(world, their_gang())
    empty(world)

    hostile_s = plan(world, SIZES[size])
    hostile_s += plan(world, their_gang())
    pods = [world.rig.cluster.pods[each["metadata"]["uid"]] for each in their_gang()]
    assert all(world.rig.node_for(pod) for pod in pods), "the other tenant's gang has room at once"
    assert hostile_s < DEARER * usual_s, f"{hostile_s:.3f} s instead of {usual_s:.3f} s"


@pytest.mark.parametrize("size", SIZES)
def test_kube_scheduler_gets_an_answer_of_a_bounded_length(world: World, size: str) -> None:
    world.show(*SIZES[size])
    for each in SIZES[size]:
        if each["kind"] == "Pod":
            status, answer = world.call("filter", {"Pod": each, "NodeNames": NODES})
            assert status == 200
            assert len(answer) < ANSWER_BYTES * len(NODES)


def test_a_gang_of_more_members_than_are_planned_for_before_they_exist_holds_no_room_and_says_so(world: World) -> None:
    world.show(*SIZES["100,000 members are claimed"])
    world.rig.later()
    assert world.rig.reserved() == 0
    _, answer = world.call("filter", {"Pod": SIZES["100,000 members are claimed"][0], "NodeNames": NODES[:1]})
    (text,) = set(json.loads(answer)["FailedAndUnresolvableNodes"].values())
    assert text == 'Gang "a-tenant/g" waits for its members: fewer than its min-available 100000 exist'


def test_a_pod_that_asks_for_too_much_is_told_what_it_is(world: World) -> None:
    (pod,) = SIZES["1,000 spread constraints"]
    _, answer = world.call("filter", {"Pod": pod, "NodeNames": NODES[:1]})
    assert b"the pod has more than 32 terms of pod affinity and spread constraints together" in answer
    (pod,) = SIZES["10,000 tolerations"]
    _, answer = world.call("filter", {"Pod": {**pod, "metadata": {**pod["metadata"], "uid": "2"}}, "NodeNames": ["n"]})
    assert b"are longer than 16384 bytes: that is too much to look for a node" in answer


def test_what_one_gang_wants_kept_for_a_thousand_years_is_kept_for_two_hours(world: World) -> None:
    world.rig.cluster.replace_nodes([a_node("n1", gpu=1)])
    theirs = pod_json("runs", namespace="b-tenant", spec={"nodeName": "n1"})
    world.show(theirs, *SIZES["a waiting-time of a thousand years"])
    world.rig.later()
    world.rig.later(31.0)
    (earmark,) = world.rig.cluster.earmarks
    assert earmark.until_s == world.rig.now_s + 7200.0
