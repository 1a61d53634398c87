"""On which of these nodes may the pod go?

A pod without a gang may go wherever kube-scheduler's own filters let it, but for room that is kept for a gang. A member
of a gang goes to its planned node or nowhere; a call is answered the same however often it is repeated. Nothing here
waits: kube-scheduler's only scheduling loop waits for the answer.
"""

from collections.abc import Mapping, Sequence
from typing import assert_never

import structlog
from msgspec import Struct

from extender.decide.explain import (
    NEVER_CHOSEN,
    OTHER_DOMAIN,
    ROOM_IS_KEPT,
    explain_bad_claim,
    explain_binding_elsewhere,
    explain_not_waiting,
    explain_planned_elsewhere,
    explain_replaced,
    explain_undeclared,
)
from extender.decide.fit import fit_room
from extender.decide.node_reasons import explain_reason
from extender.decide.room import lacking_cards
from extender.decide.sample import is_everything, is_sample, sample_size
from extender.decide.topology import allowed_nodes
from extender.decide.trial import Trial
from extender.model.claim import BadGangClaim, GangClaim, GangKey
from extender.model.node import repels
from extender.model.pod import Pod, PodUid
from extender.state.cluster import Cluster
from extender.state.planning import Planner
from extender.state.reservations import Slot, Stage
from extender.state.schedulers_view import is_undisputed, waits_for_siblings
from extender.wire.extender_v1 import ExtenderArgs

_log = structlog.get_logger()


class FilterAnswer(Struct, frozen=True):
    """The nodes the pod may go to; `rejected` has the reason for the others, which no preemption would cure.

    A node that was not offered may be among the first: then it is the only one.
    """

    accepted: Sequence[str]
    rejected: Mapping[str, str] = {}


class Filter:
    """The filter verb on one cluster state."""

    def __init__(self, cluster: Cluster, planner: Planner, percentage: int) -> None:
        self._cluster = cluster
        self._planner = planner
        self._percentage = percentage
        """kube-scheduler's percentageOfNodesToScore."""
        self._has_doubted = False

    def has_rejected(self, uid: PodUid) -> bool:
        """Whether the pod was turned away when it was last asked for."""
        return self._planner.standings.heard(uid)

    def answer(self, args: ExtenderArgs, now_s: float) -> FilterAnswer:
        """Decide on one call; may plan the pod's gang and hold room for it."""
        self._doubt_percentage(args)
        self._planner.plan_first(now_s)
        pod = self._cluster.learn_pod(args.pod)
        self._cluster.undecided.settle(pod.uid)
        match pod.gang:
            case None:
                return self._answer_free(pod, None, args)
            case BadGangClaim():
                return self._reject(args, explain_bad_claim(pod.gang))
            case GangClaim(key):
                return self._answer_member(pod, key, args, now_s)
            case _:
                assert_never(pod.gang)

    def _answer_member(self, pod: Pod, key: GangKey, args: ExtenderArgs, now_s: float) -> FilterAnswer:
        # 1. Is it one of those that we are to place?
        if pod.uid not in self._cluster.pods or not self._cluster.gangs.is_waiting(pod):
            return self._reject(args, explain_not_waiting(pod))

        # 2. Does it hold room, or can its gang have room now?
        held = self._cluster.reservations.slot_of(pod.uid)
        slot = held or self._plan(pod, key, now_s)
        if slot is not None:
            return self._answer_planned(pod, key, slot, args, None if held is None else now_s)

        # 3. A gang that runs takes further members one by one, on room that is not another gang's; where not all nodes
        #    that fit are offered, on the best one all the same.
        gang = self._cluster.gangs.get(key)
        if gang is not None and gang.satisfied:
            slot = None if self._is_everything(args) else self._plan_late(pod, key, now_s)
            return self._answer_planned(pod, key, slot, args, None) if slot else self._answer_free(pod, key, args)

        # 4. Otherwise it waits with its gang, and is told why.
        return self._reject(args, self._reason(pod, key))

    def _reason(self, pod: Pod, key: GangKey) -> str:
        """Say why its gang waits, or else why the pod does: its gang is none, it is replaced, or has room elsewhere."""
        standing = self._planner.standings.get(key)
        if standing is not None:
            return standing.text
        undeclared = self._cluster.gangs.undeclared(key)
        if undeclared is not None:
            return explain_undeclared(key, undeclared)
        gang = self._cluster.gangs.get(key)
        is_replaced = gang is not None and pod not in gang.waiting and any(p.seat == pod.seat for p in gang.waiting)
        return explain_replaced(key) if is_replaced else explain_planned_elsewhere(key)

    def _plan(self, pod: Pod, key: GangKey, now_s: float) -> Slot | None:
        if self._planner.is_decided(key, now_s):  # its members are asked for one after the other
            return None
        self._cluster.changes.plan(key)
        self._planner.plan_gangs(now_s)
        return self._cluster.reservations.slot_of(pod.uid)

    def _plan_late(self, pod: Pod, key: GangKey, now_s: float) -> Slot | None:
        self._planner.standings.tell(pod.uid, explain_planned_elsewhere(key))
        return self._plan(pod, key, now_s)

    def _answer_planned(
        self, pod: Pod, key: GangKey, slot: Slot, args: ExtenderArgs, refusable_s: float | None
    ) -> FilterAnswer:
        """Let the member through to its node, or to another one if kube-scheduler refused that.

        A plan that was made within this call cannot have been refused by it: then `refusable_s` is None.
        """
        offered = args.node_names
        if slot.stage < Stage.BINDING:
            self._cluster.reservations.advance(key, slot, Stage.PLANNED)  # who is asked for is counted nowhere
        if slot.node not in offered and list(offered) == [args.pod.nominated_node]:
            return self._reject(args, explain_planned_elsewhere(key))  # all nodes are offered next
        here: Slot | None = slot
        if slot.node not in offered and refusable_s is not None and self._is_refused(args, slot):
            self._planner.refuse(pod, self._refused_nodes(pod, slot, args), refusable_s)
            here = self._cluster.reservations.slot_of(pod.uid)
        if here is not None and here.node not in offered and not self._name(here, args):
            here = self._cluster.reservations.exchange(pod.uid, frozenset(offered))
        return self._accept(key, here) if here is not None else self._reject(args, self._reason(pod, key))

    def _name(self, slot: Slot, args: ExtenderArgs) -> bool:
        """Name a node that kube-scheduler left out of its sample, where it would learn nothing by looking at it.

        Once for each plan: if the member comes again, kube-scheduler is to look at the node itself, by a nomination.
        """
        if slot.named or not is_sample(len(args.node_names), self._cluster.node_count, self._percentage):
            return False
        if args.pod.shape != slot.shape:  # kube-scheduler knows another version of it than was planned
            return False
        slot.named = is_undisputed(self._cluster, slot)
        return slot.named

    def _doubt_percentage(self, args: ExtenderArgs) -> None:
        """Say once that kube-scheduler looks at more nodes than we are told: then none is named beside its offers."""
        offered, nodes = len(args.node_names), self._cluster.node_count
        size = sample_size(nodes, self._percentage)
        if offered > size < nodes and not self._has_doubted:  # of all nodes, there may be one that we do not know yet
            self._has_doubted = True
            _log.warning(
                "kube-scheduler offers more nodes than percentageOfNodesToScore says: set both alike",
                offered=offered,
                expected=size,
                configured=self._percentage,
            )

    def _is_everything(self, args: ExtenderArgs) -> bool:
        return is_everything(len(args.node_names), self._cluster.node_count, self._percentage)

    def _is_refused(self, args: ExtenderArgs, slot: Slot) -> bool:
        """Whether the node is missing because kube-scheduler said no, rather than left out of a sample."""
        missed = self._is_everything(args) or args.pod.nominated_node == slot.node
        return missed and not waits_for_siblings(self._cluster, args.pod, slot)

    def _refused_nodes(self, pod: Pod, slot: Slot, args: ExtenderArgs) -> list[str]:
        """Return the planned node and, where the model cannot tell, all that it would try next to no avail."""
        if not pod.shape.is_provisional or not self._is_everything(args):
            return [slot.node]
        snapshot, offered = self._cluster.snapshot(), frozenset(args.node_names)
        trial = Trial(snapshot)
        others = [name for name in snapshot.rooms if name not in offered and not trial.fit(pod.occupant, name)]
        return [slot.node, *others]

    def _accept(self, key: GangKey, slot: Slot) -> FilterAnswer:
        self._planner.standings.forget(slot.holder)
        self._cluster.reservations.advance(key, slot, max(slot.stage, Stage.ACCEPTED))
        return FilterAnswer([slot.node])

    def _answer_free(self, pod: Pod, key: GangKey | None, args: ExtenderArgs) -> FilterAnswer:
        """Let a pod that waits for nobody go where its room is not a gang's that has it already, or comes first."""
        slot = self._cluster.reservations.slot_of(pod.uid)
        if slot is not None and slot.node in args.node_names:
            others = (name for name in args.node_names if name != slot.node)
            return FilterAnswer([slot.node], dict.fromkeys(others, explain_binding_elsewhere(pod, slot.node)))
        if slot is not None and slot.stage is Stage.PLANNED:
            self._cluster.reservations.leave(pod.uid)  # it was to wake the pod, which has other nodes to go to
            self._cluster.changes.free_room()
        snapshot = self._cluster.snapshot_for(pod.seniority, key)
        unfit = lacking_cards(pod.shape, snapshot)
        rejected = {name: explain_reason(unfit[name]) for name in args.node_names if name in unfit}
        if pod.shape.is_placed_by_us:
            rejected = dict.fromkeys(args.node_names, NEVER_CHOSEN) | rejected
        else:
            promised = self._cluster.reservations.nodes() | self._cluster.earmarks.nodes()
            here = [name for name in args.node_names if name in promised and name in snapshot.rooms]
            kept = [name for name in here if fit_room(pod.shape, snapshot.rooms[name])]
            rejected = dict.fromkeys(kept, ROOM_IS_KEPT) | rejected
        gang = self._cluster.gangs.get(key) if key is not None else None
        allowed = allowed_nodes(gang, self._cluster.network.topology) if gang is not None else None
        if allowed is not None:
            rejected |= {name: OTHER_DOMAIN for name in args.node_names if name not in allowed}
        accepted = [name for name in args.node_names if name not in rejected]
        if pod.uid not in self._cluster.pods or pod.node_name:  # it goes nowhere: nothing would end what is noted of it
            return FilterAnswer(accepted, rejected)
        if accepted:
            self._cluster.undecided.let_through(pod.uid, accepted, repels=repels(pod.occupant))
            self._planner.standings.forget(pod.uid)
            self._planner.sleepers.forget(pod.uid)
        else:
            self._planner.standings.tell(pod.uid, min(rejected.values(), default=ROOM_IS_KEPT))
            if key is None:
                self._planner.sleepers.turn_away(pod.uid)
        return FilterAnswer(accepted, rejected)

    def _reject(self, args: ExtenderArgs, text: str) -> FilterAnswer:
        """Reject every node of the cluster, offered or not: so the text is the same whatever sample is offered.

        Not so for a member that is to preempt: kube-scheduler asks for it only where nodes are left to its own filters.
        """
        pod = self._cluster.pods.get(args.pod.uid)
        if pod is not None:
            self._planner.standings.tell(pod.uid, text)
        if pod is not None and self._cluster.victims_of(pod):
            return FilterAnswer((), dict.fromkeys(args.node_names, text))
        return FilterAnswer((), dict.fromkeys([*self._cluster.snapshot().rooms, *args.node_names], text))
