"""`python -m e2e.bench.growth.caller PORT PATH`: calls a server as kube-scheduler does.

From a process of its own, one call after the other over one connection that is kept. It reads a count and a body's
length in a line, then the body, and prints how many seconds each call took, until its input ends.
"""

import socket
import sys
import time

import orjson


def main() -> None:
    """Call as often as the input asks for."""
    connection = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # as Go does
    while line := sys.stdin.buffer.readline():
        count, length = map(int, line.split())
        body = sys.stdin.buffer.read(length)
        head = f"POST {sys.argv[2]} HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
        request = f"{head}Content-Length: {length}\r\n\r\n".encode() + body
        times = [_call(connection, request) for _ in range(count)]
        sys.stdout.buffer.write(orjson.dumps(times) + b"\n")
        sys.stdout.buffer.flush()


def _call(connection: socket.socket, request: bytes) -> float:
    started_s = time.perf_counter()
    connection.sendall(request)
    answer = b""
    while b"\r\n\r\n" not in answer:
        answer += _received(connection)
    head, _, body = answer.partition(b"\r\n\r\n")
    if not head.startswith(b"HTTP/1.1 200 "):
        raise RuntimeError(head.decode())
    length = int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0])
    while len(body) < length:
        body += _received(connection)
    return time.perf_counter() - started_s


def _received(connection: socket.socket) -> bytes:
    data = connection.recv(65536)
    if not data:
        raise ConnectionError("the server has closed the connection")
    return data


if __name__ == "__main__":
    main()
