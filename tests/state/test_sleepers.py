"""Pods without a gang that were turned away for a gang's sake, and are not asked for again though there is room."""

from msgspec import structs

from extender.model.claim import GangClaim, GangKey
from extender.model.pod import Pod
from extender.state.reservations import Stage
from extender.state.sleepers import ASKED_AGAIN_S
from tests.builders import a_node, a_pod
from tests.rig import BINDING_S, Rig


def a_rig_whose_room_is_kept(*, is_written: bool = True) -> tuple[Rig, list[Pod], Pod]:
    """Return one with room for a gang, which has it and is not bound yet, and a pod that was turned away for it.

    `is_written` says whether kube-scheduler could write on the pod that it sleeps.
    """
    rig = Rig(a_node("n1", gpu=2))
    gang = [a_pod(f"w{i}", gang="g", min_available=2) for i in range(2)]
    rig.create(*gang)
    rig.node_for(gang[0])
    single = a_pod("single", created_at=5)
    rig.create(single)
    assert "kept for a gang" in rig.text_for(single)
    if is_written:
        rig.turn_away(single)
    return rig, gang, single


def nominated(rig: Rig) -> list[tuple[str, str]]:
    return [(each.name, each.node) for each in rig.nominations]


def test_a_pod_that_nobody_asks_for_after_a_gang_gave_its_room_back_is_woken_with_room() -> None:
    rig, gang, single = a_rig_whose_room_is_kept()
    rig.delete(*gang)  # that were not bound: kube-scheduler wakes nobody
    rig.later()
    assert nominated(rig) == []
    rig.later(ASKED_AGAIN_S)
    assert nominated(rig) == [("single", "n1")]
    assert rig.node_for(single) == "n1"
    rig.bind(single, "n1")
    assert rig.reserved() == 0


def test_a_pod_that_is_asked_for_in_time_is_not_woken() -> None:
    rig, gang, single = a_rig_whose_room_is_kept()
    rig.delete(*gang)
    rig.later(ASKED_AGAIN_S / 2)
    assert rig.node_for(single) == "n1"
    rig.later(ASKED_AGAIN_S)
    assert nominated(rig) == []


def test_two_pods_and_room_for_one_the_older_one_is_woken() -> None:
    rig, gang, single = a_rig_whose_room_is_kept()
    older = a_pod("older", created_at=4)
    rig.create(older)
    rig.text_for(older)
    rig.turn_away(older)
    rig.create(a_pod("other", gang="h", min_available=1, created_at=1))
    rig.delete(*gang)
    rig.later()
    rig.later(ASKED_AGAIN_S)
    assert nominated(rig) == [("older", "n1")]
    assert rig.cluster.reservations.slot_of(single.uid) is None


def test_a_pod_that_goes_elsewhere_gives_the_room_back_that_was_to_wake_it() -> None:
    rig, gang, single = a_rig_whose_room_is_kept()
    rig.delete(*gang)
    rig.later()
    rig.later(ASKED_AGAIN_S)
    assert rig.slot(single).stage is Stage.PLANNED
    rig.cluster.upsert_node(a_node("n2", gpu=2))
    assert rig.node_for(single, offered=["n2"]) == "n2"
    assert rig.reserved() == 0


def test_a_pod_that_does_not_come_though_it_was_woken_loses_its_room_in_time() -> None:
    rig, gang, single = a_rig_whose_room_is_kept()
    rig.delete(*gang)
    rig.later()
    rig.later(ASKED_AGAIN_S)
    rig.later(BINDING_S)
    assert rig.reserved() == 0
    rig.later(ASKED_AGAIN_S)
    assert rig.reserved() == 1, "and is woken again"
    rig.delete(single)
    rig.later(ASKED_AGAIN_S)
    assert rig.reserved() == 0


def test_a_pod_of_which_nobody_could_write_that_it_sleeps_is_woken_all_the_same() -> None:
    rig, gang, _ = a_rig_whose_room_is_kept(is_written=False)
    rig.delete(*gang)
    for _ in range(3):
        rig.later(ASKED_AGAIN_S)
    assert nominated(rig) == [("single", "n1")]


def test_no_room_is_held_for_a_pod_that_is_being_deleted() -> None:
    """Its finalizer may keep it there for as long as it likes."""
    rig, gang, single = a_rig_whose_room_is_kept()
    rig.delete(*gang)
    rig.later()
    rig.terminate(single)
    rig.later(ASKED_AGAIN_S)
    assert rig.reserved() == 0


def test_a_pod_that_joined_a_gang_since_has_room_with_that_and_not_once_more_by_itself() -> None:
    rig, gang, single = a_rig_whose_room_is_kept()
    rig.delete(*gang)
    rig.later()
    claim = GangClaim(GangKey("default/late"), min_available=3)
    rig.create(structs.replace(rig.cluster.pods[single.uid], gang=claim))
    rig.later(ASKED_AGAIN_S)
    siblings = [structs.replace(a_pod(f"sibling-{i}", created_at=6), gang=claim) for i in range(2)]
    rig.create(*siblings)
    rig.cluster.upsert_node(a_node("n2", gpu=2))
    rig.later()
    assert [(held.key, len(held.slots)) for held in rig.cluster.reservations] == [(claim.key, 3)]
