"""Waiting for nothing to happen."""

import time
from collections.abc import Callable

STEADY_S = 3.0  # longer than kube-scheduler's first back-off, after which it tries a rejected pod again


def stays(holds: Callable[[], bool], for_s: float = STEADY_S) -> bool:
    """Whether `holds()` is true again and again: by default until all that was rejected has been tried once more."""
    end_s = time.monotonic() + for_s
    while time.monotonic() < end_s:
        if not holds():
            return False
        time.sleep(0.1)
    return True
