"""Pauses of what has come to nothing again and again."""

import pytest

from extender.state.doubling import doubled_s
from extender.state.past import LONGEST_COSTLY_REFUSAL_S, LONGEST_REFUSAL_S, REFUSAL_HOLDS_S, Past
from tests.builders import a_shape


@pytest.mark.parametrize(("times", "pause_s"), [(0, 5.0), (1, 10.0), (2, 20.0), (3, 30.0), (5000, 30.0)])
def test_a_pause_doubles_up_to_the_longest(times: int, pause_s: float) -> None:
    assert doubled_s(5.0, times, 30.0) == pause_s


def test_a_node_that_is_refused_all_night_is_left_out_for_the_same_time_each_time() -> None:
    past, what = Past(), ("n1", a_shape())
    held_s = []
    for _ in range(5000):
        past.refuse(what, 0.0, costs_s=0.0)
        held_s.append(past.refused_until_s[what])
    assert held_s[:3] == [REFUSAL_HOLDS_S, 2 * REFUSAL_HOLDS_S, 4 * REFUSAL_HOLDS_S]
    assert held_s[-1] == LONGEST_REFUSAL_S


def test_a_node_on_which_one_waits_in_vain_is_left_out_for_longer_from_the_second_time_on() -> None:
    past, what = Past(), ("n1", a_shape())
    held_s = []
    for _ in range(5000):
        past.refuse(what, 0.0, costs_s=30.0)
        held_s.append(past.refused_until_s[what])
    assert held_s[:4] == [REFUSAL_HOLDS_S, 60.0, 180.0, LONGEST_COSTLY_REFUSAL_S]
    assert held_s[-1] == LONGEST_COSTLY_REFUSAL_S
