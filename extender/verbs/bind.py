"""Bind this pod to that node, together with its gang.

The extender's entry has the bind verb for every pod of its kube-scheduler, so pods without a gang are bound here, too,
at once. Never answers success without a Binding: kube-scheduler would count the pod on its node for ever.
"""

from collections.abc import Callable
from typing import Protocol

from extender.decide.explain import explain_bad_claim, explain_unknown_pod
from extender.effects.binding import Binding, BindOutcome
from extender.model.claim import BadGangClaim, GangClaim
from extender.state.cluster import Cluster
from extender.verbs.barrier import Barrier
from extender.wire.extender_v1 import BindingArgs

POSTING_S = 15.0
"""How long posting a member's Binding may take. A thousand at once take a second; this outlasts a restart of the API
server, and together with gangs.bindingSeconds it stays below the bind entry's httpTimeout."""


class PostsBindings(Protocol):
    """What the verb asks of `effects.binding.Binder`."""

    async def bind(self, binding: Binding, *, deadline_s: float) -> BindOutcome:
        """Bind the pod before the deadline, on the event loop's clock, or say why not."""


class Bind:
    """The bind verb on one cluster state."""

    def __init__(self, cluster: Cluster, barrier: Barrier, binder: PostsBindings) -> None:
        self._cluster = cluster
        self._barrier = barrier
        self._binder = binder

    async def bind(self, args: BindingArgs, is_connected: Callable[[], bool], now_s: Callable[[], float]) -> str:
        """Return "" once the pod is bound to the node, or why it is not; waits for the pod's gang."""
        pod = self._cluster.pods.get(args.uid)
        if pod is None:
            return explain_unknown_pod(args.namespace, args.name)
        if isinstance(pod.gang, BadGangClaim):
            return explain_bad_claim(pod.gang)
        if isinstance(pod.gang, GangClaim) and not pod.node_name:
            refusal = await self._barrier.wait(pod, pod.gang.key, args.node, is_connected)
            if refusal:
                return refusal
        return await self._post(args, now_s)

    async def _post(self, args: BindingArgs, now_s: Callable[[], float]) -> str:
        bound = False
        try:
            binding = Binding(args.namespace, args.name, args.uid, args.node)
            outcome = await self._binder.bind(binding, deadline_s=now_s() + POSTING_S)
            bound = outcome.is_bound
            return outcome.problem
        finally:
            if not bound:
                self._cluster.reservations.fall_back(args.uid, args.node, now_s())
