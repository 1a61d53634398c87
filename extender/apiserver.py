"""How do we talk to kube-apiserver? In raw bytes, through one connection pool.

The `kubernetes` package finds the server and keeps the credentials (kubeconfig, ServiceAccount, exec plug-ins, TLS);
nothing else of it is used: its typed calls take 0.9 ms per pod and its Binding call fails after the pod is bound.
"""

import os
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import yaml
from kubernetes.aio.client import Configuration
from kubernetes.aio.client.rest import RESTClientObject
from kubernetes.aio.config import ConfigException, load_incluster_config, load_kube_config
from msgspec import MsgspecError, Struct
from msgspec.json import Decoder

JSON = "application/json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_MERGE_PATCH = "application/strategic-merge-patch+json"

_CREDENTIALS_REREAD_S = 60.0
"""ServiceAccount tokens live ten minutes at least, and the package re-reads the in-cluster one at the same pace."""

_CONNECT_TIMEOUT_S = 10.0
"""A server across a continent answers in less than a second; what takes ten is not there."""

_CONNECTIONS = 64
"""A watch holds one for good; of writes, more than 16 in flight gained nothing on two cores."""

_UNUSABLE = (ConfigException, OSError, yaml.YAMLError, ValueError)
_MISSHAPEN = (AttributeError, KeyError, TypeError)
"""What the package is seen to raise for a kubeconfig that is not one."""


class KubeconfigError(Exception):
    """The API server's address or our credentials cannot be had; the text says where and why."""


class NoAnswerError(Exception):
    """No whole answer came; whether the API server did what was asked is unknown."""


class SilenceError(NoAnswerError):
    """A stream brought nothing for as long as we wait; the server may be gone, or have nothing to say."""


class _Status(Struct):
    message: str


_STATUS = Decoder(_Status)


class Response(Struct, frozen=True):
    """An answer of the API server; `headers` ignores the case of names."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def retry_after_s(self) -> float:
        """How long the server asks us to wait; 0.0 where it does not say."""
        value = self.headers.get("Retry-After", "")
        return float(value) if value.isascii() and value.isdigit() else 0.0

    @property
    def message(self) -> str:
        """What the server says in its Status, or else how its answer begins."""
        try:
            return _STATUS.decode(self.body).message
        except (MsgspecError, UnicodeDecodeError):
            return self.body[:200].decode(errors="replace")

    @property
    def is_transient(self) -> bool:
        """Whether the same request may well be granted later."""
        return self.status == 429 or self.status >= 500


class RefusedError(Exception):
    """The API server answered with a status that the caller has no use for."""

    def __init__(self, response: Response) -> None:
        super().__init__(f"HTTP {response.status}: {response.message}")
        self.response = response


class ApiServer:
    """One API server: raw requests and streams with our credentials.

    Made by `connect`, within the event loop that uses it; `close` it at the end.
    """

    def __init__(self, configuration: Configuration) -> None:
        self.host: str = configuration.host.rstrip("/")
        self._configuration = configuration
        self._route = {
            "proxy": configuration.proxy,
            "proxy_headers": configuration.proxy_headers,
            "server_hostname": configuration.tls_server_name,
        }
        tls = RESTClientObject(configuration).ssl_context
        self._session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=_CONNECTIONS, ssl=tls))

    async def request(
        self,
        method: str,
        path: str,
        *,
        timeout_s: float,
        query: Mapping[str, str] | None = None,
        body: bytes = b"",
        content_type: str = JSON,
    ) -> Response:
        """Send one request and return the whole answer, whatever its status; raises NoAnswerError."""
        timeout = aiohttp.ClientTimeout(total=timeout_s, sock_connect=_CONNECT_TIMEOUT_S)
        headers = {"Content-Type": content_type} if body else {}
        async with self._send(method, path, query, timeout, headers=headers, data=body or None) as answer:
            return Response(answer.status, answer.headers, await answer.read())

    @asynccontextmanager
    async def stream(
        self, path: str, *, query: Mapping[str, str], silence_s: float
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """GET `path` and yield an iterator over the answer's lines, without newlines and of any length.

        Raises RefusedError for any status but 200, and, from the iterator as well, NoAnswerError when the connection
        breaks and SilenceError when nothing comes for `silence_s`. A last line without a newline is dropped.
        """
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_TIMEOUT_S, sock_read=silence_s)
        async with self._send("GET", path, query, timeout) as answer:
            if answer.status != 200:
                raise RefusedError(Response(answer.status, answer.headers, await answer.read()))
            async with aclosing(_lines(answer.content)) as lines:
                yield lines

    async def close(self) -> None:
        """Close every connection."""
        await self._session.close()

    @asynccontextmanager
    async def _send(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None,
        timeout: aiohttp.ClientTimeout,  # noqa: ASYNC109 - aiohttp's own, which also knows silence
        headers: Mapping[str, str] | None = None,
        **rest: Any,
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        try:
            own = await self._headers()
            async with self._session.request(
                method,
                self.host + path,
                params=query,
                headers={**own, **(headers or {})},
                timeout=timeout,
                allow_redirects=False,
                **rest,
                **self._route,
            ) as answer:
                yield answer
        except (aiohttp.ClientError, OSError) as error:
            kind = SilenceError if isinstance(error, aiohttp.SocketTimeoutError) else NoAnswerError
            problem = str(error) or type(error).__name__
            raise kind(f"no answer from {self.host} to {method} {path}: {problem}") from error
        except ConfigException as error:
            raise NoAnswerError(f"our credentials for {self.host} cannot be read: {error}") from error

    async def _headers(self) -> dict[str, str]:
        # Compressing a list costs both sides more than the loopback or the cluster's network does.
        headers = {"Accept": JSON, "Accept-Encoding": "identity", "User-Agent": "gang-extender"}
        auth = await self._configuration.auth_settings()
        if "BearerToken" in auth:
            headers["Authorization"] = auth["BearerToken"]["value"].strip()
        return headers


async def connect(kubeconfig: str) -> ApiServer:
    """Return the API server of this kubeconfig's current context, or of the cluster around us when it is empty.

    Nothing is sent yet. Raises KubeconfigError.
    """
    try:
        configuration = await _from_file(kubeconfig) if kubeconfig else _from_service_account()
        return ApiServer(configuration)
    except (*_UNUSABLE, *_MISSHAPEN) as error:
        if kubeconfig:
            problem = "not laid out as a kubeconfig is" if isinstance(error, _MISSHAPEN) else error
            raise KubeconfigError(f"kubeconfig {kubeconfig}: {problem}") from error
        raise KubeconfigError(
            f"no kubeconfig is given, and our pod's ServiceAccount cannot be used: {error} "
            "Outside of a cluster, set kubeconfig in the configuration file."
        ) from error


def _from_service_account() -> Configuration:
    configuration = _empty_configuration()
    load_incluster_config(client_configuration=configuration)
    return configuration


async def _from_file(kubeconfig: str) -> Configuration:
    _check_exists(Path(kubeconfig))
    configuration = _empty_configuration()
    loader = await load_kube_config(kubeconfig, client_configuration=configuration, persist_config=False)
    if not configuration.host:
        raise ConfigException("the current context's cluster has no server")
    configuration.refresh_api_key_hook = _reread(loader.load_and_set)
    return configuration


def _check_exists(path: Path) -> None:
    # The package only logs a warning and then misses "current-context".
    if path.expanduser().is_file():
        return
    if os.pathsep in str(path):  # of these the package takes the last one's context, and kubectl the first one's
        raise FileNotFoundError("several files; join them: kubectl config view --flatten --minify > FILE")
    raise FileNotFoundError("no such file")


def _empty_configuration() -> Configuration:
    configuration = Configuration(host="")
    # From Python 3.13 on, strict means that a CA without the key identifier extensions is refused. Go accepts
    # it, and the CAs of many clusters lack them.
    configuration.disable_strict_ssl_verification = True
    return configuration


def _reread(load: Callable[[Configuration], Awaitable[None]]) -> Callable[[Configuration], Awaitable[None]]:
    """Return a hook that loads the credentials again when they are old; the package does so in-cluster only."""
    due_s = time.monotonic() + _CREDENTIALS_REREAD_S

    async def hook(configuration: Configuration) -> None:
        nonlocal due_s
        if time.monotonic() >= due_s:
            due_s = time.monotonic() + _CREDENTIALS_REREAD_S
            await load(configuration)

    return hook


async def _lines(content: aiohttp.StreamReader) -> AsyncGenerator[bytes, None]:
    # StreamReader.readline refuses lines beyond its buffer's size, and one watched object may have 2 MiB.
    parts: list[bytes] = []
    async for chunk in content.iter_any():
        first, *others = chunk.split(b"\n")
        parts.append(first)
        for start in others:
            yield b"".join(parts)
            parts = [start]
