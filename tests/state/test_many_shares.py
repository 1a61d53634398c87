"""Many pods that ask for shares of cards at the same time: is any part of a card given twice, or lost?"""

from collections.abc import Iterator
from random import Random

import pytest

from extender.model.device import WHOLE_MILLI
from tests.card_world import CardWorld, Gpu, uses_of

NODES, CARDS = 8, 8


@pytest.fixture
def world() -> Iterator[CardWorld]:
    """Eight nodes of eight cards."""
    nodes = [f"n{number}" for number in range(NODES)]
    made = CardWorld({name: ("own", [Gpu(f"GPU-{name}-{number}") for number in range(CARDS)]) for name in nodes})
    yield made
    made.close()


def assert_no_card_is_used_twice(world: CardWorld) -> None:
    """By what bound pods have, and by that together with what is reserved."""
    rooms = world.rig.cluster.snapshot().rooms
    for name, pods in world.on_nodes().items():
        inventory = rooms[name].node.inventory
        assert inventory is not None
        sizes = {card.key: card.memory_bytes for card in inventory.cards}
        for uses in (uses_of(pods, inventory), rooms[name].taken_cards):
            assert all(use.core_milli <= WHOLE_MILLI and use.memory_bytes <= sizes[key] for key, use in uses.items())


def test_a_thousand_times_the_next_pod_is_asked_about_before_the_last_one_is_bound(world: CardWorld) -> None:
    chance = Random("overlapping")  # noqa: S311 - chance that can be repeated
    asked = accepted = bound = 0
    while asked < 1000:
        size = chance.choice([0, 0, 2, 3])  # singles and gangs
        names = [f"p{asked}-{number}" for number in range(max(1, size))]
        tenths = chance.choice([1, 2, 3, 5, 7, 10])
        uids = [world.create(name, "KubeShare 2", tenths, f"g{asked}" if size else "", size) for name in names]
        for uid in uids:  # nobody of them is known before, none of those before them is bound
            asked += 1
            accepted += world.try_pod(uid)
            assert_no_card_is_used_twice(world)
        if chance.random() < 0.5:
            for uid in chance.sample(world.to_bind(), k=min(4, len(world.to_bind()))):
                world.call_bind(uid)
            for uid in tuple(world.posts):
                world.settle(uid, "bound" if chance.random() < 0.9 else "failed")
                bound += uid in world.pods and bool(world.pods[uid]["spec"].get("nodeName"))
        world.deliver(chance.randrange(8))
        settled = [uid for uid in world.pods if uid not in world.calls and uid not in world.assumed]
        for uid in chance.sample(settled, k=len(settled) // 4):
            world.delete(uid)
        assert_no_card_is_used_twice(world)
    assert accepted > 400
    assert bound > 150


def test_five_hundred_tenths_on_sixty_four_cards_are_all_placed_though_every_twentieth_binding_fails(
    world: CardWorld,
) -> None:
    chance = Random("failing")  # noqa: S311 - as above
    uids = [world.create(f"p{number}", "KubeShare 2", 1) for number in range(500)]
    world.deliver()
    failed = rounds = 0
    while world.waiting():
        rounds += 1
        assert rounds < 20, f"{len(world.waiting())} still wait"
        for uid in world.waiting():
            world.try_pod(uid)
        for uid in world.to_bind():
            world.call_bind(uid)
        for uid in tuple(world.posts):
            fails = chance.random() < 0.05
            failed += fails
            world.settle(uid, "failed" if fails else "bound")
        assert_no_card_is_used_twice(world)
        world.deliver()
    assert failed > 10
    assert all(world.pods[uid]["spec"]["nodeName"] for uid in uids)
    world.wait(0.0)
    assert world.rig.reserved() == 0
    used = [key for room in world.rig.cluster.snapshot().rooms.values() for key in room.taken_cards]
    assert len(used) == 50, "ten to a card, so that the others stay whole"
