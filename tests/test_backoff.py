"""How long pauses are: longer and longer, up to a bound, and never all at the same time."""

from extender.backoff import Backoff


def test_bounds_double_up_to_the_longest_and_start_again_after_a_reset() -> None:
    backoff = Backoff(0.2, 1.0, uniform=lambda _low, high: high)
    assert [backoff.next_s() for _ in range(5)] == [0.2, 0.4, 0.8, 1.0, 1.0]
    backoff.reset()
    assert backoff.next_s() == 0.2


def test_pauses_are_spread_from_zero_to_their_bound() -> None:
    backoff = Backoff(1.0, 1.0)
    pauses = [backoff.next_s() for _ in range(1000)]
    assert all(0.0 <= pause <= 1.0 for pause in pauses)
    assert min(pauses) < 0.1
    assert max(pauses) > 0.9
