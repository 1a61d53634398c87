"""Was a gang ever seen in part, and for how long?

Looks at every event of the pods of a namespace, so that nothing hides between two polls.
"""

import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager

from e2e.cluster import Namespace, Object, wait_for
from e2e.watching import follow_pods

GANG_NAME = "gang.scheduling.koordinator.sh/name"
MIN_AVAILABLE = "gang.scheduling.koordinator.sh/min-available"

SETTLING_S = 1.0
"""For so long a gang may be seen in part: its Bindings are posted together, but kube-apiserver takes each by itself, on
two busy cores. A gang held in part shows for longer, as kube-scheduler tries a rejected pod again after a second."""


class GangWatch:
    """What the watch has told so far.

    A gang is in part while some of its pods are bound, but fewer than min-available.
    """

    def __init__(self) -> None:
        self.bound: defaultdict[str, set[str]] = defaultdict(set)
        self.most_on_a_node = 0
        self._longest_in_part_s: defaultdict[str, float] = defaultdict(float)
        self._in_part_since_s: dict[str, float] = {}
        self._node_of: dict[str, str] = {}
        self._dissolving: set[str] = set()

    def dissolve(self, gang: str) -> None:
        """Say that the gang's pods are about to be deleted, so that it may well be seen in part."""
        self._dissolving.add(gang)
        self._in_part_since_s.pop(gang, None)

    def longest_in_part_s(self) -> float:
        """Return for how long a gang was in part, at most; one that still is counts until now."""
        still = [time.monotonic() - since_s for since_s in self._in_part_since_s.values()]
        return max([*still, *self._longest_in_part_s.values()], default=0.0)

    def wait_bound(self, gang: str, count: int, deadline_s: float) -> None:
        """Wait until this many of the gang are bound."""
        wait_for(lambda: len(self.bound[gang]) == count, deadline_s, f"{count} pods of gang {gang} are bound")

    def see(self, event_type: str, pod: Object) -> None:
        """Take in one event."""
        annotations, uid = pod["metadata"].get("annotations", {}), pod["metadata"]["uid"]
        gang, node = annotations.get(GANG_NAME, ""), pod["spec"].get("nodeName", "")
        if event_type == "DELETED":
            self._node_of.pop(uid, None)
            self.bound[gang].discard(uid)
        elif node:
            self._node_of[uid] = node
            self.bound[gang].add(uid)
        self.most_on_a_node = max(self.most_on_a_node, *Counter(self._node_of.values()).values(), 0)
        if gang and gang not in self._dissolving:
            self._note(gang, in_part=0 < len(self.bound[gang]) < int(annotations[MIN_AVAILABLE]))

    def _note(self, gang: str, *, in_part: bool) -> None:
        now_s = time.monotonic()
        if in_part:
            self._in_part_since_s.setdefault(gang, now_s)
        elif gang in self._in_part_since_s:
            lasted_s = now_s - self._in_part_since_s.pop(gang)
            self._longest_in_part_s[gang] = max(self._longest_in_part_s[gang], lasted_s)


@contextmanager
def watch_gangs(namespace: Namespace) -> Iterator[GangWatch]:
    """Follow the pods of the namespace in a thread of its own; fails at the end when the watch broke before."""
    watch = GangWatch()
    with follow_pods(namespace, watch.see):
        yield watch
