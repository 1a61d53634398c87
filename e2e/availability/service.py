"""A stand-in for a Service: each new connection goes to the endpoint that is ready, and is not moved afterwards.

As kube-proxy has it: who is no longer ready keeps the connections that it has.
"""

import socket
import threading
from collections.abc import Callable
from contextlib import suppress

from e2e.processes import is_ok

ENDPOINT_S = 5.0


class Endpoint:
    """Where one extender serves, and where it says whether it is ready."""

    def __init__(self, port: int, probe: str) -> None:
        self.port = port
        self.probe = probe


class Service:
    """Listens on `port` until closed."""

    def __init__(self, endpoints: Callable[[], list[Endpoint]]) -> None:
        self._endpoints = endpoints
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Take no more connections."""
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._relay, args=(client,), daemon=True).start()

    def _relay(self, client: socket.socket) -> None:
        ready = next((each for each in self._endpoints() if is_ok(each.probe)), None)
        with client, suppress(OSError):
            if ready is None:
                return
            with socket.create_connection(("127.0.0.1", ready.port), ENDPOINT_S) as server:
                server.settimeout(None)
                back = threading.Thread(target=_copy, args=(server, client), daemon=True)
                back.start()
                _copy(client, server)
                back.join()


def _copy(source: socket.socket, sink: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65_536):
            sink.sendall(data)
    for each in (source, sink):
        with suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)
