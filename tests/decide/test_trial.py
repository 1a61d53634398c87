"""Pods that are placed together take what they take one by one, whoever picks their cards."""

import pytest

from extender.decide.trial import Trial
from extender.model.device import CardManager, CardRequest
from extender.model.snapshot import Snapshot
from tests.builders import a_node, a_pod, a_room, a_shape, a_share, some_cards, whole_gpus


@pytest.mark.parametrize("manager", [CardManager.OWN, CardManager.HAMI])
@pytest.mark.parametrize(("cards", "gpu", "chosen"), [(whole_gpus(1), 1, {CardManager.HAMI}), (None, 1, set())])
@pytest.mark.parametrize("count", [1, 3])
def test_whole_gpus(
    manager: CardManager, cards: CardRequest | None, gpu: int, chosen: set[CardManager], count: int
) -> None:
    pod = a_pod("p", shape=a_shape(gpu=gpu, cards=cards)).occupant
    rooms = {"n1": a_room(a_node("n1", gpu=4, inventory=some_cards(4, manager=manager)))}
    together, one_by_one = Trial(Snapshot(0, rooms)), Trial(Snapshot(0, rooms))
    together.place(pod, "n1", count)
    for _ in range(count):
        one_by_one.place(pod, "n1")
    assert together.room("n1") == one_by_one.room("n1")
    assert len(together.room("n1").pods) == count
    assert len(together.room("n1").taken_cards) == (count if manager in chosen else 0)


def test_more_shares_than_there_is_room_for_are_as_many_pods_all_the_same() -> None:
    """Whether they fit is the caller's question; but what is placed is counted."""
    pod = a_pod("p", shape=a_shape(gpu=0, cards=a_share(500))).occupant
    trial = Trial(Snapshot(0, {"n1": a_room(a_node("n1", inventory=some_cards(1)))}))
    trial.place(pod, "n1", 3)
    room = trial.room("n1")
    assert len(room.pods) == 3
    assert [use.core_milli for use in room.taken_cards.values()] == [1000]
