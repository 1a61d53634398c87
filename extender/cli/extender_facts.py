"""Do the extenders run, do they answer, and have they been called?

Beside it (in its pod, or on its host) it is asked as kube-scheduler asks it; from elsewhere its probes and metrics are
read through the API server, and the verbs cannot be reached at all.
"""

from collections import Counter
from collections.abc import Mapping
from typing import Any

import aiohttp
import orjson
from prometheus_client.parser import text_string_to_metric_families

from extender.cli.asking import Asker, UnseenError
from extender.config import ServerConfig
from extender.doctor.facts import Extender
from extender.doctor.finding import Unseen

CONTAINER = "extender"

_TIMEOUT_S = 5.0
_CALLS = "gang_extender_verb_duration_seconds"
_GO_THERE = (
    "kubectl -n gang-extender exec deploy/gang-scheduler -c extender -- /opt/gang-extender/bin/gang-extender doctor"
    " --config /etc/gang-extender/config.yaml"
)
_FROM_ELSEWHERE = Unseen("what kube-scheduler reaches at 127.0.0.1 cannot be tried from here", _GO_THERE)


async def ask_beside(server: ServerConfig, urls: tuple[str, ...]) -> Extender:
    """Ask the extender next to us, at its probes and at the entries' URLs."""
    host = server.probe_address if server.probe_address != "0.0.0.0" else "127.0.0.1"  # noqa: S104 - compared
    probes = f"http://{host}:{server.probe_port}"
    timeout = aiohttp.ClientTimeout(total=_TIMEOUT_S)
    async with aiohttp.ClientSession(timeout=timeout, trust_env=False) as session:
        ready = await _fetch(session, f"{probes}/readyz?verbose")
        metrics = await _fetch(session, f"{probes}/metrics")
        reachable = {url: await _route_problem(session, f"{url}/filter") for url in urls}
    return Extender(probes, _readiness(ready), _calls(metrics), reachable)


async def ask_pods(asker: Asker, namespace: str, server: ServerConfig) -> tuple[Extender, ...] | Unseen:
    """Ask every pod of the extender through the API server."""
    try:
        names = [
            name async for item in asker.items(f"/api/v1/namespaces/{namespace}/pods") if (name := _extender_pod(item))
        ]
    except UnseenError as error:
        return error.unseen
    if not names:
        return Unseen(
            f"no pod with a container {CONTAINER} is in namespace {namespace}", "--namespace, or --beside-extender"
        )
    return tuple([await _ask_pod(asker, f"{namespace}/{name}", server.probe_port) for name in names])


async def _ask_pod(asker: Asker, pod: str, port: int) -> Extender:
    namespace, _, name = pod.partition("/")
    base = f"/api/v1/namespaces/{namespace}/pods/{name}:{port}/proxy"
    ready, metrics = await _through(asker, f"{base}/readyz", "?verbose"), await _through(asker, f"{base}/metrics")
    return Extender(f"pod {pod}", _readiness(ready), _calls(metrics), _FROM_ELSEWHERE)


async def _through(asker: Asker, path: str, query: str = "") -> tuple[int, str] | Unseen:
    answer = await asker.get(path, {"verbose": ""} if query else None)
    if isinstance(answer, Unseen):
        return Unseen(answer.why, answer.mend or _GO_THERE)
    return answer.status, answer.body.decode(errors="replace")


async def _fetch(session: aiohttp.ClientSession, url: str) -> tuple[int, str] | Unseen:
    try:
        async with session.get(url) as answer:
            return answer.status, await answer.text()
    except (aiohttp.ClientError, OSError) as error:
        return Unseen(f"no answer from {url}: {str(error) or type(error).__name__}", "is the extender running here?")


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


def _extender_pod(item: bytes) -> str:
    pod: dict[str, Any] = orjson.loads(item)
    spec = pod["spec"]
    names = {each["name"] for each in [*spec["containers"], *(spec.get("initContainers") or ())]}
    return str(pod["metadata"]["name"]) if CONTAINER in names else ""
