"""What happens to the objects of a collection, event by event, so that nothing hides between two polls?"""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from http.client import HTTPException, HTTPResponse, HTTPSConnection
from urllib.parse import urlsplit

import orjson

from e2e.cluster import Cluster, Namespace, Object

See = Callable[[str, Object], None]
"""Takes an event's type and the object; called in the watch's own thread."""


def follow_pods(namespace: Namespace, see: See) -> AbstractContextManager[None]:
    """Show every event of the namespace's pods, as `follow` does."""
    return follow(namespace.cluster, f"{namespace.path}/pods", see)


@contextmanager
def follow(cluster: Cluster, path: str, see: See) -> Iterator[None]:
    """Show every event until the end, beginning with what exists; fails at the end when the watch broke before."""
    connection, answer = open_watch(cluster, path)
    ended = threading.Event()

    def read() -> None:
        with suppress(OSError, HTTPException):  # as the connection is cut at the end
            _tell(answer, see)
        ended.set()

    thread = threading.Thread(target=read)
    thread.start()
    try:
        yield
        assert not ended.is_set(), "the watch ended before the scenario did"
    finally:
        # Not SSLSocket's own shutdown, after which the thread would read what is encrypted.
        socket.socket.shutdown(connection.sock, socket.SHUT_RDWR)
        thread.join()
        connection.close()


@contextmanager
def follow_on(cluster: Cluster, path: str, see: See) -> Iterator[None]:
    """Show every event until the end, and what exists once more where the API server ended the watch before."""
    is_over = threading.Event()
    open_now: list[HTTPSConnection] = []

    def read() -> None:
        while not is_over.is_set():
            with suppress(OSError, HTTPException, AssertionError):
                connection, answer = open_watch(cluster, path)
                with closing(connection):
                    open_now[:] = [connection]
                    _tell(answer, see)
            is_over.wait(0.1)

    thread = threading.Thread(target=read)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        for connection in open_now:
            with suppress(OSError, TypeError):  # TypeError: it is closed by now
                socket.socket.shutdown(connection.sock, socket.SHUT_RDWR)
        thread.join()


def open_watch(cluster: Cluster, path: str, since: str = "") -> tuple[HTTPSConnection, HTTPResponse]:
    """Begin to watch after this resourceVersion, or with all that exists; fails where that is too old."""
    kubeconfig = orjson.loads(cluster.kubeconfig.read_bytes())
    server, token = kubeconfig["clusters"][0]["cluster"]["server"], kubeconfig["users"][0]["user"]["token"]
    connection = HTTPSConnection(urlsplit(server).netloc, context=cluster.tls)
    query = f"?watch=true&timeoutSeconds=3600{f'&resourceVersion={since}' if since else ''}"
    try:
        connection.request("GET", path + query, headers={"Authorization": f"Bearer {token}"})
        answer = connection.getresponse()
        assert answer.status == 200, answer.read()
    except BaseException:
        connection.close()
        raise
    return connection, answer


def _tell(answer: HTTPResponse, see: See) -> None:
    for line in answer:
        if line.endswith(b"\n"):
            event = orjson.loads(line)
            see(event["type"], event["object"])
