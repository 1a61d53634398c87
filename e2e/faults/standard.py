"""Which faults, how often, and on which nodes? The mixture of `make faults`."""

from collections.abc import Iterator

from e2e.client import Object
from e2e.faults.checker import Bounds
from e2e.faults.rules import Kind, Rule
from e2e.nodes import make_node
from e2e.plugins import volcano_vgpu

BOUNDS = Bounds(
    # A refused Binding sends its pod back to kube-scheduler, whose longest back-off is 10 s; a post may take 17 s, and
    # it may be a broken watch (30 s) that tells how it went. Then the same again without the watch, since what is tried
    # again fails again.
    partial_s=90.0,
    # Two plugins may be away, each for 33 s, and are tried twice.
    plugin_s=135.0,
    # The extender names a node that kube-scheduler has not looked at where its own model says that it fits. What it
    # heard last of the node may be from before a stall (8 s) or the pause before a broken watch is opened again (30 s);
    # a filter and a prioritize call, each up to 2 s, lie before the bind call.
    stale_node_s=45.0,
)

SETTLE_S = 200.0
"""From the end of faults until all that fits is bound and no room is held: 60 s for a member that kube-scheduler never
brings, or four times 33 s for a gang that finds the device plugins of two nodes away, twice each; up to 30 s before a
broken watch is opened again; 10 s of kube-scheduler's back-off."""

_WRITES = (
    (Kind.CONFLICT, 0.03),
    (Kind.TOO_MANY, 0.04),
    (Kind.ERROR, 0.04),
    (Kind.UNAVAILABLE, 0.04),
    (Kind.SLOW, 0.05),
    (Kind.LANDED, 0.01),  # stops a writer for 10 s
    (Kind.LOST, 0.04),
    (Kind.CUT, 0.04),
)
_READS = ((Kind.TOO_MANY, 0.04), (Kind.UNAVAILABLE, 0.06), (Kind.SLOW, 0.05), (Kind.LOST, 0.05), (Kind.CUT, 0.05))
_OPENINGS = ((Kind.EXPIRED, 0.05), (Kind.TOO_MANY, 0.05), (Kind.UNAVAILABLE, 0.05), (Kind.ERROR, 0.05))
_VERBS = (
    (Kind.ERROR, 0.03),
    (Kind.UNAVAILABLE, 0.03),
    (Kind.SLOW, 0.04),
    (Kind.LANDED, 0.01),  # stops kube-scheduler for 2 s if it is filter
    (Kind.LOST, 0.04),
    (Kind.CUT, 0.04),
    (Kind.TWICE, 0.1),
)
# What ends a watch is rare: the extender waits ever longer before it opens one again that broke within a minute.
_LINES = (
    (Kind.DUPLICATE, 0.15),
    (Kind.REORDER, 0.15),
    (Kind.SLOW_STREAM, 0.05),
    (Kind.STALL, 0.004),
    (Kind.CUT_STREAM, 0.001),
    (Kind.GAP, 0.001),
    (Kind.EXPIRED_STREAM, 0.001),
    (Kind.SILENCE, 0.0001),
)


def rules() -> list[Rule]:
    """Return the mixture."""
    by_class = {
        "api POST *": _WRITES,
        "api PATCH *": _WRITES,
        "api PUT *": _WRITES,  # of the lease, where there are two extenders
        "api GET *": _READS,
        "api LIST *": _READS,
        "api WATCH *": _OPENINGS,
        "verbs POST *": _VERBS,
        "api LINE *": _LINES,
    }
    return [Rule(kind, rate, classes) for classes, kinds in by_class.items() for kind, rate in kinds]


def nodes() -> Iterator[Object]:
    """Yield nodes with whole GPUs, with cards to share, with Volcano's plugin, and without GPUs."""
    for index in range(20):
        yield make_node(f"gpu-{index}", 8)
    for index in range(6):
        node = make_node(f"shared-{index}", 4)
        node["metadata"]["annotations"] = {
            "kubeshare/gpu_info": "".join(f"GPU-shared-{index}-{card}:16384," for card in range(4))
        }
        yield node
    for index in range(4):
        node = make_node(f"vgpu-{index}")
        node["status"]["allocatable"]["volcano.sh/vgpu-number"] = "20"
        cards = (f"GPU-vgpu-{index}-{card}" for card in range(2))
        node["metadata"]["annotations"] = dict(volcano_vgpu.registered(*cards, mib=16384))
        yield node
    for index in range(2):
        yield make_node(f"cpu-{index}")
