"""What happened on the API server, from the first event on? By watches of our own, which no proxy touches.

It is judged live, a second late so that events of pods and nodes can be put in order, and anew as a whole at the end.
"""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.client import HTTPException, HTTPSConnection

import orjson

from e2e.client import Object
from e2e.cluster import Cluster
from e2e.faults.calls import Call
from e2e.faults.checker import Bounds, Checker, Event, Violation, differences, judge
from e2e.faults.proxy import Moment
from e2e.watching import open_watch

_WATCHED = ("/api/v1/nodes", "/api/v1/pods")
_AGAIN_S = 0.1
_ORDERED_AFTER_S = 1.0  # by then the watch of the other kind has told, too


class History:
    """All events of nodes and pods since its start; made by `recorded`."""

    def __init__(self, cluster: Cluster, bounds: Bounds, calls: dict[tuple[str, str], list[float]] | None) -> None:
        self.events: list[Event] = []
        self._calls = calls
        self.live = Checker(bounds, self._calls)
        self._cluster = cluster
        self._bounds = bounds
        self._new: list[Event] = []
        self._turn = threading.Lock()

    def take(self, event_type: str, obj: Object) -> None:
        """Keep an event; called in the threads of the watches."""
        if event_type not in ("ADDED", "MODIFIED", "DELETED"):
            raise ValueError(f"the checker's own watch says {event_type}: {obj}")
        event = Event(time.monotonic(), event_type, obj)  # type: ignore[arg-type] # as was just asked
        with self._turn:
            self.events.append(event)
            self._new.append(event)

    def look(self) -> list[Violation]:
        """Judge what came so far; return all violations found up to now."""
        now_s = time.monotonic()
        with self._turn:
            ready = [event for event in self._new if event.at_s <= now_s - _ORDERED_AFTER_S]
            self._new = [event for event in self._new if event.at_s > now_s - _ORDERED_AFTER_S]
        for event in sorted(ready, key=lambda each: each.version):
            self.live.see(event)
        self.live.look(now_s - _ORDERED_AFTER_S)
        return self.live.violations

    def note_call(self, call: Call, moment: Moment) -> None:
        """Keep when kube-scheduler asked for a pod to be bound; for the proxy in between to call."""
        if self._calls is not None and moment == "came" and call.of_class == "verbs POST bind":
            asked = orjson.loads(call.body)
            self._calls.setdefault((asked["PodUID"], asked["Node"]), []).append(time.monotonic())

    def judged(self) -> Checker:
        """Judge everything anew, in its true order; having looked away counts as a violation."""
        existing = [obj for path in _WATCHED for obj in self._cluster.api.get(path)["items"]]
        end_s = time.monotonic() + 10 * _ORDERED_AFTER_S
        while (missed := self._missed(existing)) and time.monotonic() < end_s:
            time.sleep(0.1)
            existing = [obj for path in _WATCHED for obj in self._cluster.api.get(path)["items"]]
        checker = judge(self._all(), self._bounds, time.monotonic(), self._calls)
        checker.violations += [Violation("the checker looked away", end_s, text) for text in missed]
        return checker

    def _missed(self, existing: list[Object]) -> list[str]:
        return list(differences(self._all(), existing))

    def _all(self) -> list[Event]:
        with self._turn:
            return list(self.events)


class _Watch:
    """A watch that goes on where it was when the API server ends it, as it does with one that lags; nothing is lost.

    It ends for good when told to, or when what comes next is not to be had any more, which `differences` shows.
    """

    def __init__(self, history: History, cluster: Cluster, path: str) -> None:
        self._history = history
        self._cluster = cluster
        self._path = path
        self._since = ""
        self._is_over = False
        self._connection: HTTPSConnection | None = None
        self._thread = threading.Thread(target=self._run, name=f"the checker's watch of {path}")
        self._thread.start()

    def end(self) -> None:
        """Watch no longer."""
        self._is_over = True
        if self._connection is not None and self._connection.sock is not None:
            # Not SSLSocket's own shutdown, after which the thread would read what is encrypted.
            with suppress(OSError):
                socket.socket.shutdown(self._connection.sock, socket.SHUT_RDWR)
        self._thread.join()

    def _run(self) -> None:
        while not self._is_over:
            with suppress(OSError, HTTPException):
                self._follow()
            time.sleep(_AGAIN_S)

    def _follow(self) -> None:
        self._connection, answer = open_watch(self._cluster, self._path, self._since)
        try:
            for line in answer:
                if line.endswith(b"\n") and not self._is_over:
                    event = orjson.loads(line)
                    self._history.take(event["type"], event["object"])
                    self._since = event["object"]["metadata"]["resourceVersion"]
        finally:
            self._connection.close()


@contextmanager
def recorded(cluster: Cluster, bounds: Bounds, *, knows_calls: bool = False) -> Iterator[History]:
    """Watch until the end; `knows_calls` where `note_call` is to be told of every bind call of kube-scheduler."""
    history = History(cluster, bounds, {} if knows_calls else None)
    watches = [_Watch(history, cluster, path) for path in _WATCHED]
    try:
        yield history
    finally:
        for watch in watches:
            watch.end()
