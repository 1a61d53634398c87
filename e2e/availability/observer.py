"""What did the API server see: when was nobody bound, was a gang in part, did a node hold more than it has?

It looks at every event of the pods, so that nothing hides between two polls.
"""

import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise

from e2e.cluster import Namespace, Object
from e2e.watching import follow_on

GANG = "gang.scheduling.koordinator.sh/name"
MIN_AVAILABLE = "gang.scheduling.koordinator.sh/min-available"


class Observer:
    """What the watch has told so far. Each pod has one GPU; a node has `gpus`."""

    def __init__(self, gpus: int) -> None:
        self.bound: defaultdict[str, set[str]] = defaultdict(set)
        self.bound_at_s: list[float] = []
        self.most_on_a_node = 0
        self.moved: list[str] = []
        self._gpus = gpus
        self._size: dict[str, int] = {}
        self._node_of: dict[str, str] = {}
        self._in_part_since_s: dict[str, float] = {}
        self._longest_in_part_s = 0.0

    def see(self, event_type: str, pod: Object) -> None:
        """Take in one event; no pod is deleted here."""
        if event_type == "ERROR":
            return
        meta, node = pod["metadata"], pod["spec"].get("nodeName", "")
        gang, uid = meta["annotations"][GANG], meta["uid"]
        self._size[gang] = int(meta["annotations"][MIN_AVAILABLE])
        if not node or self._node_of.get(uid) == node:
            return
        now_s = time.monotonic()
        if uid in self._node_of:
            self.moved.append(meta["name"])
        self._node_of[uid] = node
        self.bound[gang].add(uid)
        self.bound_at_s.append(now_s)
        self.most_on_a_node = max(self.most_on_a_node, *Counter(self._node_of.values()).values())
        since_s = self._in_part_since_s.setdefault(gang, now_s)
        if len(self.bound[gang]) >= self._size[gang]:
            self._longest_in_part_s = max(self._longest_in_part_s, now_s - since_s)

    def longest_in_part_s(self) -> float:
        """Return for how long a gang was bound in part, at most; one that still is counts until now."""
        still = [time.monotonic() - self._in_part_since_s[gang] for gang in self.in_part()]
        return max([*still, self._longest_in_part_s])

    def in_part(self) -> list[str]:
        """Return the gangs of which some members are bound, and some are not."""
        return [gang for gang, uids in tuple(self.bound.items()) if len(uids) < self._size[gang]]

    def longest_gap_s(self) -> float:
        """Return the longest time between two Bindings."""
        times = sorted(self.bound_at_s)
        return max((late - early for early, late in pairwise(times)), default=0.0)

    def faults(self, gangs: int, size: int) -> list[str]:
        """Say what is wrong at the end, when so many gangs of this size should run."""
        whole = sum(len(uids) == size for uids in self.bound.values())
        found = [] if whole == gangs else [f"{whole} of {gangs} gangs are whole, in part are {self.in_part()}"]
        if self.most_on_a_node > self._gpus:
            found.append(f"a node of {self._gpus} GPUs held {self.most_on_a_node} pods of one each")
        return found + ([f"bound twice: {self.moved}"] if self.moved else [])


@contextmanager
def observe(namespace: Namespace, gpus: int) -> Iterator[Observer]:
    """Follow the pods of the namespace in a thread of its own."""
    observer = Observer(gpus)
    with follow_on(namespace.cluster, f"{namespace.path}/pods", observer.see):
        yield observer
