"""Do the extenders run, do they answer, and have they been called?

Beside it (in its pod, or on its host) it is asked as kube-scheduler asks it; from elsewhere its probes and metrics are
read through the API server, and the verbs cannot be reached at all.
"""

import asyncio
from collections import Counter
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import orjson
from prometheus_client.parser import text_string_to_metric_families

from extender.cli.asking import NOT_ENDED, Asker, UnseenError
from extender.cli.scheduler_facts import flags_of, mounted_at
from extender.config import ServerConfig
from extender.doctor.facts import Extender
from extender.doctor.finding import Unseen
from extender.verbs.server import PREFIX

CONTAINER = "extender"

Object = dict[str, Any]

_TIMEOUT_S = 5.0
"""The extender answers these in milliseconds."""

_READYZ = "readyz check"
_CALLS = "gang_extender_verb_duration_seconds"
_STARTED = "gang_extender_repeat_filter_calls_created"
"""A counter without labels begins with the process."""

_HERE = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - looked up
"""Where one that listens at every address is reached from its own host."""


def own_url(server: ServerConfig) -> str:
    """Return where the verbs are reached from beside the extender, by its own settings."""
    return f"{'https' if server.tls else 'http'}://{_host(server.address)}:{server.port}{PREFIX}"


async def ask_beside(server: ServerConfig, urls: tuple[str, ...]) -> Extender:
    """Ask the extender next to us, at its probes and at the entries' URLs."""
    probes = f"http://{_host(server.probe_address)}:{server.probe_port}"
    timeout = aiohttp.ClientTimeout(total=_TIMEOUT_S)
    async with aiohttp.ClientSession(timeout=timeout, trust_env=False) as session:
        ready = await _fetch(session, f"{probes}/readyz?verbose")
        metrics = await _fetch(session, f"{probes}/metrics")
        reachable = {url: await _problem_at(session, url) for url in urls}
    said = _readiness(ready)
    return Extender(
        probes, said.why if isinstance(said, Unseen) else said, _calls(metrics), reachable, _started_s(metrics)
    )


async def ask_pods(asker: Asker, namespace: str, server: ServerConfig) -> tuple[Extender, ...] | Unseen:
    """Ask every pod of the extender through the API server."""
    try:
        pods = await _pods(asker, namespace)
    except UnseenError as error:
        return error.unseen
    if not pods:
        return Unseen(
            f"no pod with a container {CONTAINER} is in namespace {namespace}", "--namespace, or --beside-extender"
        )
    return tuple([await _ask_pod(asker, namespace, pod, server.probe_port) for pod in pods])


async def ask_mounted_settings(asker: Asker, namespace: str) -> frozenset[str]:
    """Return which keys of ConfigMaps the extenders run with; empty where none is seen."""
    try:
        pods = await _pods(asker, namespace)
    except UnseenError:
        return frozenset()
    running = [(pod, each) for pod in pods for each in _containers(pod) if each["name"] == CONTAINER]
    return frozenset(mounted_at(pod, each, flags_of(each).get("config", "")) for pod, each in running) - {""}


async def _pods(asker: Asker, namespace: str) -> list[Object]:
    """Return the pods with an extender in them; raises UnseenError."""
    listed = asker.items(f"/api/v1/namespaces/{namespace}/pods", fieldSelector=NOT_ENDED)
    pods = [orjson.loads(item) async for item in listed]
    return [pod for pod in pods if CONTAINER in {each["name"] for each in _containers(pod)}]


async def _ask_pod(asker: Asker, namespace: str, pod: Object, port: int) -> Extender:
    name = pod["metadata"]["name"]
    base, go_there = f"/api/v1/namespaces/{namespace}/pods/{name}:{port}/proxy", _go_there(namespace, name)
    probed = await _through(asker, f"{base}/readyz", go_there, {"verbose": ""})
    metrics = await _through(asker, f"{base}/metrics", go_there)
    ready = _readiness(probed)
    if isinstance(ready, Unseen):
        ready = _by_the_kubelet(pod) or ready
    reachable = Unseen("what kube-scheduler reaches at 127.0.0.1 cannot be tried from here", go_there)
    return Extender(f"pod {namespace}/{name}", ready, _calls(metrics), reachable, _started_s(metrics))


def _go_there(namespace: str, pod: str) -> str:
    return (
        f"kubectl -n {namespace} exec {pod} -c {CONTAINER} -- /opt/gang-extender/bin/gang-extender doctor"
        " --config /etc/gang-extender/config.yaml"
    )


async def _through(
    asker: Asker, path: str, go_there: str, query: Mapping[str, str] | None = None
) -> tuple[int, str] | Unseen:
    """Return what the extender says; 503 without its words is the API server, which does not get there."""
    answer = await asker.through(path, query)
    if isinstance(answer, Unseen):
        return Unseen(answer.why, answer.mend or go_there)
    text = answer.body.decode(errors="replace")
    if answer.status == 200 or _READYZ in text:
        return answer.status, text
    return Unseen(f"the API server does not get through to it: HTTP {answer.status}: {answer.message}", go_there)


def _by_the_kubelet(pod: Object) -> str:
    """Say why the container is not ready, as far as the kubelet does; empty where it is, or nothing is known."""
    status = pod.get("status", {})
    every = [*(status.get("containerStatuses") or ()), *(status.get("initContainerStatuses") or ())]
    for each in every:
        if each["name"] == CONTAINER and not each.get("ready"):
            state = each.get("state") or {}
            why = (state.get("waiting") or state.get("terminated") or {}).get("reason", "")
            return f"the kubelet says that its container is not ready{f' ({why})' if why else ''}"
    return ""


def _host(address: str) -> str:
    """Return where an address to listen on is reached from beside it, as a URL has it."""
    host = _HERE.get(address, address)
    return f"[{host}]" if ":" in host else host


async def _fetch(session: aiohttp.ClientSession, url: str) -> tuple[int, str] | Unseen:
    try:
        async with session.get(url) as answer:
            return answer.status, await answer.text()
    except (aiohttp.ClientError, OSError) as error:
        return Unseen(f"no answer from {url}: {str(error) or type(error).__name__}", "is the extender running here?")


async def _problem_at(session: aiohttp.ClientSession, url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme != "https":
        return await _route_problem(session, f"{url}/filter")
    try:  # without kube-scheduler's certificate nothing more can be learned
        _, writer = await asyncio.wait_for(asyncio.open_connection(parts.hostname, parts.port or 443), _TIMEOUT_S)
    except OSError as error:
        return f"no connection: {error}"
    writer.close()
    return ""


async def _route_problem(session: aiohttp.ClientSession, url: str) -> str:
    """Say what is wrong with a verb's URL. GET changes nothing: the extender answers that only POST is for it."""
    answer = await _fetch(session, url)
    if isinstance(answer, Unseen):
        return answer.why
    status, _ = answer
    return "" if status == 405 else f"HTTP {status} to GET, where the extender answers 405"


def _readiness(answer: tuple[int, str] | Unseen) -> str | Unseen:
    if isinstance(answer, Unseen):
        return answer
    status, text = answer
    problems = [line.removeprefix("[-]") for line in text.splitlines() if line.startswith("[-]")]
    return "" if status == 200 else "; ".join(problems) or f"HTTP {status}"


def _calls(answer: tuple[int, str] | Unseen) -> Mapping[str, int] | Unseen:
    if isinstance(answer, Unseen):
        return answer
    status, text = answer
    if status != 200:
        return Unseen(f"/metrics answers HTTP {status}")
    calls: Counter[str] = Counter()
    for family in text_string_to_metric_families(text):
        for sample in family.samples if family.name == _CALLS else ():
            if sample.name == f"{_CALLS}_count":
                calls[sample.labels["verb"]] += int(sample.value)
    return calls


def _started_s(answer: tuple[int, str] | Unseen) -> float:
    """Return when the metrics began; 0.0 where that is not known."""
    text = "" if isinstance(answer, Unseen) else answer[1]
    return next((float(line.split()[1]) for line in text.splitlines() if line.startswith(f"{_STARTED} ")), 0.0)


def _containers(pod: Object) -> list[Object]:
    spec = pod["spec"]
    return [*spec["containers"], *(spec.get("initContainers") or ())]
