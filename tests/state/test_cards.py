"""Pods that ask for shares of cards, gangs of them and single ones, on the rig."""

import pytest
from msgspec import structs

from extender.model.device import BadCardRequest, CardDialect, CardManager, CardRequest, CardShare
from extender.model.node import Node
from extender.model.pod import Pod
from tests.builders import GPU, a_node, a_pod, a_shape, a_share, some_cards
from tests.rig import BINDING_S, PATIENCE_S, Rig

HALF = a_shape(gpu=0, cards=a_share(500))
WHOLE = a_shape(gpu=1, cards=a_share(1000, dialect=CardDialect.WHOLE))
WHOLE_SHARE = a_shape(gpu=0, cards=a_share(1000))


def a_gpu_node(name: str, cards: int = 2, manager: CardManager = CardManager.OWN) -> Node:
    return a_node(name, gpu=cards, inventory=some_cards(cards, prefix=f"GPU-{name}", manager=manager))


def halves(count: int) -> list[Pod]:
    return [a_pod(f"w{number}", gang="halves", min_available=count, shape=HALF) for number in range(count)]


def cards_of(rig: Rig, *pods: Pod) -> list[str]:
    return [share.uuid for pod in pods for share in rig.slot(pod).cards]


def test_eight_halves_run_exactly_where_eight_halves_exist_together() -> None:
    rig = Rig(a_gpu_node("n1"), a_gpu_node("n2", cards=1))
    workers = halves(8)
    rig.create(*workers)
    assert rig.text_for(workers[0]).endswith('"0/2 nodes are available: 2 Insufficient free GPU shares."')
    rig.cluster.upsert_node(a_gpu_node("n2", cards=2))
    rig.later()
    assert sorted(rig.node_for(worker) or "" for worker in workers) == ["n1"] * 4 + ["n2"] * 4
    cards = cards_of(rig, *workers)
    assert all(cards.count(card) == 2 for card in cards)


def test_a_pod_without_a_gang_gets_one_node_and_one_card_before_the_next_asks() -> None:
    rig = Rig(a_gpu_node("n1", cards=1))
    first, second, third = (a_pod(name, shape=HALF) for name in ("a", "b", "c"))
    rig.create(first, second, third)
    assert [rig.node_for(first), rig.node_for(second), rig.node_for(third)] == ["n1", "n1", None]
    assert rig.text_for(third) == (
        'Pod "default/c" has no room: "0/1 nodes are available: 1 Insufficient free GPU shares."'
    )
    rig.delete(first)
    rig.later()
    assert rig.node_for(third) == "n1"


def test_a_pod_that_is_let_through_and_never_bound_gives_its_card_back() -> None:
    rig = Rig(a_gpu_node("n1", cards=1))
    lost, other = a_pod("lost", shape=WHOLE_SHARE), a_pod("other", shape=WHOLE_SHARE)
    rig.create(lost, other)
    assert rig.node_for(lost) == "n1"
    rig.later(BINDING_S + 1)
    assert rig.node_for(other) == "n1"


def test_a_request_that_makes_no_sense_is_rejected_with_its_reason() -> None:
    rig = Rig(a_gpu_node("n1"))
    pod = a_pod("a", shape=a_shape(gpu=0, cards=BadCardRequest("the limit 0.4 is below the request 0.5")))
    rig.create(pod)
    text = 'Pod "default/a" asks for GPUs in a way that cannot be honoured: the limit 0.4 is below the request 0.5'
    assert rig.text_for(pod) == text
    rig.later()
    assert [(event.reason, event.note) for event in rig.announcements] == [("BadGpuRequest", text)]


def test_a_card_that_vanishes_takes_the_room_of_those_on_their_way_with_it() -> None:
    rig = Rig(a_gpu_node("n1", cards=2))
    running, waiting = a_pod("a", shape=WHOLE_SHARE), a_pod("b", shape=WHOLE_SHARE)
    rig.create(running, waiting)
    rig.bind(running, rig.node_for(running))
    assert rig.node_for(waiting) == "n1"
    gone = rig.slot(waiting).cards[0]
    rest = [card for card in some_cards(2, prefix="GPU-n1").cards if card.uuid != gone.uuid]
    inventory = structs.replace(some_cards(2, prefix="GPU-n1"), cards=tuple(rest))
    rig.cluster.upsert_node(a_node("n1", inventory=inventory))
    rig.later()
    assert rig.reserved() == 0
    assert rig.node_for(waiting) is None
    rig.cluster.upsert_node(a_gpu_node("n1", cards=2))
    rig.later()
    assert rig.node_for(waiting) == "n1"


def test_what_runs_on_a_card_that_comes_back_is_still_charged() -> None:
    rig = Rig(a_gpu_node("n1", cards=1))
    running, other = a_pod("a", shape=WHOLE_SHARE), a_pod("b", shape=HALF)
    rig.create(running, other)
    rig.bind(running, rig.node_for(running))
    rig.cluster.upsert_node(a_node("n1", inventory=some_cards(0)))
    rig.cluster.upsert_node(a_gpu_node("n1", cards=1))
    assert rig.node_for(other) is None


def test_a_terminating_pod_keeps_its_card_until_it_is_gone() -> None:
    rig = Rig(a_gpu_node("n1", cards=1))
    running, other = a_pod("a", shape=WHOLE_SHARE), a_pod("b", shape=WHOLE_SHARE)
    rig.create(running)
    rig.bind(running, rig.node_for(running))
    rig.create(other)
    rig.terminate(running)
    rig.later()
    assert rig.node_for(other) is None
    rig.delete(running)
    rig.later()
    assert rig.node_for(other) == "n1"


def test_what_somebody_else_puts_on_a_planned_card_ends_the_plan() -> None:
    rig = Rig(a_gpu_node("n1", cards=1))
    pod = a_pod("a", shape=WHOLE_SHARE)
    rig.create(pod)
    assert rig.node_for(pod) == "n1"
    card = CardShare(0, "GPU-n1-0", 500)
    rig.create(structs.replace(a_pod("foreign", shape=HALF, node="n1", scheduler_name="other"), cards=(card,)))
    rig.later()
    assert rig.node_for(pod) is None


def test_a_share_that_somebody_else_gives_ends_the_plan_for_whole_gpus_beside_it() -> None:
    rig = Rig(a_gpu_node("n1"))
    gang = [a_pod(f"w{number}", gang="whole", min_available=2, shape=WHOLE) for number in range(2)]
    rig.create(*gang)
    assert [rig.node_for(pod) for pod in gang] == ["n1", "n1"]
    card = CardShare(0, "GPU-n1-0", 500)
    rig.create(structs.replace(a_pod("foreign", shape=HALF, node="n1", scheduler_name="other"), cards=(card,)))
    rig.later()
    assert rig.reserved() == 0
    assert rig.node_for(gang[0]) is None


def test_the_kubelet_and_we_do_not_choose_on_the_same_node() -> None:
    rig = Rig(a_gpu_node("n1"), a_gpu_node("n2"))
    plain, half, other = a_pod("plain", shape=WHOLE), a_pod("half", shape=HALF), a_pod("other", shape=WHOLE)
    rig.create(plain, half, other)
    rig.bind(plain, "n1")
    assert rig.node_for(half) == "n2"
    answer = rig.ask(other)
    assert list(answer.accepted) == ["n1"]
    assert answer.rejected == {
        "n2": "node(s) have GPUs in shared use, beside which the kubelet must not pick whole ones"
    }


def test_a_manager_that_heeds_the_choice_takes_both_kinds_on_one_node() -> None:
    rig = Rig(a_gpu_node("n1", manager=CardManager.HAMI))
    shapes = [a_shape(gpu=1, cards=a_share(milli, dialect=CardDialect.HAMI)) for milli in (1000, 500)]
    whole, half = (
        a_pod(name, gang=name, min_available=1, shape=shape) for name, shape in zip("ab", shapes, strict=True)
    )
    rig.create(whole, half)
    assert [rig.node_for(whole), rig.node_for(half)] == ["n1", "n1"]
    assert sorted(cards_of(rig, whole, half)) == ["GPU-n1-0", "GPU-n1-1"]


def test_a_further_member_of_a_running_gang_gets_its_card_from_us_as_well() -> None:
    rig = Rig(a_gpu_node("n1", cards=1), a_gpu_node("n2", cards=1))
    workers = halves(2)
    rig.create(*workers)
    for worker in workers:
        rig.bind(worker, rig.node_for(worker))
    late = [a_pod(name, gang="halves", min_available=2, shape=HALF) for name in ("late-1", "late-2", "late-3")]
    rig.create(*late)
    assert [rig.node_for(each) for each in late] == ["n2", "n2", None]
    assert set(rig.ask(late[2]).rejected.values()) == {"Insufficient free GPU shares"}
    rig.delete(workers[0])
    rig.later()
    assert rig.node_for(late[2]) == "n1"


@pytest.mark.parametrize("asked", [a_share(500, dialect=CardDialect.GPUSHARE), a_share(500, dialect=CardDialect.HAMI)])
def test_a_node_gives_cards_only_in_its_managers_terms(asked: CardRequest) -> None:
    rig = Rig(a_gpu_node("n1"))
    pod = a_pod("a", shape=a_shape(gpu=0, cards=asked))
    rig.create(pod)
    assert "don't hand out GPUs for" in rig.text_for(pod)
    assert dict(rig.cluster.snapshot().rooms["n1"].taken).get(GPU, 0) == 0


def test_a_gang_that_has_waited_long_gets_the_cards_as_they_get_free() -> None:
    rig = Rig(a_gpu_node("n1"))
    small = [a_pod(f"small-{number}", shape=HALF, created_at=float(number)) for number in range(4)]
    rig.create(*small)
    for pod in small:
        rig.bind(pod, rig.node_for(pod))
    big = [a_pod(f"big-{number}", gang="big", min_available=2, shape=WHOLE_SHARE, created_at=9.0) for number in (0, 1)]
    late = [a_pod(f"late-{number}", shape=HALF, created_at=10.0 + number) for number in range(4)]
    rig.create(*big, *late)
    rig.later()
    rig.later(PATIENCE_S + 1)
    rig.delete(small[0], small[3])
    rig.later()
    assert [rig.node_for(pod) for pod in (*big, *late)] == [None] * 6
    rig.delete(small[1], small[2])
    rig.later()
    assert [rig.node_for(pod) for pod in (*big, *late)] == ["n1", "n1", None, None, None, None]


@pytest.mark.parametrize("manager", [CardManager.HAMI, CardManager.KOORDINATOR])
def test_a_gang_may_wait_for_the_end_of_pods_whose_cards_nobody_knows(manager: CardManager) -> None:
    rig = Rig(a_gpu_node("n1", cards=3, manager=manager))
    early = a_pod("early", shape=WHOLE, node="n1", scheduler_name="default-scheduler")  # before the manager came
    rig.create(early)
    gang = [a_pod(name, gang="late", min_available=2, shape=WHOLE) for name in ("a", "b")]
    rig.create(*gang)
    rig.later()
    rig.later(PATIENCE_S + 1)
    (earmark,) = rig.cluster.earmarks
    assert earmark.leaving == {early.uid}
    rig.delete(early)
    rig.later()
    assert [rig.node_for(pod) for pod in gang] == ["n1", "n1"]


def test_a_held_pod_without_a_gang_loses_its_gate_once_a_card_is_its_own() -> None:
    rig = Rig(a_gpu_node("n1", cards=1))
    first, second = (a_pod(name, shape=WHOLE_SHARE, held=True) for name in "ab")
    rig.create(first, second)
    rig.later()
    assert rig.take_gates_off() == ["a"]
    bound = rig.bind(rig.cluster.pods[first.uid], "n1")
    rig.later()
    assert rig.take_gates_off() == []
    rig.delete(bound)
    rig.later()
    assert rig.take_gates_off() == ["b"]


def test_a_pod_that_was_turned_away_is_nominated_when_a_card_is_free() -> None:
    rig = Rig(a_gpu_node("n1", cards=1))
    running, waiting = a_pod("a", shape=WHOLE_SHARE), a_pod("b", shape=WHOLE_SHARE)
    rig.create(running, waiting)
    rig.bind(running, rig.node_for(running))
    assert rig.node_for(waiting) is None
    rig.turn_away(waiting)
    rig.later()
    rig.delete(running)
    rig.later()
    assert [(each.name, each.node) for each in rig.nominations] == [("b", "n1")]


def test_nobody_is_killed_for_a_card() -> None:
    rig = Rig(a_gpu_node("n1", cards=1))
    low, high = a_pod("low", shape=WHOLE_SHARE), a_pod("high", shape=WHOLE_SHARE, priority=10)
    high = structs.replace(high, preempts=False)  # as the wire reads a pod that asks for a share
    rig.create(low)
    rig.bind(low, rig.node_for(low))
    rig.create(high)
    assert rig.node_for(high) is None
    assert rig.preempt(high, {"n1": [low]}) == {}


@pytest.mark.parametrize("manager", [CardManager.HAMI, CardManager.KOORDINATOR])
def test_a_node_that_changes_its_manager_ends_what_was_planned_in_terms_of_the_other(manager: CardManager) -> None:
    rig = Rig(a_gpu_node("n1"))
    half, whole = a_pod("a", shape=HALF), a_pod("b", gang="b", min_available=1, shape=WHOLE)
    rig.create(half)
    assert rig.node_for(half) == "n1"
    rig.cluster.upsert_node(a_gpu_node("n1", manager=manager))
    rig.later()
    assert rig.reserved() == 0
    rig.create(whole)
    assert rig.node_for(whole) == "n1"
    assert rig.slot(whole).cards
    rig.cluster.upsert_node(a_gpu_node("n1"))
    rig.delete(half)
    assert rig.node_for(whole) == "n1"
    assert not rig.slot(whole).cards


def test_of_pods_created_in_one_second_the_large_ones_go_first_and_so_all_find_room() -> None:
    rig = Rig(a_gpu_node("n1"))
    pods = [a_pod(f"p{milli}-{n}", shape=a_shape(gpu=0, cards=a_share(milli))) for milli in (400, 600) for n in (0, 1)]
    rig.create(*pods)
    assert [rig.node_for(pod) for pod in pods] == ["n1"] * 4
