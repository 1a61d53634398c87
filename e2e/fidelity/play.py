"""Do both agree? Plays cases on a control plane, one cluster after the other, and compares.

Our side is fed by our own watches from the same API server, never by what was generated.
"""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import orjson
from msgspec import Struct, field

from e2e.client import MERGE, Object
from e2e.fidelity.controlplane import JudgesBench
from e2e.fidelity.generate import NAMESPACES, RUNTIME_CLASS, Case, generate_case
from e2e.fidelity.opinion import opinion_on
from e2e.fidelity.recorder import PASSED, Recorder, recording
from e2e.nodes import completed
from extender.apiserver import JSON, ApiServer, connect
from extender.model.device import CardPolicy
from extender.observe.metrics import Metrics
from extender.state.cluster import Cluster
from extender.watch.reflector import Reflector, Source
from extender.watch.sources import namespaces, nodes, pods, volume_claims, volumes

PODS_PER_CLUSTER = 125
_WRITES_AT_ONCE = 16
_OVERHEAD = {"cpu": "100m", "memory": "120Mi"}
"""Of the pods of a RuntimeClass; the API server writes it into them."""
_DEADLINE_S = 60.0
_TIMEOUT_S = 30.0
_SETTLE_S = 0.3
"""For kube-scheduler's own watches, which take milliseconds; nothing tells when they have seen the residents."""

_CLOSING_S = 0.25
"""For connections with TLS, which end a moment after they are closed: else Python complains of them at the end."""


class Disagreement(Struct, frozen=True):
    """A pod that the two judge differently, and the cluster that it was judged on."""

    case: str
    pod: str
    ours: frozenset[str]
    theirs: frozenset[str]
    our_reasons: str
    their_reasons: str
    objects: list[Object]


class Tally(Struct):
    """What was compared; `decisive` counts, for each plugin, the pods for which it made a difference somewhere."""

    pairs: int = 0
    verdicts: int = 0
    passed: int = 0
    decisive: Counter[str] = field(default_factory=Counter)
    disagreements: list[Disagreement] = field(default_factory=list)
    took_s: float = 0.0


async def compare(bench: JudgesBench, pairs: int, seed: int, progress: Callable[[str], None]) -> Tally:
    """Judge so many (cluster, pod) pairs, and stop early at the first cluster with a disagreement."""
    tally = Tally()
    started_s = time.monotonic()
    async with recording(bench.recorder_port) as recorder, _player(bench.kubeconfig, recorder) as player:
        await player.prepare()
        number = 0
        while tally.pairs < pairs and not tally.disagreements:
            case = generate_case(seed, number, min(PODS_PER_CLUSTER, pairs - tally.pairs))
            await player.play(case, f"seed {seed}, cluster {number}", tally)
            tally.took_s = time.monotonic() - started_s
            progress(f"{tally.pairs} pairs, {tally.pairs / tally.took_s:.0f}/s, {len(tally.disagreements)} disagree")
            number += 1
    return tally


@asynccontextmanager
async def _player(kubeconfig: Path, recorder: Recorder) -> AsyncIterator["_Player"]:
    api = await connect(str(kubeconfig))
    cluster = Cluster(["nobody"])
    metrics = Metrics("fidelity")
    sources: list[Source[Any]] = [
        nodes(cluster, CardPolicy()),
        *(source(cluster) for source in (pods, namespaces, volume_claims, volumes)),
    ]
    watches = [Reflector(source, api, metrics) for source in sources]
    running = [asyncio.create_task(watch.run()) for watch in watches]
    try:
        yield _Player(api, cluster, recorder)
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        await api.close()
        await asyncio.sleep(_CLOSING_S)


class _Player:
    def __init__(self, api: ApiServer, cluster: Cluster, recorder: Recorder) -> None:
        self._api = api
        self._cluster = cluster
        self._recorder = recorder

    async def prepare(self) -> None:
        for name, labels in NAMESPACES.items():
            await self._write("POST", "/api/v1/namespaces", {"metadata": {"name": name, "labels": labels}})
        overhead = {"metadata": {"name": RUNTIME_CLASS}, "handler": "x", "overhead": {"podFixed": _OVERHEAD}}
        await self._write("POST", "/apis/node.k8s.io/v1/runtimeclasses", overhead)

    async def play(self, case: Case, title: str, tally: Tally) -> None:
        # 1. A cluster, with what runs there; our watches and theirs have seen it.
        await self._all(self._write("POST", "/api/v1/nodes", completed(node)) for node in case.nodes)
        await self._all(self._write("POST", "/api/v1/persistentvolumes", volume) for volume in case.volumes)
        await self._all(self._write("POST", _path_of(claim, "persistentvolumeclaims"), claim) for claim in case.claims)
        await self._all(self._write("POST", _path_of(pod), pod) for pod in case.residents)
        await self._all(self._terminate(*which) for which in case.terminating)
        await self._all(self._finish(*which) for which in case.finished)
        await self._until(lambda: self._has_seen(case), "our watches have seen the cluster")
        await asyncio.sleep(_SETTLE_S)

        # 2. The pods, and what kube-scheduler says of each.
        created = await self._all(self._write("POST", _path_of(pod), pod) for pod in case.pending)
        uids = [pod["metadata"]["uid"] for pod in created]
        judged = await self._judged(uids)

        # 3. What we say.
        await self._until(lambda: all(map(self._knows, uids)), "our watches have seen the pods and their volumes")
        for uid in uids:
            await self._compare(judged[uid], title, tally)

        # 4. Nothing is left for the next.
        await self._clear()

    async def _compare(self, pod: Object, title: str, tally: Tally) -> None:
        uid, name = pod["metadata"]["uid"], pod["metadata"]["name"]
        snapshot = self._cluster.snapshot()
        ours = opinion_on(self._cluster.pods[uid].occupant, snapshot)
        theirs = self._recorder.offered.get(uid, frozenset())
        tally.pairs += 1
        tally.verdicts += len(snapshot.rooms)
        tally.passed += len(theirs)
        tally.decisive.update(ours.decisive)
        our_reasons = _line(len(snapshot.rooms), ours.reasons + Counter({PASSED: len(ours.fits)}))
        their_reasons = _message(pod)
        same_reasons = their_reasons.startswith(our_reasons) or _names_nodes(pod)
        if ours.fits != theirs or not same_reasons:
            objects = await self._objects(name)
            tally.disagreements.append(
                Disagreement(title, name, ours.fits, theirs, our_reasons, their_reasons, objects)
            )

    async def _judged(self, uids: list[str]) -> dict[str, Object]:
        """Wait until kube-scheduler has noted of each pod that it is unschedulable; return the pods by UID."""
        wanted = set(uids)
        end_s = time.monotonic() + _DEADLINE_S
        while True:
            found = {pod["metadata"]["uid"]: pod for pod in await self._list("/api/v1/pods") if _message(pod)}
            if wanted <= found.keys():
                return found
            if time.monotonic() > end_s:
                raise TimeoutError(f"kube-scheduler has not judged {len(wanted - found.keys())} pods")
            await asyncio.sleep(0.2)

    def _knows(self, uid: str) -> bool:
        return uid in self._cluster.pods and not self._cluster.pods[uid].shape.is_provisional

    def _has_seen(self, case: Case) -> bool:
        pods = self._cluster.pods.values()
        return (
            len(self._cluster.snapshot().rooms) == len(case.nodes)
            and len(pods) == len(case.residents)
            and sum(pod.terminating for pod in pods) == len(case.terminating)
            and sum(pod.finished for pod in pods) == len(case.finished)
        )

    async def _terminate(self, namespace: str, name: str) -> None:
        await self._write("DELETE", f"/api/v1/namespaces/{namespace}/pods/{name}", {"gracePeriodSeconds": 3600})

    async def _finish(self, namespace: str, name: str) -> None:
        path = f"/api/v1/namespaces/{namespace}/pods/{name}/status"
        await self._write("PATCH", path, {"status": {"phase": "Succeeded"}}, MERGE)

    async def _clear(self) -> None:
        for namespace in NAMESPACES:
            await self._write("DELETE", f"/api/v1/namespaces/{namespace}/pods", {"gracePeriodSeconds": 0})
            await self._write("DELETE", f"/api/v1/namespaces/{namespace}/persistentvolumeclaims", {})
            await self._write("DELETE", f"/apis/events.k8s.io/v1/namespaces/{namespace}/events", {})
        await self._write("DELETE", "/api/v1/persistentvolumes", {})
        await self._write("DELETE", "/api/v1/nodes", {})
        await self._until(lambda: not self._cluster.pods and not self._cluster.snapshot().rooms, "all is gone")
        self._recorder.offered.clear()

    async def _objects(self, pod: str) -> list[Object]:
        """Return the cluster, its residents and this pod as the API server has them."""
        found = []
        for kind in ("Node", "Namespace", "PersistentVolume", "PersistentVolumeClaim", "Pod"):
            for each in await self._list(f"/api/v1/{kind.lower()}s"):
                if kind != "Pod" or each["spec"].get("nodeName") or each["metadata"]["name"] == pod:
                    each["metadata"].pop("managedFields", None)
                    found.append(each | {"apiVersion": "v1", "kind": kind})
        return found

    async def _list(self, path: str) -> list[Object]:
        items: list[Object] = (await self._write("GET", path))["items"]
        return items

    async def _all(self, writes: Iterable[Any]) -> list[Object]:
        turns = asyncio.Semaphore(_WRITES_AT_ONCE)

        async def in_turn(write: Any) -> Object:
            async with turns:
                answer: Object = await write
                return answer

        return await asyncio.gather(*(in_turn(write) for write in writes))

    async def _write(self, method: str, path: str, body: Object | None = None, content_type: str = JSON) -> Object:
        data = b"" if body is None else orjson.dumps(body)
        answer = await self._api.request(method, path, timeout_s=_TIMEOUT_S, body=data, content_type=content_type)
        if answer.status >= 400:
            raise RuntimeError(f"{method} {path}: HTTP {answer.status}: {answer.message}\n{data.decode()}")
        parsed: Object = orjson.loads(answer.body)
        return parsed

    async def _until(self, done: Callable[[], bool], why: str) -> None:
        end_s = time.monotonic() + _DEADLINE_S
        while not done():
            if time.monotonic() > end_s:
                raise TimeoutError(f"not within {_DEADLINE_S:g} s: {why}")
            await asyncio.sleep(0.02)


def _path_of(obj: Object, kind: str = "pods") -> str:
    return f"/api/v1/namespaces/{obj['metadata']['namespace']}/{kind}"


def _message(pod: Object) -> str:
    conditions = pod["status"].get("conditions") or ()
    return next((each.get("message", "") for each in conditions if each["type"] == "PodScheduled"), "")


def _line(nodes: int, reasons: Counter[str]) -> str:
    """Return kube-scheduler's own line."""
    return f"0/{nodes} nodes are available: {', '.join(sorted(f'{n} {text}' for text, n in reasons.items()))}."


def _names_nodes(pod: Object) -> bool:
    """Whether it selects nodes by name: kube-scheduler then passes all others over, with another text."""
    return b"matchFields" in orjson.dumps(pod["spec"].get("affinity"))
