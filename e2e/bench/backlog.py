"""What do gangs that cannot run cost those that can? The same gangs, in turn without and behind thousands of others.

The others' members take a node each, and each of their gangs has a few members more than there are nodes:
kube-scheduler alone would let them pass, and only the extender keeps them waiting.
"""

import time
from collections.abc import Iterator, Sequence

from e2e.bench.arrivals import ARRIVALS, pod_writes, send_all
from e2e.bench.contenders import CONTENDERS, contending
from e2e.bench.expenses import cpu_s
from e2e.bench.gangs import members
from e2e.bench.report import Row
from e2e.bench.still_cluster import GPUS, still_cluster
from e2e.bench.throughput import Shape, clear, in_turn, pids_of, place, speed, warm
from e2e.bench.waiting_load import waiting
from e2e.cluster import Mode, Namespace, wait_for

NAMED_BY = ("mode", "backlog")

_TOLD_S = 600.0  # each of 5,000 is turned away once, which takes some milliseconds
_LOOK_S = 2.0  # between two looks at 5,000 pods, each of which costs a tenth of a second
_REST_S = 5.0  # longer than a gang that was turned away is still written about


def measure_backlog(modes: Sequence[Mode], *, nodes: int, pods: int, shape: Shape, rounds: int) -> Iterator[Row]:
    """Yield a row for each run; raises DeadlineExceededError."""
    with still_cluster(nodes) as namespace:
        for mode in modes:
            with contending(namespace.cluster, CONTENDERS[mode]):
                warm(namespace, CONTENDERS[mode])
                for number in range(1, rounds + 1):
                    for backlog in in_turn((0, pods), number):
                        _fill(namespace, backlog, nodes)
                        named = {"mode": mode, "backlog": str(backlog), "round": str(number)}
                        yield {**named, **_run(namespace, mode, shape)}


def _run(namespace: Namespace, mode: Mode, shape: Shape) -> dict[str, float]:
    pids = pids_of(namespace.cluster, CONTENDERS[mode])
    before = {name: cpu_s(pid) for name, pid in pids.items()}
    outcome = place(namespace, CONTENDERS[mode], "gang", shape, ARRIVALS["burst"])
    spent = {f"{name} CPU s": cpu_s(pid) - before[name] for name, pid in pids.items()}
    clear(namespace)
    return {**speed(outcome), **spent}


def _fill(namespace: Namespace, pods: int, nodes: int) -> None:
    """Create the gangs that cannot run and wait until all are told so."""
    if not pods:
        return
    gangs = max(1, pods // (nodes + 1))
    size, more = divmod(pods, gangs)
    assert size > nodes, f"{pods} pods are too few to be too many for {nodes} nodes"
    writes = [
        write
        for index in range(gangs)
        for write in pod_writes(
            namespace.name, f"never-{index}", members(f"never-{index}", size + (index < more), GPUS)
        )
    ]
    send_all(namespace.cluster, writes, ARRIVALS["burst"])

    def are_told() -> bool:
        time.sleep(_LOOK_S)
        return waiting(namespace) == pods

    wait_for(are_told, _TOLD_S, f"{pods} pods are turned away or held")
    time.sleep(_REST_S)
