"""Is this pod bound to that node? Asks the API server to do it, and never says yes without a Binding.

The Binding carries the pod's UID, so that a namesake created since is not bound, and its annotations, which the API
server writes to the pod together with the node's name. Raw, since the client's typed call fails on the server's answer
after the pod is bound. Upstream counterpart: kube-scheduler's DefaultBinder.
"""

import asyncio
from collections.abc import Mapping
from typing import Literal

import orjson
from msgspec import Struct
from msgspec.json import Decoder

from extender.apiserver import NoAnswerError, Response
from extender.backoff import Backoff
from extender.effects.fence import Requests
from extender.effects.retry import settle
from extender.model.pod import PodUid
from extender.observe.metrics import Metrics
from extender.wire.bound_pod import BoundPod

IN_FLIGHT = 16
"""More at a time gained nothing on two cores, and a queue here costs no try's time-out."""

TRY_S = 10.0
"""A Binding takes milliseconds; an API server that needs longer than this has lost the request."""

LAST_LOOK_S = 2.0
"""For finding out, after the deadline, whether a try without an answer has bound the pod."""


class Binding(Struct, frozen=True):
    """A pod that is to run on `node`."""

    namespace: str
    name: str
    uid: PodUid
    node: str
    annotations: Mapping[str, str] = {}


class BindOutcome(Struct, frozen=True):
    """What came of a Binding; `problem` is a sentence, and empty when the pod is bound to the node.

    `refused`: it stays unbound or is bound elsewhere, and trying again is useless. `gone`: the pod is deleted.
    `failed`: it was not bound when last seen. `unknown`: it may be bound.
    """

    result: Literal["bound", "refused", "gone", "failed", "unknown"]
    problem: str = ""

    @property
    def is_bound(self) -> bool:
        """Whether the pod is bound to the node that was asked for."""
        return self.result == "bound"


_BOUND = BindOutcome("bound")
_GONE = BindOutcome("gone", "The pod was deleted.")
_UNKNOWN = BindOutcome("unknown", "The API server did not say in time whether it bound the pod.")


_POD = Decoder(BoundPod)


class Binder:
    """Posts Bindings; `bind` may run many times at once, also for the same pod."""

    def __init__(self, api: Requests, metrics: Metrics, *, first_pause_s: float = 0.1) -> None:
        self._api = api
        self._metrics = metrics
        self._first_pause_s = first_pause_s
        self._slots = asyncio.Semaphore(IN_FLIGHT)

    async def bind(self, binding: Binding, *, deadline_s: float) -> BindOutcome:
        """Bind the pod, trying until `deadline_s` on the event loop's clock.

        Answers LAST_LOOK_S after the deadline at the latest. A pod that is on the node already counts as bound.
        Raises nothing.
        """
        try:
            async with asyncio.timeout_at(deadline_s):
                outcome = await self._until_settled(binding)
        except TimeoutError:
            outcome = await self._last_look(binding)
        self._metrics.bindings.labels(outcome.result).inc()
        return outcome

    async def _until_settled(self, binding: Binding) -> BindOutcome:
        backoff = Backoff(self._first_pause_s, 20 * self._first_pause_s)
        while True:
            posted = await settle(self._post(binding), backoff)
            if posted is None:
                continue
            if posted.status != 409:
                return _posted(posted)
            found = await settle(self._get(binding, TRY_S), backoff)
            if found is not None:
                return _found(binding, found, BindOutcome("refused", posted.message))

    async def _last_look(self, binding: Binding) -> BindOutcome:
        try:
            found = await self._get(binding, LAST_LOOK_S)
        except NoAnswerError:
            return _UNKNOWN
        return _found(binding, found, BindOutcome("failed", "The API server did not bind the pod in time."))

    async def _post(self, binding: Binding) -> Response:
        body = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": binding.name, "uid": binding.uid, "annotations": dict(binding.annotations)},
            "target": {"apiVersion": "v1", "kind": "Node", "name": binding.node},
        }
        async with self._slots:
            path = f"{_path(binding)}/binding"
            return await self._api.request("POST", path, body=orjson.dumps(body), timeout_s=TRY_S)

    async def _get(self, binding: Binding, timeout_s: float) -> Response:
        return await self._api.request("GET", _path(binding), timeout_s=timeout_s)


def _path(binding: Binding) -> str:
    return f"/api/v1/namespaces/{binding.namespace}/pods/{binding.name}"


def _posted(answer: Response) -> BindOutcome:
    if answer.status in {200, 201}:
        return _BOUND
    return _GONE if answer.status == 404 else BindOutcome("refused", answer.message)


def _found(binding: Binding, answer: Response, not_there: BindOutcome) -> BindOutcome:
    """Return what the answer to a GET of the pod says; `not_there` when the pod is not on the node."""
    if answer.status == 404:
        return _GONE
    if answer.status != 200:
        return _UNKNOWN
    pod = _POD.decode(answer.body)
    if pod.metadata.uid != binding.uid:
        return _GONE
    return _BOUND if pod.spec.node_name == binding.node else not_there
