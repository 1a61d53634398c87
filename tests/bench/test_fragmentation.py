"""Do whole GPUs stay free? A short part of the bench, with the same streams every time."""

from random import Random

import pytest

from e2e.bench.choosers import CHOOSERS, ours
from e2e.bench.fragmentation import (
    SMALL_CARDS,
    SMALL_NODES,
    Outcome,
    count_whole,
    draw_set,
    draw_stream,
    empty_rooms,
    play,
    whole_cards_kept,
    whole_cards_kept_by_gang,
)
from e2e.bench.optimum import most_whole_cards
from extender.model.pod import Occupant, PodShape
from tests.builders import a_shape, a_share

SIMPLE_RULES = sorted(CHOOSERS.keys() - {"ours"})
CASES = 60


def played(rule: str) -> Outcome:
    stream = draw_stream(Random("short"), cards=32, arrivals=600, load=0.6)  # noqa: S311 - chance that can be repeated
    return play(stream, CHOOSERS[rule], nodes=8, cards=4)


@pytest.mark.parametrize("rule", SIMPLE_RULES)
def test_no_simple_rule_keeps_more_whole_cards_free_and_serves_as_many_requests(rule: str) -> None:
    mine, theirs = played("ours"), played(rule)
    better_kept = theirs.of_possible > mine.of_possible + 0.01
    assert not (better_kept and theirs.refused_gpus <= mine.refused_gpus)
    assert mine.refused_gpus <= theirs.refused_gpus + 0.01


def test_small_sets_come_close_to_the_most_whole_cards_that_can_stay_free() -> None:
    sets = [draw_set(Random(f"small/{number}")) for number in range(CASES)]  # noqa: S311 - as above
    most = sum(most_whole_cards(shapes, SMALL_NODES, SMALL_CARDS) for shapes in sets)
    as_one_gang = sum(map(whole_cards_kept_by_gang, sets))
    as_they_come = sum(whole_cards_kept(shapes, ours) for shapes in sets)
    assert as_one_gang >= 0.98 * most
    assert as_they_come >= 0.95 * most, "whoever does not know what comes next loses a little more"


def test_the_optimum_is_one() -> None:
    shapes = [a_shape(gpu=0, cards=a_share(milli)) for milli in (600, 500, 400, 500)]
    assert most_whole_cards(shapes, nodes=1, cards=4) == 2
    assert most_whole_cards([*shapes, a_shape(gpu=0, cards=a_share(1000, count=2))], nodes=1, cards=4) == 0


@pytest.mark.parametrize("rule", sorted(CHOOSERS))
def test_every_rule_keeps_the_cards_within_their_size(rule: str) -> None:
    chance, rooms, placed = Random("sizes"), empty_rooms(2, 2), list[tuple[str, Occupant]]()  # noqa: S311 - as above
    for _ in range(200):
        shape: PodShape = a_shape(
            gpu=0, cpu_milli=1, memory_bytes=1, cards=a_share(chance.choice([100, 300, 700, 1000]))
        )
        choice = CHOOSERS[rule](shape, rooms)
        if choice is not None:
            placed.append((choice[0], Occupant(shape, cards=choice[1])))
            rooms[choice[0]] = rooms[choice[0]].having(placed[-1][1])
        elif placed:
            name, pod = placed.pop(chance.randrange(len(placed)))
            rooms[name] = rooms[name].without(pod)
        uses = [use for room in rooms.values() for use in room.taken_cards.values()]
        assert all(0 < use.core_milli <= 1000 for use in uses)
        assert count_whole(rooms) == 4 - len(uses)
