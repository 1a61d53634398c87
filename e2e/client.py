"""How do scenarios talk to the API server? Synchronously, in plain dicts.

One kept connection: a poll then takes a millisecond, where kubectl takes 60 ms of CPU.
"""

import http.client
import ssl
import threading
import time
from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import orjson
import yaml

Object = dict[str, Any]

_FIELD_MANAGER = "e2e"
_TIMEOUT_S = 30.0  # the API server's own limit is 60 s; on loopback half of it already means that it hangs
_IDLE_S = 60.0  # the API server closes a connection that was idle for 90 s

APPLY = "application/apply-patch+yaml"
MERGE = "application/merge-patch+json"


class ApiError(Exception):
    """The API server refused; `status` is the HTTP status, `message` its own words."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"HTTP {status}: {message}")
        self.status = status
        self.message = message


def parse_objects(*sources: Object | str) -> Iterator[Object]:
    """Yield the objects of dicts and of YAML streams, in order."""
    for source in sources:
        if isinstance(source, str):
            yield from (each for each in yaml.load_all(source, Loader=yaml.CSafeLoader) if each)
        else:
            yield source


class ApiClient:
    """One API server, as one user. Safe to share between threads, which then take turns."""

    def __init__(self, server: str, ca_file: Path, token: str) -> None:
        self._host = urlsplit(server).netloc
        self._ca_file = ca_file
        self._headers = {"Authorization": f"Bearer {token}", "Accept": "application/json"}
        self._turn = threading.Lock()
        self._connection: http.client.HTTPSConnection | None = None
        self._used_s = 0.0
        self._resources: dict[tuple[str, str], tuple[str, bool]] = {}

    @classmethod
    def from_kubeconfig(cls, path: Path) -> "ApiClient":
        """Connect as e2e's own kubeconfigs say: one cluster, one user, a token."""
        kubeconfig = orjson.loads(path.read_bytes())
        cluster, user = kubeconfig["clusters"][0]["cluster"], kubeconfig["users"][0]["user"]
        return cls(cluster["server"], Path(cluster["certificate-authority"]), user["token"])

    def get(self, path: str) -> Any:
        """Return the object or list there; raises ApiError."""
        return self._send("GET", path)

    def find(self, path: str) -> Object | None:
        """Return the object there, or None where there is none."""
        try:
            found: Object = self.get(path)
        except ApiError as error:
            if error.status == HTTPStatus.NOT_FOUND:
                return None
            raise
        return found

    def create(self, path: str, body: Object, *, dry_run: bool = False) -> Any:
        """POST to a collection, for show only in a dry run; a field that the API server does not know is an error."""
        query = f"fieldValidation=Strict&fieldManager={_FIELD_MANAGER}{'&dryRun=All' if dry_run else ''}"
        return self._send("POST", f"{path}?{query}", body)

    def patch(self, path: str, body: Object) -> Any:
        """Merge `body` into the object there."""
        return self._send("PATCH", f"{path}?fieldManager={_FIELD_MANAGER}", body, MERGE)

    def delete(self, path: str, uid: str = "", grace_period_s: int | None = None) -> None:
        """Delete an object (only the one with this uid, where one is given) or a collection; gone already is fine."""
        options: Object = {"propagationPolicy": "Background"}
        options |= {"preconditions": {"uid": uid}} if uid else {}
        options |= {} if grace_period_s is None else {"gracePeriodSeconds": grace_period_s}
        try:
            self._send("DELETE", path, options)
        except ApiError as error:
            if error.status != HTTPStatus.NOT_FOUND:
                raise

    def apply(self, obj: Object, namespace: str = "") -> None:
        """Server-side apply; `namespace` is for a namespaced object that names none. Raises ApiError."""
        query = f"fieldManager={_FIELD_MANAGER}&force=true&fieldValidation=Strict"
        self._send("PATCH", f"{self.path_of(obj, namespace)}?{query}", obj, APPLY)

    def path_of(self, obj: Object, namespace: str = "") -> str:
        """Return the path of an object, by the API server's own discovery; raises ApiError for an unknown kind."""
        version, kind, metadata = obj["apiVersion"], obj["kind"], obj["metadata"]
        if (version, kind) not in self._resources:
            self._discover(version)
        if (version, kind) not in self._resources:
            raise ApiError(HTTPStatus.NOT_FOUND, f"the API server has no kind {kind} in {version}")
        plural, namespaced = self._resources[version, kind]
        where = f"/namespaces/{metadata.get('namespace') or namespace or 'default'}" if namespaced else ""
        return f"{_group_path(version)}{where}/{plural}/{metadata['name']}"

    def _discover(self, version: str) -> None:
        for resource in self.get(_group_path(version))["resources"]:
            if "/" not in resource["name"]:
                self._resources[version, resource["kind"]] = resource["name"], resource["namespaced"]

    def _send(self, method: str, path: str, body: Object | None = None, content_type: str = "application/json") -> Any:
        data = None if body is None else orjson.dumps(body)
        with self._turn:
            status, answer = self._exchange(method, path, data, self._headers | {"Content-Type": content_type})
        if status >= HTTPStatus.BAD_REQUEST:
            raise ApiError(status, _message(answer))
        return orjson.loads(answer) if answer[:1] in (b"{", b"[") else answer.decode()

    def _exchange(self, method: str, path: str, data: bytes | None, headers: dict[str, str]) -> tuple[int, bytes]:
        connection = self._connected()
        try:
            connection.request(method, path, data, headers)
            response = connection.getresponse()
            answer = response.status, response.read()
        except (OSError, http.client.HTTPException):
            self.close()
            raise
        self._used_s = time.monotonic()
        return answer

    def _connected(self) -> http.client.HTTPSConnection:
        if time.monotonic() - self._used_s > _IDLE_S:
            self.close()
        if self._connection is None:
            tls = ssl.create_default_context(cafile=self._ca_file)
            self._connection = http.client.HTTPSConnection(self._host, timeout=_TIMEOUT_S, context=tls)
        return self._connection

    def close(self) -> None:
        """Close the connection; the next call opens another."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def _group_path(version: str) -> str:
    return f"/apis/{version}" if "/" in version else f"/api/{version}"


def _message(answer: bytes) -> str:
    try:
        return str(orjson.loads(answer)["message"])
    except (orjson.JSONDecodeError, KeyError, TypeError):
        return answer.decode(errors="replace").strip()
