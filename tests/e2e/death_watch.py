"""Which pods were killed, in which order and when?"""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from e2e.cluster import Namespace, Object, wait_for
from e2e.watching import follow_pods


class DeathWatch:
    """What the watch has told so far."""

    def __init__(self) -> None:
        self.seen_s: dict[str, float] = {}
        """By the pod's name, when its deletion was first seen; in the order of the deaths."""

    @property
    def victims(self) -> set[str]:
        """Return the names of all whose deletion has begun."""
        return set(self.seen_s)

    def later_than(self, moment_s: float) -> list[str]:
        """Return whose deletion was first seen after that moment."""
        return [name for name, seen_s in self.seen_s.items() if seen_s > moment_s]

    def wait_first(self, deadline_s: float) -> None:
        """Wait until somebody dies."""
        wait_for(lambda: self.seen_s, deadline_s, "a victim dies")

    def see(self, event_type: str, pod: Object) -> None:
        """Take in one event."""
        if event_type == "DELETED" or "deletionTimestamp" in pod["metadata"]:
            self.seen_s.setdefault(pod["metadata"]["name"], time.monotonic())


@contextmanager
def watch_deaths(namespace: Namespace) -> Iterator[DeathWatch]:
    """Follow the pods of the namespace in a thread of its own."""
    watch = DeathWatch()
    with follow_pods(namespace, watch.see):
        yield watch
