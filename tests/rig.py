"""The extender without a network: the state, its planner, the verbs and the cycle, driven by hand.

`Rig` plays the API server (nodes and pods come and go) and kube-scheduler (filter and bind calls); what the extender
would write is kept in lists.
"""

from collections.abc import Iterable, Mapping

from msgspec import structs

from extender.cycle import Cycle, Effects
from extender.effects.gates import Release
from extender.effects.nomination import Nomination
from extender.model.announcement import Announcement
from extender.model.claim import GangKey
from extender.model.gang import Gang
from extender.model.node import Node
from extender.model.pod import Pod
from extender.model.pod_group import StatusReport
from extender.model.topology import Level
from extender.observe.metrics import Metrics
from extender.state.cluster import Cluster
from extender.state.expiry import Deadlines
from extender.state.planning import Planner
from extender.state.reservations import Slot
from extender.verbs.barrier import Barrier
from extender.verbs.bind import Bind, Posting, PostsBindings
from extender.verbs.filter import Filter, FilterAnswer
from extender.verbs.preempt import Preempt
from extender.verbs.turns import Turns
from extender.wire.extender_v1 import ExtenderArgs, PreemptionArgs, Victims

GATHERING_S = 30.0
BINDING_S = 60.0
PATIENCE_S = 30.0


class FreeLocks:
    """Stands in for the locks of nodes: nobody else takes any. `taken` are those that the plugin has not released."""

    def __init__(self) -> None:
        self.taken: dict[str, str] = {}
        self.released: list[str] = []

    async def take(self, lock: str, node: str, pod: Pod, *, deadline_s: float) -> str:
        assert lock
        assert deadline_s
        self.taken[node] = pod.name
        return ""

    async def release(self, lock: str, node: str, pod: Pod) -> None:
        assert lock
        assert self.taken.pop(node) == pod.name
        self.released.append(pod.name)


class Rig:
    """One extender; `now_s` is its clock."""

    def __init__(self, *nodes: Node, levels: tuple[Level, ...] = (), percentage: int = 1) -> None:
        self.now_s = 1000.0
        self.cluster = Cluster(["gang-scheduler"], levels=levels)
        self.planner = Planner(self.cluster, Deadlines(GATHERING_S, BINDING_S, PATIENCE_S))
        self.filter = Filter(self.cluster, self.planner, percentage)
        metrics = Metrics("test")
        self.barrier = Barrier(self.cluster, metrics)
        self.turns = Turns(self.cluster, metrics)
        self.nominations: list[Nomination] = []
        self.releases: list[Release] = []
        self.announcements: list[Announcement] = []
        self.reports: list[StatusReport] = []
        self.cycle = Cycle(
            self.cluster,
            self.planner,
            self.barrier,
            self.turns,
            Effects(
                nominate=self.nominations.append,
                release=self.releases.append,
                announce=self.announcements.append,
                report=self.reports.append,
            ),
        )
        self.locks = FreeLocks()
        self.cluster.replace_nodes(nodes)

    def bind_with(self, binder: PostsBindings) -> Bind:
        """Return the bind verb on this state."""
        return Bind(
            self.cluster,
            self.planner,
            self.barrier,
            self.turns,
            Posting(binder, self.locks, lambda: 1_700_000_000.0 + self.now_s, BINDING_S),
        )

    def create(self, *pods: Pod) -> None:
        """Pods are created, and the watch says so."""
        for pod in pods:
            self.cluster.upsert_pod(pod)

    def ask(self, pod: Pod, offered: Iterable[str] | None = None, nominated: str = "") -> FilterAnswer:
        """kube-scheduler asks for the pod, on all nodes if not told otherwise."""
        names = list(self.cluster.snapshot().rooms) if offered is None else list(offered)
        asked = structs.replace(pod, nominated_node=nominated)
        return self.filter.answer(ExtenderArgs(asked, names), self.now_s)

    def node_for(self, pod: Pod, offered: Iterable[str] | None = None) -> str | None:
        """Return the one node that the pod is let through to, or None when it is rejected."""
        accepted = self.ask(pod, offered).accepted
        assert len(accepted) <= 1, "a gang's member is let through to its planned node only"
        return accepted[0] if accepted else None

    def text_for(self, pod: Pod) -> str:
        """Return the text with which the pod is rejected, the same for every node."""
        answer = self.ask(pod)
        assert not answer.accepted
        (text,) = set(answer.rejected.values())
        return text

    def preempt(self, pod: Pod, offered: Mapping[str, Iterable[Pod]] | None = None) -> dict[str, set[str]]:
        """kube-scheduler asks whom it may kill for the pod; return the names of those granted, by node."""
        victims = {node: Victims(tuple(each.uid for each in pods)) for node, pods in (offered or {}).items()}
        granted = Preempt(self.cluster, self.planner).answer(PreemptionArgs(pod, victims), self.now_s)
        return {node: {self.cluster.pods[uid].name for uid in killed.uids} for node, killed in granted.items()}

    def terminate(self, *pods: Pod) -> None:
        """Pods are being deleted, and still stand on their nodes."""
        for pod in pods:
            self.cluster.upsert_pod(structs.replace(self.cluster.pods[pod.uid], terminating=True))

    def bind(self, pod: Pod, node: str | None) -> Pod:
        """Show the pod bound, as the watch would, on the cards that were chosen for it."""
        assert node is not None
        slot = self.cluster.reservations.slot_of(pod.uid)
        bound = structs.replace(pod, node_name=node, cards=slot.cards if slot else ())
        self.cluster.upsert_pod(bound)
        return bound

    def turn_away(self, pod: Pod) -> Pod:
        """kube-scheduler notes on the pod that it found no node."""
        known = structs.replace(self.cluster.pods[pod.uid], turned_away=True, nominated_node="")
        self.cluster.upsert_pod(known)
        return known

    def take_gates_off(self) -> list[str]:
        """Take off the gates, as the API server does, that it was asked to and still is; return whose."""
        asked, self.releases[:] = self.releases[:], []
        wanted = [release for release in asked if self.cycle.releases.is_wanted(release.uid)]
        for release in wanted:
            self.cluster.upsert_pod(structs.replace(self.cluster.pods[release.uid], held=False))
        return [release.name for release in wanted]

    def delete(self, *pods: Pod) -> None:
        """Pods are gone, and the watch says so."""
        for pod in pods:
            self.cluster.remove_pod(pod.uid)

    def later(self, seconds: float = 0.0) -> None:
        """Time goes by, and the cycle runs."""
        self.now_s += seconds
        self.cycle.step(self.now_s)

    def gang(self, name: str) -> Gang:
        gang = self.cluster.gangs.get(GangKey(name))
        assert gang is not None
        return gang

    def slot(self, pod: Pod) -> Slot:
        """Return the room that the pod holds."""
        slot = self.cluster.reservations.slot_of(pod.uid)
        assert slot is not None
        return slot

    def reserved(self) -> int:
        """Return how many members room is held for."""
        return sum(len(reservation.slots) for reservation in self.cluster.reservations)
