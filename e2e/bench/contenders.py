"""Who binds the same pods? A kube-scheduler with other settings each time, and what stands beside it.

All of them have the client limits of scheduler-config/dedicated.yaml, so that these limits are nobody's advantage.
"""

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Literal
from urllib.parse import urlsplit

from msgspec import Struct, structs

from e2e.bench.arrivals import GangForm
from e2e.cluster import EXTENDER, GANG_SCHEDULER, Cluster, Mode, wait_for
from e2e.processes import is_ok

_NO_OP = "no-op extender"
_START_S = 20.0  # an interpreter with aiohttp starts in one second

_AS_IT_COMES: Mapping[str, Any] = {"percentageOfNodesToScore": 0}
"""kube-scheduler then takes a sample, which is a tenth of 5,000 nodes."""

_SAID_TWICE = {"percentageOfNodesToScore"}
"""What the extender has to know of its kube-scheduler."""

_ALONE: Mapping[str, Any] = {"extenders": []}
_NO_OP_ENTRY = {
    "urlPrefix": "http://127.0.0.1:8888/v1",
    "filterVerb": "filter",
    "prioritizeVerb": "prioritize",
    "weight": 15,
    "nodeCacheCapable": True,
}


class Contender(Struct, frozen=True):
    """How its kube-scheduler differs from the repository's file, and who stands beside it."""

    settings: Mapping[str, Any] = {}
    flags: tuple[str, ...] = ()
    beside: Literal["nobody", "no-op", "ours"] = "nobody"
    mode: Mode = "filter"
    gangs: GangForm = "annotated"
    """Only ours reads annotations."""


CONTENDERS: Mapping[str, Contender] = {
    "plain": Contender({**_ALONE, **_AS_IT_COMES}),
    "plain 1%": Contender({**_ALONE, "percentageOfNodesToScore": 1}),
    "no-op": Contender({**_AS_IT_COMES, "extenders": [_NO_OP_ENTRY]}, beside="no-op"),
    "native": Contender(
        {**_ALONE, **_AS_IT_COMES}, ("--feature-gates=GenericWorkload=true,GangScheduling=true",), gangs="grouped"
    ),
    "filter": Contender(beside="ours"),
    "hold": Contender(beside="ours", mode="hold"),
}
"""What is compared by default."""

_GATED = {"hold, gated": Contender(beside="ours", mode="hold", gangs="gated")}
"""Pods come with the gate: the API server's policy, which adds it to others, has nothing to do."""

VARIANTS: Mapping[str, Contender] = _GATED | {
    f"{name} {percentage}%": structs.replace(
        contender, settings={**contender.settings, "percentageOfNodesToScore": percentage}
    )
    for name, contender in CONTENDERS.items()
    for percentage in (1, 10, 34, 100)
    if f"{name} {percentage}%" not in CONTENDERS and "%" not in name
}
"""These also where kube-scheduler looks at another part of the nodes."""


@contextmanager
def contending(cluster: Cluster, contender: Contender) -> Iterator[None]:
    """Let the contender run, and nobody else."""
    cluster.set_mode(contender.mode)
    try:
        cluster.restart_gang_scheduler(contender.settings, contender.flags)
        if contender.beside == "ours":  # after its kube-scheduler, whose election it follows
            cluster.restart_extender(
                settings={key: contender.settings[key] for key in _SAID_TWICE & contender.settings.keys()}
            )
        elif contender.beside == "no-op":
            _start_no_op(cluster)
        yield
    finally:
        for name in (GANG_SCHEDULER, EXTENDER, _NO_OP):
            if name in cluster.processes:
                cluster.processes[name].stop()


def extender_pid(cluster: Cluster, contender: Contender) -> int | None:
    """Return the process beside the kube-scheduler that runs now."""
    names = {"nobody": None, "no-op": _NO_OP, "ours": EXTENDER}
    name = names[contender.beside]
    return cluster.processes[name].pid if name else None


def _start_no_op(cluster: Cluster) -> None:
    """Start it on the ports of the extender, which does not run then."""
    ports = [str(urlsplit(url).port) for url in (cluster.extender_url, cluster.probe_url)]
    cluster.start_process(_NO_OP, [sys.executable, "-m", "e2e.bench.noop_extender", *ports])
    wait_for(lambda: is_ok(f"{cluster.probe_url}/metrics"), _START_S, "the no-op extender answers")
