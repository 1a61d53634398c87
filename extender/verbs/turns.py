"""Whose turn is it on a node whose device plugin cannot tell pods apart?

Some plugins find the pod that the kubelet asks for by its size and age, others by a lock that names one pod. So at most
one pod of a queue is bound there and not yet taken up; the bind calls of the others wait here, in the order in which
they came. Which pods are to be taken up is read off the watched pods, so that a restart changes nothing; what is being
posted now is known here.
"""

import math
from asyncio import Future, get_running_loop
from collections.abc import Callable
from typing import NamedTuple

from msgspec import Struct

from extender.decide.devices import inventory_for
from extender.decide.explain import explain_superseded_turn, explain_turn
from extender.model.device import CardRequest
from extender.model.pod import Pod, PodUid
from extender.observe.metrics import Metrics
from extender.state.cluster import Cluster
from extender.wire.cards.handshake import Handshake
from extender.wire.cards.handshakes import HANDSHAKES
from extender.wire.cards.node_lock import LockUse

PLUGIN_S = 30.0
"""How long a plugin may take before nobody waits for it any more. It answers within a second once the kubelet has
learned of the pod, before any image is pulled; one that needs longer is away."""


class Refusal(Struct, frozen=True):
    """Why a pod is not bound; `elsewhere`: on another node it may be; `repeated`: a younger call for it goes on.

    `costs_s` is how long it took to find that out.
    """

    text: str
    elsewhere: bool = False
    costs_s: float = 0.0
    repeated: bool = False


class Queue(NamedTuple):
    """Pods that one plugin cannot tell apart."""

    node: str
    turn: str


class _Waiter(Struct):
    """A bind call that waits; `verdict` will be None to go on, or say why not."""

    pod: Pod
    until_s: float
    is_connected: Callable[[], bool]
    verdict: "Future[Refusal | None]"


class Turns:
    """The bind calls that wait for a device plugin, by queue."""

    def __init__(self, cluster: Cluster, metrics: Metrics) -> None:
        self._cluster = cluster
        self._metrics = metrics
        self._waiting: dict[Queue, list[_Waiter]] = {}
        self._posting: dict[Queue, PodUid] = {}
        self._since_s: dict[PodUid, float] = {}
        """Since when somebody waits for this pod to be taken up."""

    async def wait(
        self, pod: Pod, node: str, until_s: float, is_connected: Callable[[], bool], now_s: float
    ) -> Refusal | None:
        """Return None when the pod may be bound to the node, or why it may not."""
        queue = self._queue_of(pod, node)
        if queue is not None and self._posting.get(queue) == pod.uid:
            return None
        self._supersede(pod.uid)
        if queue is None:
            return None
        waiter = _Waiter(pod, until_s, is_connected, get_running_loop().create_future())
        waiters = self._waiting.setdefault(queue, [])
        waiters.append(waiter)
        waiters.sort(key=lambda each: each.until_s)  # who waited for his gang meanwhile keeps his place
        self._reconsider(queue, now_s)
        self._cluster.changes.wake()  # its time may be the next to be over
        with self._metrics.queued_binds.track_inprogress():
            return await waiter.verdict

    def end(self, uid: PodUid) -> None:
        """Let the next one go: the pod was not bound."""
        for queue in [queue for queue, posting in self._posting.items() if posting == uid]:
            del self._posting[queue]
            self._cluster.changes.wake()

    def reconsider(self, now_s: float) -> None:
        """Let calls go on whose turn it is, and refuse those whose time is over."""
        self._posting = {queue: uid for queue, uid in self._posting.items() if self._is_unbound(uid)}
        for queue in tuple(self._waiting):
            self._reconsider(queue, now_s)
        blockers = {pod.uid for queue in self._waiting if (pod := self._blocker(queue)) is not None}
        self._since_s = {uid: since_s for uid, since_s in self._since_s.items() if uid in blockers}

    def refuse_all(self) -> None:
        """Refuse every call that waits, since nobody will let it through any more."""
        for waiters in self._waiting.values():
            for waiter in waiters:
                _answer(waiter, Refusal(explain_superseded_turn(waiter.pod)))

    def next_deadline_s(self) -> float | None:
        """Return when `reconsider` has something to do though nothing changes, if ever."""
        times = [waiter.until_s for waiters in self._waiting.values() for waiter in waiters]
        times += [since_s + PLUGIN_S for since_s in self._since_s.values()]
        next_s = min(times, default=math.inf)
        return None if next_s == math.inf or not any(self._waiting.values()) else next_s

    def handshake_on(self, pod: Pod, node: str) -> Handshake | None:
        """Return how the node's device manager is told of the pod's cards; None where they are not ours to choose."""
        room, request = self._cluster.snapshot().rooms.get(node), pod.shape.cards
        inventory = inventory_for(request, room) if room is not None and request is not None else None
        return HANDSHAKES[inventory.manager] if inventory is not None else None

    def lock_use(self, node: str, namespace: str, name: str) -> LockUse:
        """Return whether the lock of a node that names this pod still counts.

        Of ours, unbound pods have no lock: who asks has the turn, and it was not theirs.
        """
        here = self._cluster.occupants.named(node, namespace, name)
        if here:  # as mostly: so all pods are gone through for few locks only
            return LockUse.WANTED if any(pod.awaits_plugin for pod in here) else LockUse.ENDING
        named = [pod for pod in self._cluster.pods.values() if (pod.namespace, pod.name) == (namespace, name)]
        is_bound_by_others = any(not pod.node_name and not self._cluster.gangs.serves(pod) for pod in named)
        return LockUse.WANTED if is_bound_by_others else LockUse.OVER

    def _queue_of(self, pod: Pod, node: str) -> Queue | None:
        handshake = self.handshake_on(pod, node)
        turn = handshake.turn(pod.shape.cards) if handshake and isinstance(pod.shape.cards, CardRequest) else ""
        return Queue(node, turn) if turn else None

    def _supersede(self, uid: PodUid) -> None:
        # The newest call for a pod counts: its kube-scheduler gave up on the older one, or was restarted.
        for queue, waiters in tuple(self._waiting.items()):
            for waiter in [each for each in waiters if each.pod.uid == uid]:
                _answer(waiter, Refusal(explain_superseded_turn(waiter.pod), repeated=True))
            self._forget_answered(queue)
        self.end(uid)

    def _reconsider(self, queue: Queue, now_s: float) -> None:
        # 1. Who waits in vain?
        for waiter in self._waiting[queue]:
            known = self._cluster.pods.get(waiter.pod.uid)
            if known is None or not waiter.is_connected():
                _answer(waiter, Refusal(explain_superseded_turn(waiter.pod)))
            elif known.node_name:  # an earlier post has bound it after all
                _answer(waiter, None)
        self._forget_answered(queue)

        # 2. Whose turn is it?
        blocker = self._blocker(queue)
        waiters = self._waiting.get(queue)
        if waiters and blocker is None:
            self._posting[queue] = waiters[0].pod.uid
            _answer(waiters[0], None)
            blocker = waiters[0].pod

        # 3. How long do the others wait for it?
        if blocker is not None and waiters:
            is_stuck = now_s >= self._since_s.setdefault(blocker.uid, now_s) + PLUGIN_S
            for waiter in waiters:
                if is_stuck or now_s >= waiter.until_s:
                    text = explain_turn(queue.node, blocker, waiter.pod)
                    _answer(waiter, Refusal(text, elsewhere=is_stuck, costs_s=PLUGIN_S if is_stuck else 0.0))
            if is_stuck and not self._is_being_posted(blocker.uid):
                self.end(blocker.uid)
        self._forget_answered(queue)

    def _blocker(self, queue: Queue) -> Pod | None:
        """Return the pod that is to be taken up before another one of the queue is bound."""
        posting = self._posting.get(queue, "")
        if self._is_unbound(posting):
            return self._cluster.pods[posting]
        awaiting = self._cluster.occupants.awaiting_on(queue.node)
        return next((pod for pod in awaiting if self._queue_of(pod, queue.node) == queue), None)

    def _is_unbound(self, uid: PodUid) -> bool:
        pod = self._cluster.pods.get(uid)
        return pod is not None and not pod.node_name

    def _is_being_posted(self, uid: PodUid) -> bool:
        """Whether the post goes on or has succeeded; of one without an answer nobody knows whether it ever will."""
        slot = self._cluster.reservations.slot_of(uid)
        return slot is not None and not slot.in_doubt

    def _forget_answered(self, queue: Queue) -> None:
        left = [waiter for waiter in self._waiting.get(queue, ()) if not waiter.verdict.done()]
        if left:
            self._waiting[queue] = left
        else:
            self._waiting.pop(queue, None)


def _answer(waiter: _Waiter, verdict: Refusal | None) -> None:
    if not waiter.verdict.done():
        waiter.verdict.set_result(verdict)
