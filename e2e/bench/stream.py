"""What becomes of a day's training jobs if they are placed pod by pod, as gangs, and as gangs that are packed?

Jobs come, wait, run and go; nodes, pods and time exist in the model only, so that no control plane is needed. All
placers go by one queue, kube-scheduler's: whatever finds no room is tried again once something has gone. What backs
off is not waited for, as the queue is empty otherwise, but comes last. Pod by pod, what is queued is a pod, else a
gang. No room is kept for the large ones, though the extender would do so after its patience.

A job trains once all its pods have a node. Placed pod by pod, those that have one hold it until then, parameter servers
included. Where such jobs hold so much that none of them becomes whole, and nothing else runs, that is a deadlock.
Nobody resolves it here, though people would at some time: jobs "never whole" are those that wait still when nothing
happens any more. They count as complete at that time, which is too soon. Gangs cannot end so.

What makes deadlocks is the back-off: while an older job's pods back off for long, a younger one's get ahead of them.
Without any (`--backoff 0`) the older one comes first, and partial jobs hold GPUs idle, but hardly for ever.
"""

import heapq
from collections import Counter
from collections.abc import Iterator, Sequence
from math import floor
from random import Random

from msgspec import Struct

from e2e.bench.job_placers import PLACERS, RACK, Placer
from e2e.bench.report import Row, percentile
from e2e.bench.training_jobs import CPU_MILLI, GPU, MEMORY_BYTES, Job, draw_jobs, pods_of
from extender.model.node import Node, NodeRoom
from extender.model.pod import Pod
from extender.model.resources import CPU, MEMORY, PODS
from extender.model.snapshot import Snapshot
from extender.model.topology import Topology

GPUS = 4
"""Of each node, which has room for twice as many pods otherwise, so that GPUs decide."""

NODES_IN_RACK = 4
"""So that a job of 16 GPUs just fits into a rack."""

REMOTE_SPEED = 0.8
"""Of a worker that is not beside its parameter server. An assumption, nothing is measured: gradients that leave the
node commonly cost some 15 to 30 % of a step. Racks make no further difference."""

FIRST_BACKOFF_S, LONGEST_BACKOFF_S = 1.0, 10.0
"""kube-scheduler's defaults; it doubles with each try."""


class Outcome(Struct, frozen=True):
    """What became of a stream. Shares are of 1; of GPUs, they are of all GPUs until the last job came."""

    useful: float
    """What the jobs got done: a job that is slowed down keeps its GPUs for longer, which is no use."""

    busy: float
    """The GPUs of jobs that were whole, whether slow or not."""

    idle_gpu_s: float
    """GPU-seconds held by jobs that were not whole, until the last job came."""

    completion_s: tuple[float, ...]
    """From coming to the end, of each job."""

    never_whole: int

    across_nodes: float
    """Of the pairs of worker and parameter server, like the next two."""

    across_at_least: float
    """Those that no placing brings together, as the job has more workers than a node has GPUs."""

    across_racks: float


def measure_stream(
    *, nodes: Sequence[int], jobs: int, seeds: Sequence[int], longest_backoff_s: float = LONGEST_BACKOFF_S
) -> Iterator[Row]:
    """Play the same streams by each placer, on clusters of so many nodes."""
    streams = {seed: draw_jobs(Random(seed), jobs) for seed in seeds}  # noqa: S311 - chance that can be repeated is what is wanted
    for count in nodes:
        for name, placer in PLACERS.items():
            outcomes = [play(stream, placer, count, seed, longest_backoff_s) for seed, stream in streams.items()]
            yield {"GPUs": count * GPUS, "placed as": name, **_means(outcomes)}


def play(
    jobs: Sequence[Job], placer: Placer, nodes: int, seed: int = 0, longest_backoff_s: float = LONGEST_BACKOFF_S
) -> Outcome:
    """Let the jobs come and go until nothing happens any more."""
    cluster = _Cluster(placer, nodes, Random(seed), longest_backoff_s)  # noqa: S311 - as above
    cluster.expect(jobs)
    while cluster.happenings:
        cluster.go_on()
    return cluster.outcome(jobs)


class _Queued(Struct):
    """Pods that are placed together; `stirred` says that something has gone since they were tried."""

    job: Job
    pods: Sequence[Pod]
    since: float
    tries: int = 0
    stirred: bool = True

    def turn(self, now: float, longest_backoff_s: float) -> tuple[bool, float, float]:
        """Return its turn among those that are tried now, as kube-scheduler has it since 1.33, to the second."""
        backoff_s = min(longest_backoff_s, FIRST_BACKOFF_S * 2.0 ** (self.tries - 1)) if self.tries else 0.0
        ends = floor(self.since + backoff_s)
        return (True, ends, self.since) if backoff_s and ends >= floor(now) else (False, 0.0, self.since)


class _Running(Struct, frozen=True):
    job: Job
    speed: float
    """Of all workers together; one beside its parameter server adds 1."""


class _Cluster:
    """Nodes, a queue and a clock that jumps from one happening to the next."""

    def __init__(self, placer: Placer, nodes: int, chance: Random, longest_backoff_s: float) -> None:
        self._placer, self._chance, self._longest_backoff_s = placer, chance, longest_backoff_s
        self._rooms = {node.name: NodeRoom(node) for node in map(_node, range(nodes))}
        self._topology = Topology((RACK,), {name: room.node.labels for name, room in self._rooms.items()})
        self._now, self._window_s = 0.0, 0.0
        self.happenings: list[tuple[float, int, Job]] = []
        self._count = 0
        self._queue: list[_Queued] = []
        self._seats: dict[int, list[tuple[Pod, str]]] = {}
        self._running: dict[int, _Running] = {}
        self._ended: dict[int, float] = {}
        self._useful = self._busy = self._idle = 0.0
        self._pairs = Counter[str]()

    def expect(self, jobs: Sequence[Job]) -> None:
        """Have these jobs come."""
        self._window_s = jobs[-1].at
        for job in jobs:
            self._at(job.at, job)

    def go_on(self) -> None:
        """Go to the next happening: a job comes, or one ends."""
        at, _, job = heapq.heappop(self.happenings)
        self._pass_until(at)
        if job.number in self._running:
            self._end(job)
        else:
            pods = pods_of(job)
            units = [pods] if self._placer.whole else [(pod,) for pod in pods]
            self._queue += [_Queued(job, unit, since=at) for unit in units]
        self._try_queued()

    def outcome(self, jobs: Sequence[Job]) -> Outcome:
        """Sum up, once nothing happens any more."""
        of_all = self._window_s * len(self._rooms) * GPUS
        pairs = max(1, self._pairs["all"])
        return Outcome(
            useful=self._useful / of_all,
            busy=self._busy / of_all,
            idle_gpu_s=self._idle,
            completion_s=tuple(self._ended.get(job.number, self._now) - job.at for job in jobs),
            never_whole=len(jobs) - len(self._ended),
            across_nodes=self._pairs["nodes"] / pairs,
            across_at_least=self._pairs["unavoidable"] / pairs,
            across_racks=self._pairs["racks"] / pairs,
        )

    def _at(self, at: float, job: Job) -> None:
        self._count += 1
        heapq.heappush(self.happenings, (at, self._count, job))

    def _pass_until(self, at: float) -> None:
        passed = max(0.0, min(at, self._window_s) - self._now)
        busy = sum(each.job.workers for each in self._running.values())
        held = sum(room.taken.get(GPU, 0) for room in self._rooms.values())
        self._useful += passed * sum(each.speed for each in self._running.values())
        self._busy += passed * busy
        self._idle += passed * (held - busy)
        self._now = at

    def _try_queued(self) -> None:
        stirred = [each for each in self._queue if each.stirred]
        for queued in sorted(stirred, key=lambda each: each.turn(self._now, self._longest_backoff_s)):
            snapshot = Snapshot(1, self._rooms, topology=self._topology)
            nodes = self._placer.place(queued.pods, snapshot, self._chance)
            if nodes is None:
                queued.stirred, queued.since, queued.tries = False, self._now, queued.tries + 1
            else:
                self._queue.remove(queued)
                self._seat(queued, nodes)

    def _seat(self, queued: _Queued, nodes: Sequence[str]) -> None:
        job, seats = queued.job, self._seats.setdefault(queued.job.number, [])
        for pod, node in zip(queued.pods, nodes, strict=True):
            self._rooms[node] = self._rooms[node].having(pod.occupant)
            seats.append((pod, node))
        if len(seats) == len(pods_of(job)):
            speed = self._speed(seats)
            self._running[job.number] = _Running(job, speed)
            self._at(self._now + job.runtime_s * job.workers / speed, job)

    def _speed(self, seats: Sequence[tuple[Pod, str]]) -> float:
        """Return how fast the workers are together, and count which are apart from their parameter server."""
        home = next((node for pod, node in seats if pod.role == "ps"), None)
        workers = [node for pod, node in seats if pod.role == "worker"]
        if home is None:
            return len(workers)
        remote = [node for node in workers if node != home]
        rack = self._topology.domain_of(RACK, home)
        far = sum(self._topology.domain_of(RACK, node) != rack for node in remote)
        unavoidable = max(0, len(workers) - GPUS)
        self._pairs.update(all=len(workers), nodes=len(remote), racks=far, unavoidable=unavoidable)
        return len(workers) - len(remote) + len(remote) * REMOTE_SPEED

    def _end(self, job: Job) -> None:
        del self._running[job.number]
        self._ended[job.number] = self._now
        for pod, node in self._seats.pop(job.number):
            self._rooms[node] = self._rooms[node].without(pod.occupant)
        for queued in self._queue:
            queued.stirred = True


def _node(number: int) -> Node:
    pods = 2 * GPUS
    amounts = {CPU: pods * CPU_MILLI, MEMORY: pods * MEMORY_BYTES, GPU: GPUS, PODS: 110}
    return Node(f"n{number:02}", amounts, labels={RACK.labels[0]: f"r{number // NODES_IN_RACK}"})


def _means(outcomes: Sequence[Outcome]) -> dict[str, float]:
    def mean(values: Sequence[float]) -> float:
        return sum(values) / len(values)

    return {
        "useful %": 100 * mean([each.useful for each in outcomes]),
        "busy %": 100 * mean([each.busy for each in outcomes]),
        "held idle GPU-s": mean([each.idle_gpu_s for each in outcomes]),
        "never whole": mean([each.never_whole for each in outcomes]),
        "completion mean s": mean([mean(each.completion_s) for each in outcomes]),
        "completion p95 s": mean([percentile(each.completion_s, 95) for each in outcomes]),
        "pairs across nodes %": 100 * mean([each.across_nodes for each in outcomes]),
        "at least %": 100 * mean([each.across_at_least for each in outcomes]),
        "pairs across racks %": 100 * mean([each.across_racks for each in outcomes]),
    }
