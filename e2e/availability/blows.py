"""What is done to the pair that leads while gangs keep coming, and what came of it?"""

import signal
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from msgspec import Struct

from e2e.availability.observer import GANG, MIN_AVAILABLE, Observer, observe
from e2e.availability.pairs import LEASE_S, RETRY_S, Pair, PairedCluster, Part
from e2e.cluster import DeadlineExceededError, Namespace, Object, wait_for
from e2e.nodes import make_node

GPUS = 8
SIZE = 4
EVERY_S = 0.25
"""A gang comes so often: more seldom than they are bound, so that Bindings show who serves."""

KUBELET_S = 1.0
"""So soon the kubelet starts a container again that has ended for the first time."""

WHOLE_S = 90.0
"""By then every gang runs: two terms of the lease, the longest back-off twice, and a busy machine."""

Blow = Callable[[PairedCluster, Pair], None]


class Outcome(Struct, frozen=True):
    """What was seen; `faults` is empty where all is well."""

    blow: str
    gangs: int
    took_s: float
    longest_gap_s: float
    longest_in_part_s: float
    faults: list[str]

    def __str__(self) -> str:
        """Return a line for people."""
        said = "; ".join(self.faults) or "every gang whole, nothing overcommitted"
        return (
            f"{self.blow}: {self.gangs} gangs in {self.took_s:.1f} s; nobody bound for {self.longest_gap_s:.1f} s "
            f"(lease {LEASE_S} s, looked at every {RETRY_S} s); a gang in part for {self.longest_in_part_s:.2f} s; "
            f"{said}"
        )


def _killed(*parts: Part) -> Blow:
    def blow(_: PairedCluster, leader: Pair) -> None:
        leader.kill(parts)
        time.sleep(KUBELET_S)
        leader.start(parts)

    return blow


def _stopped_for_longer_than_the_lease(_: PairedCluster, leader: Pair) -> None:
    for part in leader.processes:
        leader.signal(part, signal.SIGSTOP)
    time.sleep(1.5 * LEASE_S)
    for part in leader.processes:
        leader.signal(part, signal.SIGCONT)
    time.sleep(KUBELET_S)  # kube-scheduler ends itself then
    if "scheduler" in leader.processes:
        leader.start(("scheduler",))


def _rolled(cluster: PairedCluster, leader: Pair) -> None:
    for pair in sorted(cluster.pairs, key=lambda each: each is leader):
        pair.stop()
        pair.start()


SERVICE_BLOWS = ("extender killed", "pair stopped for longer than its lease", "rolling update")
"""Those that make sense where the kube-scheduler is elsewhere."""

BLOWS: Mapping[str, Blow] = {
    "pair killed": _killed("extender", "scheduler"),
    "extender killed": _killed("extender"),
    "kube-scheduler killed": _killed("scheduler"),
    "pair stopped for longer than its lease": _stopped_for_longer_than_the_lease,
    "rolling update": _rolled,
}


def strike(cluster: PairedCluster, name: str, gangs: int) -> Outcome:
    """Let so many gangs come, do it after a third of them, and wait until all are whole or it takes too long."""
    nodes = [make_node(f"n{index}", gpus=GPUS) for index in range(-(-gangs * SIZE // GPUS))]
    cluster.add_nodes(nodes)
    namespace = cluster.namespace(f"blow-{list(BLOWS).index(name)}-{round(time.time())}")
    began_s = time.monotonic()
    with observe(namespace, GPUS) as observer:
        coming = _coming(gangs)
        for _ in range(gangs // 3):
            namespace.apply(*next(coming))
        leader = cluster.leader()
        with ThreadPoolExecutor(1) as others:
            rest = others.submit(_apply_all, namespace, coming)
            BLOWS[name](cluster, leader)
            rest.result()
        with suppress(DeadlineExceededError):  # what is missing is said below
            wait_for(lambda: _is_all_bound(cluster, observer, gangs), WHOLE_S, "every gang runs")
        took_s = time.monotonic() - began_s
        faults = observer.faults(gangs, SIZE)
        outcome = Outcome(name, gangs, took_s, observer.longest_gap_s(), observer.longest_in_part_s(), faults)
    namespace.delete()
    cluster.delete_nodes()
    return outcome


def _is_all_bound(cluster: PairedCluster, observer: Observer, gangs: int) -> bool:
    for pair in cluster.pairs:
        pair.revive()
    return len(observer.bound_at_s) >= gangs * SIZE


def _apply_all(namespace: Namespace, coming: Iterator[list[Object]]) -> None:
    for members in coming:
        namespace.apply(*members)


def _coming(gangs: int) -> Iterator[list[Object]]:
    for index in range(gangs):
        yield [_member(f"g{index}", rank) for rank in range(SIZE)]
        time.sleep(EVERY_S)


def _member(gang: str, rank: int) -> Object:
    container = {"name": "main", "image": "example.com/train", "resources": {"limits": {"nvidia.com/gpu": "1"}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"{gang}-{rank}", "annotations": {GANG: gang, MIN_AVAILABLE: str(SIZE)}},
        "spec": {"schedulerName": "gang-scheduler", "terminationGracePeriodSeconds": 0, "containers": [container]},
    }
