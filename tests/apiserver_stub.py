"""A stand-in for kube-apiserver on the loopback: objects, lists, watches, Bindings, patches, and faults on demand.

It keeps the rules that our code leans on, as kube-apiserver 1.36 was seen to: pages with continue tokens, 410 for
versions that are compacted away; 409 for a Binding of another UID or of a bound pod, and for a patch or an update of
another version; 422 for a patch of another UID.
"""

import asyncio
import json
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple

from aiohttp import web

Json = dict[str, Any]
Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Call(NamedTuple):
    """A request that came in; `verb` is one of list, watch, get, create, update, bind, patch."""

    verb: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: Json
    at_s: float


class ApiServerStub:
    """One API server. `url` is known before it is started, and the same after a stop."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self.calls: list[Call] = []
        self.objects: dict[str, Json] = {}
        """By path."""
        self.most_at_once: Counter[str] = Counter()
        """By verb: how many requests were being answered at the same time."""
        self.installed = {
            "/api/v1/pods",
            "/api/v1/nodes",
            "/api/v1/namespaces",
            "/api/v1/persistentvolumeclaims",
            "/api/v1/persistentvolumes",
            "/apis/policy/v1/poddisruptionbudgets",
        }
        """The collections that can be listed and watched; of others it says "not found"."""
        self._port = port
        self._version = 100
        self._oldest = 0
        self._history: list[tuple[int, str, bytes]] = []
        self._streams_ended = 0
        self._news = asyncio.Condition()
        self._at_once: Counter[str] = Counter()
        self._faults: dict[str, deque[Answer]] = {}
        self._runner: web.AppRunner | None = None

    async def start(self) -> None:
        """Begin to listen."""
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self._handle)
        self._runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.01)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self._port).start()

    async def stop(self) -> None:
        """Break every connection and refuse new ones."""
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    def calls_of(self, verb: str) -> list[Call]:
        """Return the requests of one verb, oldest first."""
        return [call for call in self.calls if call.verb == verb]

    def answer_next(self, verb: str, *answers: Answer) -> None:
        """Answer the next requests of this verb so, one each, before behaving again."""
        self._faults.setdefault(verb, deque()).extend(answers)

    async def put(self, path: str, content: Json) -> None:
        """Create or change an object and tell the watches."""
        kind = "MODIFIED" if path in self.objects else "ADDED"
        self._store(path, content)
        await self._tell(_resource(path), kind, self.objects[path])

    async def delete(self, path: str) -> None:
        """Delete an object and tell the watches."""
        self._version += 1
        gone = self.objects.pop(path)
        gone["metadata"]["resourceVersion"] = str(self._version)
        await self._tell(_resource(path), "DELETED", gone)

    async def uninstall(self, collection: str) -> None:
        """Delete the objects of a kind and then the kind, as the deletion of its CustomResourceDefinition does."""
        for path in [path for path in self.objects if _collection(path) == collection]:
            await self.delete(path)
        self.installed.remove(collection)
        await self.end_watches()

    def lose(self, path: str) -> None:
        """Delete an object that no watch will tell of: the version before it is compacted away."""
        del self.objects[path]
        self._version += 1
        self._oldest = self._version

    async def bookmark(self, resource: str) -> int:
        """Send a bookmark and return its version."""
        self._version += 1
        await self._tell(resource, "BOOKMARK", {"metadata": {"resourceVersion": str(self._version)}})
        return self._version

    async def send_line(self, resource: str, line: bytes) -> None:
        """Send a line that is no event of ours."""
        async with self._news:
            self._history.append((self._version + 1, resource, line + b"\n"))
            self._news.notify_all()

    async def end_watches(self) -> None:
        """End every watch as a time-out of the server's does: cleanly."""
        async with self._news:
            self._streams_ended += 1
            self._news.notify_all()

    async def act_unheard(self, request: web.Request) -> web.StreamResponse:
        """Do what is asked, and break the connection instead of answering."""
        await self.act(request)
        return await break_off(request)

    def _store(self, path: str, content: Json) -> None:
        self._version += 1
        metadata = {**content.get("metadata", {}), "resourceVersion": str(self._version)}
        self.objects[path] = {**content, "metadata": metadata}

    async def _tell(self, resource: str, kind: str, content: Json) -> None:
        line = json.dumps({"type": kind, "object": content}).encode() + b"\n"
        async with self._news:
            self._history.append((self._version, resource, line))
            self._news.notify_all()

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        verb = _verb(request)
        body = json.loads(await request.read() or b"{}")
        now_s = asyncio.get_running_loop().time()
        self.calls.append(Call(verb, request.path, request.query, request.headers, body, now_s))
        self._at_once[verb] += 1
        self.most_at_once[verb] = max(self.most_at_once[verb], self._at_once[verb])
        try:
            faults = self._faults.get(verb)
            return await (faults.popleft() if faults else self.act)(request)
        finally:
            self._at_once[verb] -= 1

    async def act(self, request: web.Request) -> web.StreamResponse:  # noqa: PLR0911 - one for each verb
        """Do what is asked, as a healthy API server does."""
        match _verb(request):
            case "list" | "watch" if request.path not in self.installed:
                return refusal(404, "the server could not find the requested resource")
            case "list":
                return self._list(request)
            case "watch":
                return await self._watch(request)
            case "get" if request.path in self.objects:
                return web.json_response(self.objects[request.path])
            case "create":
                return await self._create(request.path, await request.json())
            case "update":
                return await self._update(request.path, await request.json())
            case "bind":
                return await self._bind(request.path.removesuffix("/binding"), await request.json())
            case "patch":
                return await self._change(request.path.removesuffix("/status"), await request.json())
            case _:
                return refusal(404, "not found")

    def _list(self, request: web.Request) -> web.StreamResponse:
        start = int(request.query.get("continue", "0"))
        end = start + int(request.query.get("limit", "1000000"))
        items = [content for path, content in self.objects.items() if request.path in _collections(path)]
        metadata = {"resourceVersion": str(self._version)}
        if end < len(items):
            metadata["continue"] = str(end)
        return web.json_response({"metadata": metadata, "items": items[start:end]})

    async def _watch(self, request: web.Request) -> web.StreamResponse:
        version = int(request.query["resourceVersion"])
        if version < self._oldest:
            return refusal(410, "too old resource version")
        resource = _resource(f"{request.path}/")
        stream = web.StreamResponse()
        await stream.prepare(request)
        sent, ended = 0, self._streams_ended
        while self._streams_ended == ended:
            for at, what, line in self._history[sent:]:
                if what == resource and at > version:
                    await stream.write(line)
            sent = len(self._history)
            async with self._news:
                if len(self._history) == sent and self._streams_ended == ended:
                    await self._news.wait()
        return stream

    async def _create(self, collection: str, content: Json) -> web.Response:
        path = f"{collection}/{content['metadata']['name']}"
        if path in self.objects:
            return refusal(409, "already exists")
        await self.put(path, {**content, "metadata": {"uid": f"uid of {path}", **content["metadata"]}})
        return web.json_response(self.objects[path], status=201)

    async def _update(self, path: str, content: Json) -> web.Response:
        before = self.objects.get(path)
        if before is None:
            return refusal(404, "not found")
        if content["metadata"].get("resourceVersion") != before["metadata"]["resourceVersion"]:
            return refusal(409, "the object has been modified")
        await self.put(path, content)
        return web.json_response(self.objects[path])

    async def _bind(self, path: str, binding: Json) -> web.Response:
        pod = self.objects.get(path)
        if pod is None:
            return refusal(404, "not found")
        if binding["metadata"]["uid"] != pod["metadata"]["uid"]:
            return refusal(409, "Precondition failed: UID in precondition")
        if pod["spec"].get("nodeName"):
            return refusal(409, f'pod is already assigned to node "{pod["spec"]["nodeName"]}"')
        await self.put(path, _merged(pod, {"spec": {"nodeName": binding["target"]["name"]}}))
        return web.json_response({"kind": "Status", "status": "Success"}, status=201)

    async def _change(self, path: str, patch: Json) -> web.Response:
        before = self.objects.get(path)
        if before is None:
            return refusal(404, "not found")
        uid = patch.get("metadata", {}).get("uid")
        if uid and uid != before["metadata"]["uid"]:
            return refusal(422, "metadata.uid: Invalid value: field is immutable")
        version = patch.get("metadata", {}).get("resourceVersion")
        if version and version != before["metadata"]["resourceVersion"]:
            return refusal(409, "the object has been modified")
        await self.put(path, _merged(before, patch))
        return web.json_response(self.objects[path])


def refusal(status: int, message: str = "", **headers: str) -> web.Response:
    """Return a Status object as the API server's answer."""
    body = {"kind": "Status", "status": "Failure", "code": status, "message": message}
    return web.json_response(body, status=status, headers=headers)


def answer(status: int, message: str = "", **headers: str) -> Answer:
    """Refuse with this status."""

    async def refuse(_request: web.Request) -> web.StreamResponse:
        return refusal(status, message, **headers)

    return refuse


def stream(*lines: bytes, end: bytes = b"\n") -> Answer:
    """Send these lines and end the answer."""

    async def send(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        for line in lines:
            await response.write(line + end)
        return response

    return send


async def silence(request: web.Request) -> web.StreamResponse:
    """Begin to answer, and never say a word."""
    response = web.StreamResponse()
    await response.prepare(request)
    return await _never()


async def no_answer(_request: web.Request) -> web.StreamResponse:
    """Take the request and never answer."""
    return await _never()


async def break_off(request: web.Request) -> web.StreamResponse:
    """Break the connection."""
    assert request.transport is not None
    request.transport.abort()
    return await _never()


async def _never() -> web.StreamResponse:
    await asyncio.Event().wait()
    raise AssertionError("unreachable")


def _merged(content: Json, patch: Json) -> Json:
    """Return what a merge patch makes of the content; of a strategic one, deletions from a list by name as well."""
    merged = dict(content)
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        elif isinstance(value, dict):
            merged[key] = _merged(merged.get(key) or {}, value)
        elif isinstance(value, list) and all(isinstance(item, dict) and "$patch" in item for item in value):
            gone = {item["name"] for item in value}
            merged[key] = [item for item in merged.get(key) or () if item["name"] not in gone]
        else:
            merged[key] = value
    return merged


def _collection(path: str) -> str:
    """Return the path under which an object is listed with those of all namespaces."""
    parts = path.split("/")[:-1]
    return "/".join([*parts[:-3], parts[-1]] if parts[-3] == "namespaces" else parts)


def _collections(path: str) -> tuple[str, str]:
    """Return the paths under which an object is listed: with those of all namespaces, and with those of its own."""
    return _collection(path), path.rpartition("/")[0]


def _resource(path: str) -> str:
    """Return what kind of object is there: `pods`, or `podgroups.scheduling.volcano.sh`."""
    _, root, group, *_ = path.split("/")
    return path.split("/")[-2] + (f".{group}" if root == "apis" else "")


def _verb(request: web.Request) -> str:
    if request.method == "POST":
        return "bind" if request.path.endswith("/binding") else "create"
    if request.method == "PATCH":
        return "patch"
    if request.method == "PUT":
        return "update"
    if "watch" in request.query:
        return "watch"
    return "list" if "limit" in request.query else "get"
