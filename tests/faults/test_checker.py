"""Histories that are wrong on purpose: the checker must say so of each, and nothing of those that are right.

A history is a list of (seconds, what, object); each gets the next resourceVersion.
"""

from typing import Any, get_args

import pytest

from e2e.client import Object
from e2e.faults.checker import Bounds, Checker, Event, EventType, differences, judge
from e2e.faults.reading import GANG_NAME, MIN_AVAILABLE, VISIBLE_DEVICES, amount
from e2e.nodes import make_node

BOUNDS = Bounds(partial_s=10, stale_node_s=1)
Step = tuple[float, EventType, Object]


def node(name: str = "n", gpus: int = 4, cards: int = 0, **spec: Any) -> Object:
    made = make_node(name, gpus)
    listed = "".join(f"GPU-{name}-{index}:16384," for index in range(cards))
    made["metadata"] |= {"uid": name, "annotations": {"kubeshare/gpu_info": listed}}
    return {**made, "spec": {**made["spec"], **spec}}


def pod(name: str, on: str = "", *, gpus: int = 1, phase: str = "Pending", dies: bool = False, **spec: Any) -> Object:
    metadata: Object = {"name": name, "namespace": "a", "uid": name, "annotations": {}}
    metadata |= {"deletionTimestamp": "2026-01-01T00:00:00Z"} if dies else {}
    limits = {"nvidia.com/gpu": str(gpus)} if gpus else {}
    spec |= {"containers": [{"name": "main", "resources": {"limits": limits}}]} | ({"nodeName": on} if on else {})
    return {"kind": "Pod", "metadata": metadata, "spec": spec, "status": {"phase": phase}}


def member(name: str, on: str = "", of: int = 2, **more: Any) -> Object:
    made = pod(name, on, **more)
    made["metadata"]["annotations"] |= {GANG_NAME: name.partition("-")[0], MIN_AVAILABLE: str(of)}
    return made


def share(name: str, on: str, part: str, *cards: str) -> Object:
    made = pod(name, on, gpus=0)
    made["metadata"]["annotations"] |= {"kubeshare/gpu_request": part, "kubeshare/gpu_limit": "1.0"}
    made["metadata"]["annotations"] |= {VISIBLE_DEVICES: ",".join(cards)}
    return made


def events(*steps: Step) -> list[Event]:
    made = []
    for version, (at_s, kind, obj) in enumerate(steps, start=1):
        metadata = {**obj["metadata"], "resourceVersion": str(version)}
        made.append(Event(at_s, kind, {**obj, "metadata": metadata}))
    return made


def judged(*steps: Step, end_s: float = 100.0) -> Checker:
    return judge(events(*steps), BOUNDS, end_s)


def wrong(*steps: Step, end_s: float = 100.0) -> list[str]:
    return [each.invariant for each in judged(*steps, end_s=end_s).violations]


# Gangs in part


def test_a_gang_that_is_whole_soon_is_as_it_should_be() -> None:
    checker = judged(
        (0, "ADDED", node()),
        (0, "ADDED", member("g-0")),
        (0, "ADDED", member("g-1")),
        (1, "MODIFIED", member("g-0", "n")),
        (4, "MODIFIED", member("g-1", "n")),
    )
    assert checker.violations == []
    assert (checker.in_part.longest_s, checker.in_part.longest_of, checker.in_part.spells) == (3, "a/g", 1)
    assert checker.in_part.unfinished() == []


def test_a_gang_of_which_one_member_stays_behind_is_in_part() -> None:
    steps: list[Step] = [
        (0, "ADDED", node()),
        (0, "ADDED", member("g-0")),
        (0, "ADDED", member("g-1")),
        (1, "MODIFIED", member("g-0", "n")),
    ]
    assert wrong(*steps, end_s=10) == []
    assert wrong(*steps, end_s=12) == ["a strict gang in part"]
    assert judged(*steps).in_part.unfinished() == ["gang a/g: 1 bound of 2, 2 needed"]


def test_a_gang_that_waits_for_a_device_plugin_has_more_time_but_not_for_ever() -> None:
    members = [member(f"g-{index}") for index in range(2)]
    bound = member("g-0", "n")
    for each in (*members, bound):
        each["spec"]["containers"][0]["resources"]["limits"] = {"volcano.sh/vgpu-number": "1"}
    history = events((0, "ADDED", members[0]), (0, "ADDED", members[1]), (1, "MODIFIED", bound))
    bounds = Bounds(partial_s=10, stale_node_s=1, plugin_s=20)

    def in_part(end_s: float) -> bool:
        violations = judge(history, bounds, end_s).violations
        return "a strict gang in part" in [each.invariant for each in violations]

    assert not in_part(30)
    assert in_part(32)


def test_a_gang_that_was_in_part_for_too_long_is_told_of_even_if_it_is_whole_at_last() -> None:
    steps: list[Step] = [
        (0, "ADDED", node()),
        (0, "ADDED", member("g-0")),
        (0, "ADDED", member("g-1")),
        (1, "MODIFIED", member("g-0", "n")),
        (30, "MODIFIED", member("g-1", "n")),
        (40, "MODIFIED", member("g-1", "n", phase="Running")),
    ]
    assert wrong(*steps) == ["a strict gang in part"]


def test_a_gang_that_is_bound_one_by_one_from_its_first_member_on_is_in_part_once_enough_exist() -> None:
    steps: list[Step] = [(0, "ADDED", node()), (0, "ADDED", member("g-0", "n"))]
    assert wrong(*steps) == []
    assert wrong(*steps, (20, "ADDED", member("g-1")), end_s=40) == ["a strict gang in part"]


def test_a_gang_that_its_user_deletes_may_be_seen_in_part_but_not_one_of_which_an_unbound_member_came_anew() -> None:
    whole: list[Step] = [
        (0, "ADDED", node()),
        (0, "ADDED", member("g-0", "n")),
        (0, "ADDED", member("g-1", "n")),
    ]
    assert wrong(*whole, (9, "MODIFIED", member("g-0", "n", dies=True)), (9, "ADDED", member("g-2"))) == []
    begun: list[Step] = [
        (0, "ADDED", node()),
        (0, "ADDED", member("g-0")),
        (0, "ADDED", member("g-1")),
        (1, "DELETED", member("g-1")),
        (2, "ADDED", member("g-2")),
        (3, "MODIFIED", member("g-0", "n")),
    ]
    assert wrong(*begun) == ["a strict gang in part"]


def test_a_gang_with_a_name_that_was_used_before_is_judged_anew() -> None:
    steps: list[Step] = [
        (0, "ADDED", node()),
        (0, "ADDED", member("g-0", "n")),
        (0, "ADDED", member("g-1", "n")),
        (1, "DELETED", member("g-0", "n")),
        (1, "DELETED", member("g-1", "n")),
        (2, "ADDED", member("g-2")),
        (2, "ADDED", member("g-3")),
        (3, "MODIFIED", member("g-2", "n")),
    ]
    assert wrong(*steps) == ["a strict gang in part"]


# Nodes and cards


def test_a_node_over_its_size_is_told_of_also_through_a_pod_that_terminates() -> None:
    full: list[Step] = [(0, "ADDED", node(gpus=2)), (1, "ADDED", pod("a", "n", gpus=2))]
    assert wrong(*full) == []
    assert wrong(*full, (2, "ADDED", pod("b", "n"))) == ["a node over its size"]
    assert wrong(*full, (2, "MODIFIED", pod("a", "n", gpus=2, dies=True)), (3, "ADDED", pod("b", "n"))) == [
        "a node over its size"
    ]
    assert wrong(*full, (2, "DELETED", pod("a", "n", gpus=2)), (3, "ADDED", pod("b", "n"))) == []
    assert wrong(*full, (2, "MODIFIED", pod("a", "n", gpus=2, phase="Succeeded")), (3, "ADDED", pod("b", "n"))) == []


def test_the_order_of_versions_counts_not_that_in_which_the_watches_told() -> None:
    steps: list[Step] = [
        (0, "ADDED", node(gpus=1)),
        (1, "ADDED", pod("a", "n")),
        (2, "DELETED", pod("a", "n")),
        (3, "ADDED", pod("b", "n")),
    ]
    told = events(*steps)
    assert judge([told[3], told[1], told[0], told[2]], BOUNDS, 9).violations == []


@pytest.mark.parametrize(("resource", "much"), [("cpu", "33"), ("memory", "129Gi"), ("example.com/none", "1")])
def test_every_resource_counts(resource: str, much: str) -> None:
    greedy = pod("a", "n")
    greedy["spec"]["containers"][0]["resources"] = {"requests": {resource: much}}
    assert wrong((0, "ADDED", node()), (0, "ADDED", greedy)) == ["a node over its size"]


def test_quantities_are_read_exactly() -> None:
    assert [amount(text) for text in ("1500m", "2", "1Ki", "1k", "0.5")] == [1.5, 2, 1024, 1000, 0.5]


def test_a_card_over_its_size_is_told_of() -> None:
    half: list[Step] = [(0, "ADDED", node(cards=2)), (1, "ADDED", share("a", "n", "0.6", "GPU-n-0"))]
    assert wrong(*half) == []
    assert wrong(*half, (2, "ADDED", share("b", "n", "0.4", "GPU-n-0"))) == []
    assert wrong(*half, (2, "ADDED", share("b", "n", "0.5", "GPU-n-1"))) == []
    assert wrong(*half, (2, "ADDED", share("b", "n", "0.5", "GPU-n-0"))) == ["a card over its size"]


def test_cards_that_nobody_lists_are_known_by_their_indexes() -> None:
    assert wrong((0, "ADDED", node()), (1, "ADDED", share("a", "n", "0.5", "3"))) == []
    assert wrong((0, "ADDED", node()), (1, "ADDED", share("a", "n", "0.5", "4"))) == ["a card over its size"]


def test_memory_of_a_card_is_counted_in_volcanos_terms() -> None:
    offer = node(gpus=0)
    offer["status"]["allocatable"]["volcano.sh/vgpu-number"] = "20"
    offer["metadata"]["annotations"] = {"volcano.sh/node-vgpu-register": "GPU-0,10,16000,V100,true,hami-core:"}

    def vgpu(name: str, *entries: str) -> Object:
        made = pod(name, "n", gpus=0)
        limits = {"volcano.sh/vgpu-number": "1", "volcano.sh/vgpu-memory": "8000"}
        made["spec"]["containers"][0]["resources"]["limits"] = limits
        made["metadata"]["annotations"] = {"volcano.sh/vgpu-ids-new": ";".join(entries)}
        return made

    full: list[Step] = [(0, "ADDED", offer), (0, "ADDED", vgpu("a", "GPU-0,NVIDIA,8000,0:"))]
    assert wrong(*full, (1, "ADDED", vgpu("b", "GPU-0,NVIDIA,8000,0:"))) == []
    assert wrong(*full, (1, "ADDED", vgpu("b", "GPU-0,NVIDIA,8001,0:"))) == ["a card over its size"]
    assert wrong(*full, (1, "ADDED", vgpu("b", "GPU-1,NVIDIA,1000,0:"))) == ["a card over its size"]
    assert wrong(*full, (1, "ADDED", vgpu("b"))) == ["a card over its size"]


@pytest.mark.parametrize("cards", [[], ["GPU-other-0"], ["GPU-n-0", "GPU-n-1"]])
def test_a_share_of_no_card_or_of_another_nodes_or_of_too_many_is_told_of(cards: list[str]) -> None:
    assert wrong((0, "ADDED", node(cards=2)), (1, "ADDED", share("a", "n", "0.5", *cards))) == ["a card over its size"]


def test_shares_beside_whole_gpus_that_nobody_chose_are_told_of() -> None:
    steps: list[Step] = [(0, "ADDED", node(cards=2)), (1, "ADDED", share("a", "n", "0.5", "GPU-n-0"))]
    assert wrong(*steps, (2, "ADDED", pod("b", "n"))) == ["a card over its size"]


# Pods


def test_a_pod_that_changes_its_node_or_loses_it_is_told_of() -> None:
    steps: list[Step] = [(0, "ADDED", node()), (0, "ADDED", node("m")), (1, "ADDED", pod("a", "n"))]
    assert wrong(*steps, (2, "MODIFIED", pod("a", "m"))) == ["a pod bound twice"]
    assert wrong(*steps, (2, "MODIFIED", pod("a"))) == ["a pod bound twice"]
    assert wrong(*steps, (2, "MODIFIED", pod("a", "n", phase="Running"))) == []


TAINT = {"key": "bad", "effect": "NoSchedule"}


@pytest.mark.parametrize(
    "unfit", [node(taints=[TAINT]), node(taints=[{**TAINT, "effect": "NoExecute"}]), node(unschedulable=True)]
)
def test_a_pod_on_a_node_that_was_not_for_it_is_told_of_but_not_if_the_node_only_just_changed(unfit: Object) -> None:
    before: list[Step] = [(0, "ADDED", node()), (5, "MODIFIED", unfit)]
    assert wrong(*before, (5.9, "ADDED", pod("a", "n"))) == []
    assert wrong(*before, (6.1, "ADDED", pod("a", "n"))) == ["a pod against its constraints"]
    assert wrong(*before, (6.1, "ADDED", pod("a", "n", tolerations=[{"operator": "Exists"}]))) == []
    assert wrong(*before, (7, "MODIFIED", node()), (9, "ADDED", pod("a", "n"))) == []
    assert wrong((0, "ADDED", unfit), (0, "ADDED", pod("a", "n"))) == ["a pod against its constraints"]


def test_what_counts_is_when_kube_scheduler_asked_for_the_binding_where_that_is_known() -> None:
    steps: list[Step] = [(0, "ADDED", node()), (5, "MODIFIED", node(unschedulable=True)), (30, "ADDED", pod("a", "n"))]

    def judged_with(*asked_s: float) -> list[str]:
        return [each.text for each in judge(events(*steps), BOUNDS, 99, {("a", "n"): asked_s}).violations]

    assert judged_with(4) == []
    assert judged_with(5.9) == []
    assert judged_with(4, 29) == []
    assert "asked for 22.0 s before: the pod does not tolerate" in judged_with(8)[0]
    assert "never asked" in judged_with()[0]


def test_a_pod_on_another_node_than_it_selects_or_on_none_is_told_of() -> None:
    selects = pod("a", "n", nodeSelector={"kubernetes.io/hostname": "m"})
    assert wrong((0, "ADDED", node()), (1, "ADDED", selects)) == ["a pod against its constraints"]
    assert wrong((0, "ADDED", node()), (1, "DELETED", node()), (3, "ADDED", pod("a", "n"))) == [
        "a pod against its constraints"
    ]
    assert wrong((0, "ADDED", node("m")), (1, "ADDED", pod("a", "n"))) == ["a pod against its constraints"]


def test_tolerations_are_read_by_key_value_and_effect() -> None:
    tainted = node(taints=[{**TAINT, "value": "yes"}])
    fitting = [{"key": "bad", "operator": "Exists"}, {"key": "bad", "value": "yes", "effect": "NoSchedule"}]
    others = [{"key": "bad", "value": "no"}, {"key": "bad", "operator": "Exists", "effect": "NoExecute"}]
    for toleration in fitting:
        assert wrong((0, "ADDED", tainted), (1, "ADDED", pod("a", "n", tolerations=[toleration]))) == []
    for toleration in others:
        assert len(wrong((0, "ADDED", tainted), (1, "ADDED", pod("a", "n", tolerations=[toleration])))) == 1


# The checker itself


def test_a_history_that_does_not_end_with_what_exists_has_holes() -> None:
    history = events((0, "ADDED", node()), (1, "ADDED", pod("a")), (2, "MODIFIED", pod("a", "n")))
    assert list(differences(history, [node(), pod("a", "n")])) == []
    assert len(list(differences(history, [node(), pod("a", "m")]))) == 1
    assert len(list(differences(history, [node()]))) == 1
    assert len(list(differences(history, [node(), pod("a", "n"), pod("b")]))) == 1


def test_every_type_of_event_is_known() -> None:
    assert set(get_args(EventType)) == {"ADDED", "MODIFIED", "DELETED"}
