"""How long is something left alone that has come to nothing so many times?"""

_ENOUGH = 64
"""Doublings, after which any pause is longer than the longest one. A float bursts at 1,024: a long night of tries."""


def doubled_s(first_s: float, times: int, longest_s: float) -> float:
    """Return the pause that was `first_s` at first and has doubled so many times since, up to the longest one."""
    return min(first_s * 2.0 ** min(times, _ENOUGH), longest_s)
