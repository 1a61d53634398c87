"""Two gangs that only fit one after the other: neither is ever seen in part, and none is starved.

The classic deadlock of pod-by-pod scheduling: created in turns, each would get half of the GPUs and wait for ever.
"""

import statistics
import time

import pytest

from e2e.cluster import Cluster, Namespace, Object, wait_for
from tests.e2e.gang_watch import GANG_NAME, MIN_AVAILABLE, SETTLING_S, GangWatch, watch_gangs

pytestmark = pytest.mark.timeout(180)

ROUNDS = 20
MEMBERS = 4
GPUS = 6  # one gang fits, and half of the other
DEADLINE_S = 20.0


def test_two_gangs_created_in_turns_run_whole_and_one_after_the_other(cluster: Cluster, namespace: Namespace) -> None:
    for index in range(GPUS):
        cluster.add_node(f"gpu-{index}", gpus=1)
    with watch_gangs(namespace) as watch:
        rounds_s = [play_round(namespace, watch, f"left-{index}", f"right-{index}") for index in range(ROUNDS)]
    assert watch.longest_in_part_s() < SETTLING_S
    assert watch.most_on_a_node == 1, "a GPU was given out twice"
    # As soon as there is room, that is: not much later than a gang runs that found room at once.
    first_s, second_s = (statistics.median(times_s) for times_s in zip(*rounds_s, strict=True))
    assert second_s < 3 * first_s, rounds_s


def play_round(namespace: Namespace, watch: GangWatch, left: str, right: str) -> tuple[float, float]:
    """Create two gangs in turns and delete the one that runs.

    Return how long it took until that one ran, and from its deletion until the other one did.
    """
    created_s = time.monotonic()
    for index in range(MEMBERS):
        for gang in (left, right):
            namespace.apply(member(gang, index))
    first = wait_for_a_whole_gang(watch, left, right)
    second = right if first == left else left
    assert not watch.bound[second], f"{second} holds GPUs that it cannot use"
    deleted_s = time.monotonic()
    first_s = deleted_s - created_s
    delete(namespace, watch, first)
    watch.wait_bound(second, MEMBERS, DEADLINE_S)
    second_s = time.monotonic() - deleted_s
    delete(namespace, watch, second)
    return first_s, second_s


def wait_for_a_whole_gang(watch: GangWatch, *gangs: str) -> str:
    def whole() -> str | None:
        return next((gang for gang in gangs if len(watch.bound[gang]) == MEMBERS), None)

    found = wait_for(whole, DEADLINE_S, f"one of the gangs {gangs} runs")
    assert found
    return found


def delete(namespace: Namespace, watch: GangWatch, gang: str) -> None:
    watch.dissolve(gang)
    for index in range(MEMBERS):
        namespace.delete_pod(f"{gang}-{index}")


def member(gang: str, index: int) -> Object:
    gpu = {"nvidia.com/gpu": "1"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"{gang}-{index}", "annotations": {GANG_NAME: gang, MIN_AVAILABLE: str(MEMBERS)}},
        "spec": {
            "schedulerName": "gang-scheduler",
            "terminationGracePeriodSeconds": 0,
            "containers": [{"name": "main", "image": "example.com/train", "resources": {"limits": gpu}}],
        },
    }
