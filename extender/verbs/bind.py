"""Bind this pod to that node, together with its gang.

The extender's entry has the bind verb for every pod of its kube-scheduler, so pods without a gang are bound here, too,
at once. Never answers success without a Binding: kube-scheduler would count the pod on its node for ever.

A pod that asks for cards is bound on those that are held for it, which the Binding itself says on the pod. Who has no
room yet gets it here: kube-scheduler knows nothing of cards, and two calls at once must not use one twice.

What kube-scheduler does know is for it to judge: it may have seen sooner than we that a pod is gone. But it may also be
behind: after a pause it acts on what it knew before, and forgets a pod that was bound meanwhile. So nobody without room
of ours is bound where, after a moment for our watch, there is none for him: he comes again, by when both know the same.
"""

import asyncio
from collections.abc import Callable, Mapping
from typing import Protocol

from msgspec import Struct

from extender.decide.devices import choose_cards, fit_cards, still_holds
from extender.decide.explain import (
    explain_bad_claim,
    explain_binding_elsewhere,
    explain_locked_node,
    explain_lost_cards,
    explain_overtaken,
    explain_unknown_pod,
)
from extender.effects.binding import Binding, BindOutcome
from extender.model.claim import BadGangClaim, GangClaim, solo_claim
from extender.model.device import CardRequest
from extender.model.pod import Pod, PodUid
from extender.model.verdict import Placement, Reason
from extender.state.cluster import Cluster
from extender.state.membership import key_of
from extender.state.planning import Planner
from extender.state.reservations import Stage
from extender.state.schedulers_view import find_overlap
from extender.state.seats import Seats
from extender.verbs.barrier import Barrier
from extender.verbs.turns import PLUGIN_S, Refusal, Turns
from extender.wire.cards.handshake import CardChoice
from extender.wire.extender_v1 import BindingArgs

POSTING_S = 15.0
"""How long posting a member's Binding may take. A thousand at once take a second; this outlasts a restart of the API
server, and together with gangs.bindingSeconds it stays below the bind entry's httpTimeout."""

TURN_AFTER_S = 2.0
"""How long after gangs.bindingSeconds a call may still wait for its turn. With POSTING_S, a last look at the pod (2 s)
and the release of a lock (1 s) it makes the 20 s that the bind entry's httpTimeout is above bindingSeconds at least."""

LATE_S = 1.0
"""How much later than kube-scheduler we may learn who is gone. Both watch the same API server, which tells its watchers
within milliseconds; who comes again instead waits a second at least."""

LOOK_S = 0.05
"""Until the first further look; each pause is twice the one before, since a look goes through all room that is held."""


class PostsBindings(Protocol):
    """What the verb asks of `effects.binding.Binder`."""

    async def bind(self, binding: Binding, *, deadline_s: float) -> BindOutcome:
        """Bind the pod before the deadline, on the event loop's clock, or say why not."""


class LocksNodes(Protocol):
    """What the verb asks of `effects.node_lock.NodeLocks`."""

    async def take(self, lock: str, node: str, pod: Pod, *, deadline_s: float) -> str:
        """Lock the node for the pod; return "" or, at the deadline, why not."""

    async def release(self, lock: str, node: str, pod: Pod) -> None:
        """Unlock the node if it is locked for the pod."""


class Posting(Struct, frozen=True):
    """What takes a Binding to the API server; `epoch_s` is the time that others read, too."""

    binder: PostsBindings
    locks: LocksNodes
    epoch_s: Callable[[], float]
    binding_s: float
    """gangs.bindingSeconds."""


class Bind:
    """The bind verb on one cluster state."""

    def __init__(self, cluster: Cluster, planner: Planner, barrier: Barrier, turns: Turns, posting: Posting) -> None:
        self._cluster = cluster
        self._planner = planner
        self._barrier = barrier
        self._turns = turns
        self._posting = posting
        self._seats = Seats(cluster)
        self.under_way = 0
        """Calls without an answer."""

    async def bind(self, args: BindingArgs, is_connected: Callable[[], bool], now_s: Callable[[], float]) -> str:
        """Return "" once the pod is bound to the node, or why it is not; waits for the pod's gang, and for its turn."""
        self.under_way += 1
        try:
            return await self._bind(args, is_connected, now_s)
        finally:
            self.under_way -= 1

    async def _bind(self, args: BindingArgs, is_connected: Callable[[], bool], now_s: Callable[[], float]) -> str:
        came_s = now_s()
        pod = self._cluster.pods.get(args.uid)
        if pod is None:
            return explain_unknown_pod(args.namespace, args.name)
        if isinstance(pod.gang, BadGangClaim):
            return explain_bad_claim(pod.gang)
        if isinstance(pod.gang, GangClaim) and not pod.node_name:
            refusal = await self._barrier.wait(pod, pod.gang.key, args.node, is_connected)
            if refusal:
                return refusal
        has_room = self._cluster.reservations.slot_of(args.uid) is not None
        taken = () if has_room else await self._look_again(args.uid, args.node, now_s)
        pod = self._cluster.pods.get(args.uid)  # as it is by now: nothing ends room that is held for one that is gone
        if pod is None or (pod.terminating and not pod.node_name):
            return explain_unknown_pod(args.namespace, args.name)
        if taken:
            self._cluster.undecided.settle(pod.uid)
            return explain_overtaken(pod, args.node, taken)
        if not pod.node_name and pod.shape.cards is not None:
            overtaken = self._hold(pod, args.node, now_s())
            if overtaken:
                return overtaken
        until_s = came_s + self._posting.binding_s + TURN_AFTER_S
        return await self._bind_in_turn(pod, args.node, until_s, is_connected, now_s)

    async def _bind_in_turn(
        self, pod: Pod, node: str, until_s: float, is_connected: Callable[[], bool], now_s: Callable[[], float]
    ) -> str:
        refusal = None
        if not pod.node_name:
            refusal = await self._turns.wait(pod, node, until_s, is_connected, now_s())
        known = self._cluster.pods.get(pod.uid)
        if known is None or (refusal is not None and refusal.repeated):
            return refusal.text if refusal else explain_unknown_pod(pod.namespace, pod.name)
        pod, outcome = known, BindOutcome("unknown")
        try:
            if refusal is None:
                outcome = await self._post(pod, node, until_s, now_s)
            else:
                outcome = self._refuse(pod, node, refusal, now_s())
            return outcome.problem
        finally:
            if outcome.result == "unknown":
                self._cluster.reservations.doubt(pod.uid, node, now_s())
            elif not outcome.is_bound:
                if refusal is None:
                    self._turns.end(pod.uid)
                self._cluster.undecided.settle(pod.uid)
                self._give_back(pod, node, now_s())

    async def _post(self, pod: Pod, node: str, until_s: float, now_s: Callable[[], float]) -> BindOutcome:
        handshake = None if pod.node_name else self._turns.handshake_on(pod, node)
        lock = handshake.NODE_LOCK if handshake else ""
        if lock:
            problem = await self._posting.locks.take(lock, node, pod, deadline_s=min(until_s, now_s() + PLUGIN_S))
            if problem:
                text = explain_locked_node(node, problem)
                return self._refuse(pod, node, Refusal(text, elsewhere=True, costs_s=PLUGIN_S), now_s())
        problem = self._card_problem(pod, node)
        if problem and self._may_be_bound(pod):
            outcome = BindOutcome("unknown", problem)
        elif problem:
            outcome = self._refuse(pod, node, Refusal(problem, elsewhere=True), now_s())
        else:
            self._cluster.reservations.begin_post(pod.uid)
            known = self._cluster.pods.get(pod.uid)
            if known is not None and not known.node_name:
                self._cluster.undecided.bring(pod.uid, node, pod.occupant)
            binding = Binding(pod.namespace, pod.name, pod.uid, node, self._annotations(pod, node))
            outcome = await self._posting.binder.bind(binding, deadline_s=now_s() + POSTING_S)
        if lock and outcome.result in ("refused", "gone", "failed"):
            await self._posting.locks.release(lock, node, pod)
        return outcome

    def _may_be_bound(self, pod: Pod) -> bool:
        slot = self._cluster.reservations.slot_of(pod.uid)
        return slot is not None and slot.in_doubt

    async def _look_again(self, uid: PodUid, node: str, now_s: Callable[[], float]) -> tuple[Reason, ...]:
        """Return what the node lacks for a pod without room of ours; who is gone may be about to be told."""
        until_s, pause_s = now_s() + LATE_S, LOOK_S
        while (pod := self._cluster.pods.get(uid)) and (reasons := find_overlap(self._cluster, pod, node)):
            left_s = until_s - now_s()
            if left_s <= 0:
                return reasons
            await asyncio.sleep(min(pause_s, left_s))
            pause_s *= 2
        return ()

    def _hold(self, pod: Pod, node: str, now_s: float) -> str:
        """Hold room on the node for a pod that has none, or say why there is none any more."""
        self._planner.plan_first(now_s)
        reservations, request = self._cluster.reservations, pod.shape.cards
        slot = reservations.slot_of(pod.uid)
        if slot is not None and slot.node != node:  # of a call that its kube-scheduler did not outlive, or nobody knows
            return explain_binding_elsewhere(pod, slot.node)
        key = key_of(pod) or solo_claim(pod.namespace, pod.name).key
        if slot is None:
            room = self._cluster.snapshot().rooms.get(node)
            if room is None or request is None:
                return ""
            reasons = fit_cards(request, room)  # of all else kube-scheduler is the judge, and may be ahead of our watch
            if reasons:
                return explain_overtaken(pod, node, reasons)
            cards = choose_cards(request, room)
            reservations.reserve(key, [Placement(node, pod, cards)], now_s)
            slot = reservations.slot_of(pod.uid)
        if slot is not None and slot.stage < Stage.BINDING:
            reservations.advance(key, slot, Stage.BINDING)
        return ""

    def _card_problem(self, pod: Pod, node: str) -> str:
        """Say what is wrong by now with the cards that are held for the pod."""
        if pod.shape.cards is None or pod.node_name:
            return ""
        room, slot = self._cluster.snapshot().rooms.get(node), self._cluster.reservations.slot_of(pod.uid)
        cards = slot.cards if slot is not None and slot.node == node else ()
        is_fine = room is not None and still_holds(pod.shape, cards, room)
        return "" if is_fine else explain_lost_cards(pod, node)

    def _annotations(self, pod: Pod, node: str) -> Mapping[str, str]:
        return {**self._seats.tell(pod, node), **self._tell_cards(pod, node)}

    def _tell_cards(self, pod: Pod, node: str) -> Mapping[str, str]:
        slot, room = self._cluster.reservations.slot_of(pod.uid), self._cluster.snapshot().rooms.get(node)
        handshake, request = self._turns.handshake_on(pod, node), pod.shape.cards
        inventory = room.node.inventory if room else None
        if slot is None or handshake is None or inventory is None or not isinstance(request, CardRequest):
            return {}
        return handshake.annotations(CardChoice(request, slot.cards, inventory, node, self._posting.epoch_s()))

    def _refuse(self, pod: Pod, node: str, refusal: Refusal, now_s: float) -> BindOutcome:
        if refusal.elsewhere:
            self._planner.refuse(pod, [node], now_s, refusal.costs_s)
            self._cluster.changes.free_room()
        return BindOutcome("failed", refusal.text)

    def _give_back(self, pod: Pod, node: str, now_s: float) -> None:
        """Keep the room of a gang's member, which comes again, and no other pod's."""
        if key_of(pod) is None and self._cluster.reservations.leave(pod.uid):
            self._cluster.changes.free_room()
        self._cluster.reservations.fall_back(pod.uid, node, now_s)
