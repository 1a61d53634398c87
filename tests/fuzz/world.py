"""The extender between two ends of bytes: watched lines come in as from the API server, calls as from kube-scheduler.

Nothing is mocked between the bytes and the state. Bindings are not posted, which is another's part.
"""

import asyncio
import time
from collections.abc import Mapping, Sequence
from io import BytesIO
from typing import Any, NamedTuple

import orjson
from aiohttp.test_utils import TestClient, TestServer
from aiohttp.web import Application, Request
from cachetools import Cache
from structlog.testing import capture_logs

from extender.apiserver import ApiServer
from extender.app import _sources
from extender.config import GangExtenderConfiguration
from extender.observe.metrics import Metrics
from extender.verbs.agreement import Agreement
from extender.verbs.health import Health
from extender.verbs.preempt import Preempt
from extender.verbs.server import Answers, Verbs, make_app
from extender.watch.reflector import Reflector
from extender.wire.kube import open_page, read_page
from extender.wire.malformed import MalformedBody
from tests.bind_rig import KeptBindings
from tests.builders import a_node
from tests.fuzz.objects import resource_of
from tests.rig import Rig

CONFIG = GangExtenderConfiguration.model_validate(
    {"apiVersion": "gang-extender.io/v1alpha1", "kind": "GangExtenderConfiguration"}
)
GIVEN_UP_S = 10.0
"""A call that is still not answered when nothing is left that it could wait for hangs."""

WELL = frozenset({200, 400, 413})
"""What a call may be answered with. 500 is a fault of ours."""


class Input(NamedTuple):
    """A watched line, or the body of a call; `where` is the resource or the verb."""

    where: str
    body: bytes
    is_call: bool = False

    def __str__(self) -> str:
        return f"{self.where} <- {self.body[:2000]!r}{'...' if len(self.body) > 2000 else ''}"


class Cost(NamedTuple):
    """What an input took."""

    seconds: float
    text: str


class World:
    """One extender, for as long as the test runs. `slowest` is the dearest input so far, in seconds of CPU."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.rig = Rig(levels=CONFIG.topology.levels_of_network)
        self.binder = KeptBindings()
        self.metrics = Metrics("test")
        sources = _sources(self.rig.cluster, CONFIG)
        self.watches = {source.resource: Reflector(source, _no_server(), self.metrics) for source in sources}
        self.slowest = Cost(0.0, "")
        self._calls: list[asyncio.Task[int]] = []
        self.client: TestClient[Request, Application] = self.loop.run_until_complete(self._start())
        self.clear()
        self.empty = sizes(self.rig)

    async def _start(self) -> TestClient[Request, Application]:
        rig = self.rig
        health = Health(rig.cluster, {}, self.metrics, lambda: "")
        answers = Answers(
            filter=rig.filter,
            preempt=Preempt(rig.cluster, rig.planner),
            bind=rig.bind_with(self.binder),
            agreement=Agreement(rig.cluster, self.metrics),
        )
        verbs = Verbs(rig.cluster, answers, self.metrics, lambda: "")
        app = make_app(verbs, health.routes(), self.metrics, CONFIG.server.max_body_mib * 2**20)
        client: TestClient[Request, Application] = TestClient(TestServer(app))
        await client.start_server()
        return client

    def close(self) -> None:
        """End the server."""
        self.loop.run_until_complete(self.client.close())
        self.loop.close()

    def feed(self, inputs: Sequence[Input]) -> None:
        """Let all of it in, step by step, and take everything away again; any fault is raised with the input."""
        self.loop.run_until_complete(self._feed(inputs))

    async def _feed(self, inputs: Sequence[Input]) -> None:
        with capture_logs() as logs:
            for each in inputs:
                began_s = time.process_time()
                try:
                    await self._take(each)
                    self.rig.later()
                except Exception as error:
                    error.add_note(str(each))
                    raise
                self.slowest = max(self.slowest, Cost(time.process_time() - began_s, str(each)))
            self.clear()
            await self._end_calls(inputs)
        tracebacks = [log for log in logs if "exc_info" in log or log["log_level"] == "error"]
        assert not tracebacks, f"{tracebacks[:1]} after {[str(each) for each in inputs]}"

    async def _take(self, given: Input) -> None:
        if given.is_call:
            call = asyncio.ensure_future(self._call(given))
            await asyncio.wait([call], timeout=0.02 if given.where == "bind" else GIVEN_UP_S)
            if call.done():
                assert call.result() in WELL, f"{call.result()}"
            else:
                self._calls.append(call)
        elif given.body.startswith(b'{"metadata":{"resourceVersion"'):
            self._list(given)
        else:
            end = self.watches[given.where]._take(given.body)
            assert end is None or end.reason, end

    def _list(self, given: Input) -> None:
        source = self.watches[given.where].source
        try:
            page = read_page(source.kind, open_page(source.kind, given.body))
        except MalformedBody:
            return
        source.replace([seen.object for seen in page.objects])

    async def _call(self, given: Input) -> int:
        status, text = await self._ask(given.where, given.body)
        assert b"Traceback" not in text
        return status

    async def _end_calls(self, inputs: Sequence[Input]) -> None:
        """Nothing is there any more that a bind call could wait for: so each must be answered."""
        for _ in range(5):
            await asyncio.sleep(0)
            self.rig.later(1000.0)
        if self._calls:
            _, hanging = await asyncio.wait(self._calls, timeout=GIVEN_UP_S)
            assert not hanging, f"{len(hanging)} calls hang after {[str(each) for each in inputs]}"
            assert {call.result() for call in self._calls} <= WELL
        self._calls = []

    def show(self, *objects: dict[str, Any]) -> None:
        """Let the watches tell of these objects."""
        self.loop.run_until_complete(self._show(objects))

    async def _show(self, objects: Sequence[dict[str, Any]]) -> None:
        for each in objects:
            assert self.watches[resource_of(each)]._take(b'{"type":"ADDED","object":%s}' % orjson.dumps(each)) is None

    def call(self, verb: str, body: object) -> tuple[int, bytes]:
        """Return what a call is answered, with its status."""
        return self.loop.run_until_complete(self._ask(verb, orjson.dumps(body)))

    async def _ask(self, verb: str, body: bytes) -> tuple[int, bytes]:
        answer = await self.client.post(f"/v1/{verb}", data=BytesIO(body))
        return answer.status, await answer.read()

    def clear(self) -> None:
        """Take everything away, as empty lists do, and let time go by; two nodes are there again then."""
        for watch in self.watches.values():
            watch.source.replace(())
        for _ in range(3):
            self.rig.later(1000.0)
        for kept in (self.rig.nominations, self.rig.releases, self.rig.announcements, self.rig.reports):
            kept.clear()
        taken = self.rig.locks.taken  # which a bound pod's plugin would release
        self.rig.locks.taken = {node: name for node, name in taken.items() if name not in self.binder.posted}
        self.binder.posted.clear()
        self.binder.annotations.clear()
        self.rig.cluster.replace_nodes([a_node("n1"), a_node("n2")])
        self.rig.later()

    def take_left(self) -> dict[str, tuple[int, int]]:
        """Return what has more in it than when the world was empty: its size then, and now.

        It is told once: whatever is fed next is not to be blamed for it.
        """
        now = sizes(self.rig)
        left = {path: (self.empty.get(path, 0), size) for path, size in now.items() if size > self.empty.get(path, 0)}
        self.empty = {**self.empty, **{path: size for path, (_, size) in left.items()}}
        return left


def sizes(root: object) -> Mapping[str, int]:
    """Return how much is in each container that our objects have, by the path of attributes; bounded caches apart."""
    found: dict[str, int] = {}
    seen: set[int] = set()

    def look(value: object, path: str) -> None:
        if id(value) in seen or isinstance(value, Cache) or callable(value):
            return
        seen.add(id(value))
        if isinstance(value, (dict, set, frozenset, list, tuple)):
            found[path] = len(value)
        elif type(value).__module__.startswith(("extender.state", "extender.verbs", "extender.cycle", "tests.rig")):
            for name in _attributes(value):
                look(getattr(value, name), f"{path}.{name}")

    look(root, "rig")
    return found


def _attributes(value: Any) -> list[str]:
    slots = [name for kind in type(value).__mro__ for name in getattr(kind, "__slots__", ())]
    fields = getattr(value, "__struct_fields__", ())
    return [name for name in {*getattr(value, "__dict__", {}), *slots, *fields} if hasattr(value, name)]


def _no_server() -> ApiServer:
    """Nobody is asked: lines are handed to the reflector as its stream would."""
    return ApiServer.__new__(ApiServer)
