"""What befalls nodes and gangs in a round, and when? By the seed; each is undone by the round's end.

Nodes are cordoned, tainted, deleted and made again, and turn NotReady; members are lost and replaced, as operators do,
and whole gangs deleted, before or after they are bound.
"""

import os
import signal
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from random import Random

from msgspec import Struct

from e2e.client import Object
from e2e.cluster import Cluster, Namespace
from e2e.faults.rules import Tally
from e2e.faults.workload import Plan, replacement
from e2e.nodes import completed

WHERE = "cluster"
_TAINT = {"key": "example.com/maintenance", "effect": "NoSchedule"}
_NOT_READY = {
    "status": {"conditions": [{"type": "Ready", "status": "False", "reason": "Stopped", "message": "faults"}]}
}


class Doing(Struct, frozen=True):
    """Something to be done at a time of the round."""

    at_s: float
    do: Callable[[], None]


class Weather:
    """What befalls one cluster."""

    def __init__(self, namespace: Namespace, nodes: Sequence[Object], tally: Tally) -> None:
        self._cluster: Cluster = namespace.cluster
        self._namespace = namespace
        self._nodes = {node["metadata"]["name"]: node for node in nodes}
        self._tally = tally

    def of_round(self, seed: int, number: int, plans: Sequence[Plan]) -> list[Doing]:
        """Return what befalls the round, in order."""
        chance = Random(f"{seed}/weather/{number}")  # noqa: S311 - the same for the same seed
        done = [*self._nodes_changed(chance), *self._gangs_hit(chance, plans)]
        return sorted(done, key=lambda each: each.at_s)

    def clear_up(self) -> None:
        """Make all nodes again as they were."""
        os.kill(self._cluster.processes["kwok"].pid, signal.SIGCONT)
        there = {node["metadata"]["name"]: node for node in self._cluster.api.get("/api/v1/nodes")["items"]}
        for name in self._nodes:
            if name not in there:
                self._create(name)
            elif there[name]["spec"].get("unschedulable") or _TAINT["key"] in _taints(there[name]):
                self._open(name)

    def _nodes_changed(self, chance: Random) -> Iterator[Doing]:
        names = chance.sample(sorted(self._nodes), 7)
        for name in names[:2]:
            yield from self._spell(chance, partial(self._cordon, name), partial(self._open, name))
        for name in names[2:4]:
            yield from self._spell(chance, partial(self._taint, name), partial(self._open, name))
        for name in names[4:6]:
            yield from self._spell(chance, partial(self._delete, name), partial(self._create, name))
        yield from self._spell(chance, partial(self._stop, names[6]), self._start_again)

    def _spell(self, chance: Random, begin: Callable[[], None], end: Callable[[], None]) -> Iterator[Doing]:
        at_s = chance.uniform(0, 12)
        yield Doing(at_s, begin)
        yield Doing(at_s + chance.uniform(1, 8), end)

    def _gangs_hit(self, chance: Random, plans: Sequence[Plan]) -> Iterator[Doing]:
        hit = chance.sample([plan for plan in plans if plan.fits], 6)
        for plan in hit[:4]:
            pod = chance.choice(plan.pods)
            yield Doing(plan.at_s + chance.expovariate(1), partial(self._lose, pod))
        for plan in hit[4:]:
            yield Doing(plan.at_s + chance.expovariate(1), partial(self._make_anew, plan))

    def _cordon(self, name: str) -> None:
        self._change(name, {"spec": {"unschedulable": True}}, "node cordoned")

    def _taint(self, name: str) -> None:
        self._change(name, {"spec": {"taints": [_TAINT]}}, "node tainted")

    def _open(self, name: str) -> None:
        self._change(name, {"spec": {"unschedulable": None, "taints": None}}, "")

    def _change(self, name: str, patch: Object, kind: str) -> None:
        self._cluster.api.patch(f"/api/v1/nodes/{name}", patch)
        if kind:
            self._tally.add(WHERE, kind)

    def _delete(self, name: str) -> None:
        self._cluster.delete_node(name)
        self._tally.add(WHERE, "node deleted, and made anew")

    def _create(self, name: str) -> None:
        self._cluster.api.create("/api/v1/nodes", completed(self._nodes[name]))

    def _stop(self, name: str) -> None:
        """Make the node NotReady; kwok, which would make it Ready at once, is stopped, and no lease ends that soon."""
        os.kill(self._cluster.processes["kwok"].pid, signal.SIGSTOP)
        self._cluster.api.patch(f"/api/v1/nodes/{name}/status", _NOT_READY)
        self._tally.add(WHERE, "node NotReady")

    def _start_again(self) -> None:
        os.kill(self._cluster.processes["kwok"].pid, signal.SIGCONT)

    def _lose(self, pod: Object) -> None:
        self._namespace.delete_pod(pod["metadata"]["name"])
        self._namespace.cluster.api.create(f"{self._namespace.path}/pods", replacement(pod, "again"))
        self._tally.add(WHERE, "member lost and replaced")

    def _make_anew(self, plan: Plan) -> None:
        self._cluster.api.delete(f"{self._namespace.path}/pods?labelSelector=gang%3D{plan.name}")
        for pod in plan.pods:
            self._cluster.api.create(f"{self._namespace.path}/pods", replacement(pod, "anew"))
        self._tally.add(WHERE, "gang deleted and made anew")


def _taints(node: Object) -> set[str]:
    return {taint["key"] for taint in node["spec"].get("taints", ())}
