"""How many pods of gangs are bound a second, how soon is a gang whole, and what does that cost?

The contenders take turns within one run, on one API server, each with its processes started anew and warmed by some
gangs. The clock runs from the first write to the last bound pod that a watch shows; what is counted is read when no
contender writes any more. The API server serves Kubernetes' own PodGroups for all contenders alike.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain, product
from statistics import median
from typing import TypeVar

import orjson
from msgspec import Struct

from e2e.bench.arrivals import ARRIVALS, Write, gang_writes, groups_path, send_all
from e2e.bench.contenders import Contender, contending, extender_pid
from e2e.bench.expenses import closing_bill, machine_time, opening_bill, peak_mib
from e2e.bench.report import Row, percentile
from e2e.bench.sightings import watching
from e2e.bench.still_cluster import still_cluster
from e2e.cluster import GANG_SCHEDULER, Cluster, DeadlineExceededError, Namespace, wait_for

T = TypeVar("T")

_BOUND_S = 180.0  # a thousand pods take 2 to 10 s; what takes a minute is still a figure
_GONE_S = 60.0
_REST_S = 1.0  # so that each has seen that the pods before are gone
_WITHOUT_FINALIZER = orjson.dumps({"metadata": {"finalizers": None}})
"""The controller of PodGroups, which takes it off once their pods are gone, does not run."""

_PROCESSES = ("scheduler", "extender", "API server")

NAMED_BY = ("gangs", "nodes", "arrival", "contender")
SPEED = "pods/s"


class Shape(Struct, frozen=True):
    """So many gangs of so many members."""

    gangs: int
    members: int

    @classmethod
    def of(cls, text: str) -> "Shape":
        """Read 50x20; raises ValueError."""
        gangs, members = map(int, text.split("x"))
        return cls(gangs, members)

    def __str__(self) -> str:
        return f"{self.gangs}x{self.members}"


_WARM = Shape(5, 20)


class Outcome(Struct, frozen=True):
    """When each gang began and was whole, and on how many nodes it is.

    Where the bench gave up, that counts as the moment, and `bound` is less than there are pods.
    """

    bound: int
    stolen_percent: float

    begun_s: Mapping[str, float]
    whole_s: Mapping[str, float]
    nodes: Mapping[str, int]


def measure_throughput(
    contenders: Mapping[str, Contender],
    *,
    shapes: Sequence[Shape],
    nodes: Sequence[int],
    arrivals: Sequence[str],
    rounds: int,
) -> Iterator[Row]:
    """Yield a row for each run."""
    for size in nodes:
        with still_cluster(size) as namespace:
            for shape, arrival, number in product(shapes, arrivals, range(1, rounds + 1)):
                for name in in_turn(tuple(contenders), number):
                    with contending(namespace.cluster, contenders[name]):
                        figures = _run(namespace, contenders[name], shape, ARRIVALS[arrival])
                    named = {"gangs": str(shape), "nodes": str(size), "arrival": arrival, "contender": name}
                    yield {**named, "round": str(number), **figures}


def in_turn(those: Sequence[T], number: int) -> Sequence[T]:
    """Return them in the order of a round, which is that of the one before turned round.

    So a machine that gets slower and slower is as fair to each of them.
    """
    return those if number % 2 else those[::-1]


def _run(namespace: Namespace, contender: Contender, shape: Shape, writers: int) -> dict[str, float]:
    """Bind the gangs once and return the figures."""
    cluster, pods = namespace.cluster, shape.gangs * shape.members
    warm(namespace, contender)
    pids = pids_of(cluster, contender)
    asks = "extender" in pids
    before = opening_bill(cluster, pids, asks=asks)
    outcome = place(namespace, contender, "gang", shape, writers)
    spent = closing_bill(cluster, pids, asks=asks).since(before)
    peaks = {name: peak_mib(pid) for name, pid in pids.items()}
    clear(namespace)
    return {
        **speed(outcome),
        **{f"{name} CPU s": spent.cpu_s.get(name, 0.0) for name in _PROCESSES},
        "writes/pod": spent.writes / pods,
        "filters/pod": spent.filter_calls / pods,
        "scheduler MiB": peaks["scheduler"],
        "extender MiB": peaks.get("extender", 0.0),
        "nodes/gang": median(outcome.nodes.values()),
    }


def speed(outcome: Outcome) -> dict[str, float]:
    """Return the figures that the clock tells."""
    took_s = max(outcome.whole_s.values()) - min(outcome.begun_s.values())
    waits = [whole_s - outcome.begun_s[gang] for gang, whole_s in outcome.whole_s.items()]
    return {
        SPEED: outcome.bound / took_s,
        "bound": outcome.bound,
        "stolen %": outcome.stolen_percent,
        "whole p50 s": percentile(waits, 50),
        "whole p99 s": percentile(waits, 99),
    }


def warm(namespace: Namespace, contender: Contender) -> None:
    """Bind some gangs that do not count; raises AssertionError when it cannot."""
    outcome = place(namespace, contender, "warm", _WARM, ARRIVALS["burst"])
    assert outcome.bound == _WARM.gangs * _WARM.members, f"only {outcome.bound} pods of {_WARM} are bound"
    clear(namespace)


def place(namespace: Namespace, contender: Contender, prefix: str, shape: Shape, writers: int) -> Outcome:
    """Create the gangs and wait until they are bound, or for as long as there is hope."""
    gangs = {
        gang: [f"{gang}-{index}" for index in range(shape.members)]
        for gang in (f"{prefix}-{index}" for index in range(shape.gangs))
    }
    writes = [write for gang in gangs for write in gang_writes(namespace.name, gang, shape.members, contender.gangs)]
    names = set(chain.from_iterable(gangs.values()))
    with watching(namespace) as seen:
        before = machine_time()
        begun_s = send_all(namespace.cluster, writes, writers)
        with suppress(DeadlineExceededError):
            wait_for(lambda: names <= seen.read().keys(), _BOUND_S, f"{len(names)} pods are bound")
    now_s = time.monotonic()
    return Outcome(
        bound=len(names & seen.bound_s.keys()),
        stolen_percent=machine_time().stolen_percent_since(before),
        begun_s=begun_s,
        whole_s={gang: max(seen.bound_s.get(name, now_s) for name in pods) for gang, pods in gangs.items()},
        nodes={gang: len({seen.node[name] for name in pods if name in seen.node}) for gang, pods in gangs.items()},
    )


def clear(namespace: Namespace) -> None:
    """Delete all pods, PodGroups and events, and let everybody see it."""
    cluster = namespace.cluster
    pods, groups = (_paths(cluster, of) for of in (f"{namespace.path}/pods", groups_path(namespace.name)))
    for writes in (
        [Write("PATCH", path, _WITHOUT_FINALIZER) for path in groups],
        [Write("DELETE", path) for path in (*pods, *groups)],
    ):
        send_all(cluster, writes, ARRIVALS["burst"])
    wait_for(lambda: not namespace.pods(), _GONE_S, "the pods are gone")
    # Not the collection: its thousands of events behind a backlog take longer than one request may.
    events = _paths(cluster, f"{namespace.path}/events")
    send_all(cluster, [Write("DELETE", path) for path in events], ARRIVALS["burst"])
    time.sleep(_REST_S)


def _paths(cluster: Cluster, collection: str) -> list[str]:
    return [f"{collection}/{each['metadata']['name']}" for each in cluster.api.get(collection)["items"]]


def pids_of(cluster: Cluster, contender: Contender) -> dict[str, int]:
    """Return the processes that work for a contender, by their names in a row."""
    beside = extender_pid(cluster, contender)
    pids = {"scheduler": cluster.processes[GANG_SCHEDULER].pid, "API server": cluster.processes["kube-apiserver"].pid}
    return pids | ({"extender": beside} if beside else {})
