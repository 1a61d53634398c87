"""Something that goes on beside a scenario, in a thread of its own."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def in_background(work: Callable[[threading.Event], None]) -> Iterator[None]:
    """Let it work until the end, which the event tells it; fails at the end with what it failed with."""
    ended, failures = threading.Event(), list[BaseException]()

    def run() -> None:
        try:
            work(ended)
        except Exception as error:  # noqa: BLE001 - whatever it is, the scenario ends with it
            failures.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
    if failures:
        raise failures[0]
