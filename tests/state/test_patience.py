"""Gangs that wait: room is kept for them as others end, and nobody waits for ever for anybody."""

import pytest
from msgspec import structs

from extender.model.claim import GangKey, Terms
from extender.model.pod import Pod
from extender.model.pod_group import KOORDINATOR, PodGroup
from extender.state.patience import SEARCH_AGAIN_S, TURN_S
from tests.builders import NO_TERMS, a_node, a_pod
from tests.rig import PATIENCE_S, Rig

WAITING_S = 600.0
"""Koordinator's default waiting-time."""


def a_gang(name: str, count: int, created_at: float, terms: Terms = NO_TERMS, *, priority: int = 0) -> list[Pod]:
    return [
        a_pod(f"{name}{i}", gang=name, min_available=count, terms=terms, created_at=created_at, priority=priority)
        for i in range(count)
    ]


def groups_of(*names: str) -> Terms:
    return Terms(groups=tuple(GangKey(f"default/{name}") for name in names))


def busy_rig(singles: int = 8) -> tuple[Rig, list[Pod]]:
    """Return a node of eight GPUs and the single pods that use them."""
    rig = Rig(a_node("n1", gpu=8))
    pods = [a_pod(f"s{i}", node="n1", created_at=i) for i in range(singles)]
    rig.create(*pods)
    return rig, pods


def runs(rig: Rig, gang: list[Pod]) -> bool:
    return all(rig.cluster.reservations.slot_of(pod.uid) for pod in gang)


def seconds_until_it_runs(rig: Rig, gang: list[Pod], singles: list[Pod], node: str = "n1") -> int:
    """Every other second the oldest of the single pods on the node ends; each second one more comes for its room."""
    for second in range(300):
        rig.later(1)
        if runs(rig, gang):
            return second
        if second % 2:
            rig.delete(singles.pop(0))
        single = a_pod(f"late{second}", created_at=20 + second)
        if len(singles) < 8 and rig.ask(single, [node]).accepted:
            rig.create(single)
            singles.append(rig.bind(single, node))
    raise AssertionError("it starves")


def test_small_pods_that_keep_coming_do_not_starve_a_gang_that_needs_everything() -> None:
    rig, singles = busy_rig()
    gang = a_gang("g", 8, created_at=10)
    rig.create(*gang)
    for second in range(90):
        rig.later(1)
        oldest = singles.pop(0) if singles else None
        if oldest:
            rig.delete(oldest)
        single = a_pod(f"late{second}", created_at=20 + second)
        if not runs(rig, gang) and rig.ask(single).accepted:
            rig.create(single)
            singles.append(rig.bind(single, "n1"))
        if runs(rig, gang):
            break
    assert runs(rig, gang)
    assert PATIENCE_S <= second <= PATIENCE_S + 9


def test_before_its_patience_ends_others_use_what_it_cannot() -> None:
    rig, singles = busy_rig()
    rig.create(*a_gang("g", 8, created_at=10))
    rig.later()
    rig.later(PATIENCE_S - 1)
    rig.delete(singles[0])
    rig.later()
    assert rig.ask(a_pod("late", created_at=50)).accepted


def test_small_pods_are_not_blocked_by_a_gang_larger_than_the_cluster() -> None:
    rig, singles = busy_rig()
    rig.create(*a_gang("g", 9, created_at=10))
    rig.later()
    rig.later(10 * PATIENCE_S)
    rig.delete(singles[0])
    rig.later()
    assert rig.ask(a_pod("late", created_at=50)).accepted


def test_a_gang_larger_than_the_cluster_says_so_once() -> None:
    rig, singles = busy_rig()
    rig.create(*a_gang("g", 9, created_at=10))
    rig.later()
    for single in singles:
        rig.later(20)
        rig.delete(single)
    (event,) = [event for event in rig.announcements if event.reason == "GangTooLarge"]
    assert 'Gang "default/g" is larger than the cluster' in event.note
    assert "1 Insufficient nvidia.com/gpu" in event.note


def test_a_gang_that_merely_waits_is_not_called_too_large() -> None:
    rig, _ = busy_rig()
    rig.create(*a_gang("g", 8, created_at=10))
    rig.later(10 * PATIENCE_S)
    assert not [event for event in rig.announcements if event.reason == "GangTooLarge"]


def test_a_pod_that_is_older_or_matters_more_than_the_gang_goes_first() -> None:
    rig, singles = busy_rig()
    rig.create(*a_gang("g", 8, created_at=10))
    rig.later()
    rig.later(PATIENCE_S)
    rig.delete(singles[0])
    rig.later()
    assert not rig.ask(a_pod("younger", created_at=50)).accepted
    assert rig.ask(a_pod("older", created_at=5)).accepted
    assert rig.ask(a_pod("higher", created_at=50, priority=1)).accepted


def test_what_the_gang_cannot_use_is_anybodys() -> None:
    rig = Rig(a_node("n1", gpu=8), a_node("cpu", gpu=0))
    rig.create(*[a_pod(f"s{i}", node="n1", created_at=i) for i in range(8)])
    rig.create(*a_gang("g", 7, created_at=10))
    rig.later()
    rig.later(PATIENCE_S)
    rig.delete(a_pod("s0"))
    rig.later()
    assert list(rig.ask(a_pod("big", gpu=2, created_at=50)).accepted) == ["cpu"]
    assert list(rig.ask(a_pod("small", gpu=0, created_at=50)).accepted) == ["n1", "cpu"]


def test_a_younger_gang_does_not_take_what_is_kept_for_the_older_one() -> None:
    rig, singles = busy_rig()
    old, young = a_gang("old", 8, created_at=10), a_gang("young", 2, created_at=20)
    rig.create(*old, *young)
    rig.later()
    rig.later(PATIENCE_S)
    rig.delete(*singles[:4])
    rig.later()
    assert not runs(rig, young)
    rig.delete(*singles[4:])
    rig.later()
    assert runs(rig, old)


def test_what_was_kept_in_vain_is_let_go_for_a_while_and_then_kept_for_twice_as_long() -> None:
    rig, singles = busy_rig()
    gang = a_gang("g", 8, created_at=10)
    rig.create(*gang)
    rig.later()
    rig.later(PATIENCE_S)
    rig.delete(singles[0])
    late = a_pod("late", created_at=50)
    rig.later(WAITING_S - 1)
    assert not rig.ask(late).accepted
    rig.later(1)
    assert rig.ask(late).accepted
    rig.later(WAITING_S)
    assert not rig.ask(late).accepted
    rig.later(2 * WAITING_S - 1)
    assert not rig.ask(late).accepted
    rig.later(1)
    assert rig.ask(late).accepted


def test_the_members_of_a_non_strict_gang_hold_what_they_find_while_others_look_on() -> None:
    rig, singles = busy_rig()
    gang = a_gang("g", 8, created_at=10, terms=Terms(strict=False))
    rig.create(*gang)
    rig.later()
    rig.delete(singles[0])
    assert not rig.ask(a_pod("late", created_at=50)).accepted
    rig.delete(*singles[1:])
    rig.later()
    assert runs(rig, gang)


def test_pods_that_stay_with_their_node_are_not_waited_for() -> None:
    rig = Rig(a_node("n1", gpu=2))
    daemon = a_pod("daemon", node="n1", gpu=1)
    rig.create(structs.replace(daemon, stays_with_node=True))
    rig.create(*a_gang("g", 2, created_at=10))
    rig.later()
    assert [event.reason for event in rig.announcements] == ["GangTooLarge"]
    assert rig.ask(a_pod("late", created_at=50)).accepted


def test_a_pod_on_its_way_to_its_node_when_the_patience_ends_does_not_keep_the_gang_waiting_for_ever() -> None:
    rig, singles = busy_rig(7)
    gang = a_gang("g", 8, created_at=10)
    rig.create(*gang)
    rig.later()
    rig.later(PATIENCE_S - 1)
    coming = a_pod("coming", gang="coming", min_available=1, created_at=5)
    rig.create(coming)
    rig.later(1)
    assert not rig.cluster.earmarks.get(GangKey("default/g"))
    singles.append(rig.bind(coming, rig.node_for(coming)))
    assert seconds_until_it_runs(rig, gang, singles) <= SEARCH_AGAIN_S + 2 * 8


def test_room_is_kept_for_a_gang_that_needs_fewer_members_than_before() -> None:
    rig = Rig(a_node("n1", gpu=8))
    rig.create(*[a_pod(f"s{i}", node="n1", created_at=i) for i in range(8)])
    older = a_gang("older", 4, created_at=8)
    gang = [a_pod(f"g{i}", gang="g", min_available=None, created_at=10) for i in range(8)]
    rig.cluster.upsert_pod_group(PodGroup(KOORDINATOR, GangKey("default/g"), 8))
    rig.create(*older, *gang)
    rig.later()
    rig.later(PATIENCE_S)
    rig.later(TURN_S)
    assert not rig.cluster.earmarks.get(GangKey("default/g")), "half of the node is kept for the older one"
    rig.later(SEARCH_AGAIN_S)
    rig.cluster.upsert_pod_group(PodGroup(KOORDINATOR, GangKey("default/g"), 4))
    rig.later()
    assert rig.cluster.earmarks.get(GangKey("default/g"))


def test_a_gang_beside_a_pod_that_stays_with_its_node_gets_its_room_when_that_goes() -> None:
    rig, singles = busy_rig(7)
    daemon = structs.replace(a_pod("daemon", node="n1"), stays_with_node=True)
    gang = a_gang("g", 8, created_at=10)
    rig.create(daemon, *gang)
    rig.later()
    assert [event.reason for event in rig.announcements] == ["GangTooLarge"]
    rig.delete(daemon)
    singles.append(a_pod("instead", node="n1", created_at=11))
    rig.create(singles[-1])
    rig.later()
    assert seconds_until_it_runs(rig, gang, singles) <= PATIENCE_S + 2 * 8


def test_a_gang_is_larger_than_the_cluster_once_a_pod_that_stays_with_its_node_takes_the_room() -> None:
    rig, singles = busy_rig()
    rig.create(*a_gang("g", 8, created_at=10))
    rig.later()
    assert rig.announcements == []
    rig.delete(singles[0])
    rig.create(structs.replace(a_pod("daemon", node="n1"), stays_with_node=True))
    rig.later()
    assert [event.reason for event in rig.announcements] == ["GangTooLarge"]


def test_nothing_is_searched_again_where_only_pods_come_and_go(monkeypatch: pytest.MonkeyPatch) -> None:
    rig = Rig(a_node("n1", gpu=8), a_node("n2", gpu=0))
    rig.create(*[a_pod(f"s{i}", node="n1", created_at=i) for i in range(8)])
    older, gang = a_gang("older", 4, created_at=8), a_gang("g", 8, created_at=10)
    rig.create(*older, *gang)
    rig.later()
    rig.later(PATIENCE_S)
    rig.later(TURN_S)
    searches: list[object] = []
    monkeypatch.setattr("extender.state.clearing.clear_room", lambda *_: searches.append(_))
    for number in range(10):
        small = a_pod(f"small{number}", gpu=0, node="n2")
        rig.create(small)
        rig.later(SEARCH_AGAIN_S)
        rig.delete(small)
        rig.later()
    assert searches == [], "what is kept for the older one stands in its way, whoever else ends"


def test_gangs_whose_patience_ends_at_once_are_searched_for_one_after_the_other_the_oldest_first() -> None:
    """A search may take a second in a large cluster, and the verbs wait for it."""
    rig = Rig(*(a_node(f"n{i}", gpu=1) for i in range(3)))
    rig.create(*(a_pod(f"s{i}", node=f"n{i}", created_at=i) for i in range(3)))
    rig.create(*(pod for number in (2, 0, 1) for pod in a_gang(f"g{number}", 1, created_at=10 + number)))
    rig.later()
    kept: list[list[str]] = []
    for passed_s in (PATIENCE_S, TURN_S, TURN_S):
        rig.later(passed_s)
        kept.append(sorted(key.partition("/")[2] for earmark in rig.cluster.earmarks for key in earmark.keys))
    assert kept == [["g0"], ["g0", "g1"], ["g0", "g1", "g2"]]


def test_two_gangs_of_the_same_second_are_not_promised_the_same_room() -> None:
    rig = Rig(a_node("n1", gpu=1), a_node("n2", gpu=1))
    rig.create(a_pod("s1", node="n1"), a_pod("s2", node="n2"))
    rig.create(*a_gang("a", 1, created_at=10), *a_gang("b", 1, created_at=10))
    rig.later()
    rig.later(PATIENCE_S)
    rig.later(TURN_S)
    promised = [placement.node for earmark in rig.cluster.earmarks for placement in earmark.placements]
    assert sorted(promised) == ["n1", "n2"]


def bound_together(name: str, count: int, *, priority: int = 0) -> list[Pod]:
    """Return a gang's members that are bound together with those of the other one of "old" and "new"."""
    terms = groups_of("new", "old")
    return [
        a_pod(f"{name}{i}", gang=name, min_available=count, terms=terms, created_at=i, priority=priority)
        for i in range(count)
    ]


def test_a_gang_that_runs_does_not_end_what_is_kept_for_the_one_that_it_is_bound_together_with() -> None:
    rig, singles = busy_rig(7)
    rig.create(structs.replace(bound_together("old", 1)[0], node_name="n1"), *bound_together("new", 2))
    rig.later()
    rig.terminate(*singles[:2])
    for name in ("n2", "n3"):
        rig.cluster.upsert_node(a_node(name, gpu=0))
        rig.later()
    assert rig.cluster.earmarks.get(GangKey("default/new"))
    assert not rig.cluster.changes.room_freed, "the cycle comes to rest"


def test_surplus_members_of_a_gang_leave_the_room_to_the_gang_that_it_is_bound_together_with() -> None:
    rig = Rig(a_node("n1", gpu=4))
    new, old = bound_together("new", 1), bound_together("old", 3)
    surplus = [structs.replace(new[0], uid=f"uid-{i}", name=f"surplus{i}", created_at=50 + i) for i in range(3)]
    rig.create(*new, *surplus, *old)
    rig.later()
    rig.later()
    assert runs(rig, [*new, *old])


def test_a_gang_bound_together_with_one_that_runs_does_not_starve() -> None:
    rig = Rig(a_node("n1", gpu=1), a_node("n2", gpu=8))
    singles = [a_pod(f"s{i}", node="n2", created_at=i) for i in range(8)]
    new = bound_together("new", 8)
    rig.create(structs.replace(bound_together("old", 1)[0], node_name="n1"), *singles, *new)
    assert seconds_until_it_runs(rig, new, singles, "n2") <= PATIENCE_S + 2 * 8


def two_that_name_one(*, runs: bool) -> tuple[Rig, dict[str, list[Pod]], list[Pod]]:
    """Return gangs a and c, each of which names b, which names nobody, and the pods that they may preempt."""
    rig = Rig(a_node("n1", gpu=1), a_node("n2", gpu=4), a_node("n3", gpu=4))
    singles = [a_pod(f"s{i}", node="n2" if i < 4 else "n3", created_at=2) for i in range(8)]
    b = a_pod("b0", gang="b", min_available=1, created_at=1, priority=10)
    if not runs:
        singles.append(a_pod("s8", node="n1", created_at=2))
    gangs = {
        "b": [structs.replace(b, node_name="n1") if runs else b],
        "a": a_gang("a", 4, 20, groups_of("a", "b"), priority=10),
        "c": a_gang("c", 4, 10, groups_of("b", "c"), priority=10),
    }
    rig.create(*singles, *gangs["b"])
    rig.create(*gangs["a"], *gangs["c"])
    rig.later()
    return rig, gangs, singles


def test_two_gangs_that_name_one_that_runs_each_have_their_room_kept() -> None:
    rig, gangs, singles = two_that_name_one(runs=True)
    kept = {name: rig.cluster.earmarks.get(GangKey(f"default/{name}")) for name in "abc"}
    assert kept["a"]
    assert kept["c"]
    assert not kept["b"]
    assert kept["a"].leaving.isdisjoint(kept["c"].leaving)
    rig.delete(*[single for single in singles if single.uid in kept["c"].leaving])
    rig.later()
    assert runs(rig, gangs["c"])
    assert rig.cluster.earmarks.get(GangKey("default/a")) == kept["a"]
    rig.delete(*[single for single in singles if single.uid in kept["a"].leaving])
    rig.later()
    assert runs(rig, gangs["a"])


def test_what_is_kept_for_one_that_waits_is_not_dropped_for_another_that_names_it() -> None:
    rig, gangs, singles = two_that_name_one(runs=False)
    for _ in range(3):
        rig.later()
        assert not rig.cluster.changes.room_freed, "the cycle comes to rest"
    for _ in range(20):
        for single in [each for mark in rig.cluster.earmarks for each in singles if each.uid in mark.leaving]:
            rig.delete(single)
        rig.later(1)
        for pod in [pod for gang in gangs.values() for pod in gang if rig.cluster.reservations.slot_of(pod.uid)]:
            rig.bind(pod, rig.slot(pod).node)
        rig.later()
    assert all(rig.cluster.pods[pod.uid].node_name for gang in gangs.values() for pod in gang)
