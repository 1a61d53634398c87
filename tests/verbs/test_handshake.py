"""Real handshakes: who gets through to the verbs with mutual TLS, and what becomes of them as the files change."""

import asyncio
import os
import re
import socket
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import web
from structlog.testing import capture_logs

from e2e.authority import Authority, Pair
from extender.config import TlsConfig
from extender.observe.metrics import Metrics
from extender.verbs import certificates as certificates_file
from extender.verbs.callers import only
from extender.verbs.certificates import Certificates
from tests.eventually import eventually

ADDRESS = "127.0.0.1"
SCHEDULER = "system:kube-scheduler"
NOBODY = Pair(b"", b"")


class Place:
    """A server with mutual TLS, the files that it is given, and clients that come to it."""

    def __init__(self, folder: Path, port: int, metrics: Metrics) -> None:
        self.authority = Authority("ours")
        self.scheduler = self.authority.client(SCHEDULER)
        self.files = folder / "server"
        self.port = port
        self.metrics = metrics
        self.answer = asyncio.Event()
        self._folder = folder
        self.give(self.authority.server(ADDRESS), self.authority)

    def give(self, pair: Pair, *authorities: Authority) -> None:
        """Put these files in place, one after the other."""
        pair.write(self.files, b"".join(each.certificate for each in authorities))

    @property
    def tls(self) -> TlsConfig:
        names = {"certFile": "tls.crt", "keyFile": "tls.key", "clientCaFile": "ca.crt"}
        return TlsConfig.model_validate({field: str(self.files / name) for field, name in names.items()})

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        certificates = Certificates(self.tls, self.metrics)
        app = web.Application(middlewares=[only(self.tls.client_names, certificates.refuse)])
        app.add_routes([web.get("/now", self._now), web.get("/held", self._held)])
        runner = web.AppRunner(app)
        await runner.setup()
        await web.TCPSite(runner, ADDRESS, self.port, ssl_context=certificates.context).start()
        following = asyncio.create_task(certificates.run())
        yield
        assert not following.done()
        following.cancel()
        await runner.cleanup()

    async def _now(self, _request: web.Request) -> web.Response:
        return web.Response(text="here\n")

    async def _held(self, _request: web.Request) -> web.Response:
        await self.answer.wait()
        return web.Response(text="at last\n")

    def context(self, pair: Pair, *, believes: Authority | None = None) -> ssl.SSLContext:
        """Return what a client has that shows this pair."""
        context = ssl.create_default_context(cadata=(believes or self.authority).certificate.decode())
        if pair != NOBODY:
            pair.write(self._folder / "client")
            context.load_cert_chain(self._folder / "client" / "tls.crt", self._folder / "client" / "tls.key")
        return context

    async def connect(self, context: ssl.SSLContext) -> "Connection":
        return Connection(*await asyncio.open_connection(ADDRESS, self.port, ssl=context))

    async def ask(self, pair: Pair, *, believes: Authority | None = None) -> str:
        """Return the answer to a client that comes anew; raises ssl.SSLError where there is none."""
        connection = await self.connect(self.context(pair, believes=believes))
        try:
            return await connection.ask("/now")
        finally:
            connection.close()

    def counted(self, metric: str) -> float:
        return self.metrics.registry.get_sample_value(f"gang_extender_{metric}_total") or 0.0

    def reloads(self, result: str) -> float:
        value = self.metrics.registry.get_sample_value("gang_extender_tls_reloads_total", {"result": result})
        return value or 0.0


class Connection:
    """A client's kept connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def ask(self, path: str) -> str:
        """Return the status and the body."""
        self._writer.write(f"GET {path} HTTP/1.1\r\nHost: verbs\r\n\r\n".encode())
        async with asyncio.timeout(5):
            head = (await self._reader.readuntil(b"\r\n\r\n")).decode()
            length = re.search(r"Content-Length: (\d+)", head)
            assert length
            body = await self._reader.readexactly(int(length[1]))
        return f"{head.split()[1]} {body.decode()}"

    @property
    def shown(self) -> bytes:
        """The certificate that the server showed."""
        der = self._writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        return ssl.DER_cert_to_PEM_cert(der).encode()

    def close(self) -> None:
        self._writer.transport.abort()


@pytest.fixture
def place(tmp_path: Path, unused_tcp_port_factory: Callable[[], int], metrics: Metrics) -> Place:
    return Place(tmp_path, unused_tcp_port_factory(), metrics)


@pytest.fixture
async def served(place: Place, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Place]:
    monkeypatch.setattr(certificates_file, "LOOK_S", 0.01)
    async with place.serving():
        yield place


async def test_a_kube_scheduler_with_a_certificate_of_the_authority_is_let_in(served: Place) -> None:
    assert await served.ask(served.scheduler) == "200 here\n"
    assert served.counted("tls_refusals") == 0


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
async def test_tls_1_2_and_1_3_will_do(served: Place, version: ssl.TLSVersion) -> None:
    context = served.context(served.scheduler)
    context.minimum_version = context.maximum_version = version
    connection = await served.connect(context)
    assert await connection.ask("/now") == "200 here\n"
    connection.close()


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion.TLSv1_1 is deprecated:DeprecationWarning")
async def test_older_tls_will_not(served: Place) -> None:
    context = served.context(served.scheduler)
    context.set_ciphers("ALL:@SECLEVEL=0")  # else the client itself would not try
    context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_1
    with pytest.raises(ssl.SSLError, match="PROTOCOL_VERSION"):
        await served.connect(context)


async def refusal(place: Place, pair: Pair) -> str:
    """Return what a client reads that is sent away while shaking hands."""
    before = place.counted("tls_refusals")
    with pytest.raises(ssl.SSLError) as refused:
        await place.ask(pair)
    assert place.counted("tls_refusals") == before + 1
    return str(refused.value)


async def test_without_a_certificate_nobody_is_let_in(served: Place) -> None:
    assert "certificate required" in await refusal(served, NOBODY)


async def test_nobody_is_let_in_with_another_authoritys_certificate_an_old_one_or_a_servers(served: Place) -> None:
    assert "unknown ca" in await refusal(served, Authority("theirs").client(SCHEDULER))
    assert "certificate expired" in await refusal(served, served.authority.client(SCHEDULER, days=-1))
    assert "unsupported certificate" in await refusal(served, served.authority.server(SCHEDULER))


async def test_others_of_the_same_authority_are_told_that_they_may_not(served: Place) -> None:
    kubelet = served.authority.client("system:node:n1", ["n1"])
    assert await served.ask(kubelet) == "403 The certificate has none of the names of server.tls.clientNames.\n"
    assert served.counted("tls_refusals") == 1


async def test_a_clients_name_may_be_an_alternative_one(served: Place) -> None:
    assert (await served.ask(served.authority.client("whoever", [SCHEDULER]))).startswith("200")


async def test_without_tls_there_is_no_answer_and_the_log_says_whom_it_turned_away(served: Place) -> None:
    with capture_logs() as logs:
        reader, writer = await asyncio.open_connection(ADDRESS, served.port)
        writer.write(b"GET /now HTTP/1.1\r\nHost: verbs\r\n\r\n")
        assert b"here" not in await reader.read()
        writer.close()
    (line,) = logs
    assert line["event"] == "a client of the verbs was refused"
    assert "http request" in line["problem"].lower().replace("_", " ")


async def test_many_who_are_refused_are_counted_but_do_not_fill_the_log(served: Place) -> None:
    with capture_logs() as logs:
        for _ in range(5):
            await refusal(served, NOBODY)
    assert len(logs) == 1
    assert served.counted("tls_refusals") == 5


async def test_a_new_certificate_is_shown_and_open_connections_live_on(served: Place) -> None:
    old = await served.connect(served.context(served.scheduler))
    held = asyncio.create_task(old.ask("/held"))
    renewed = served.authority.server(ADDRESS)
    served.give(renewed, served.authority)
    await eventually(lambda: served.reloads("taken") >= 1)
    new = await served.connect(served.context(served.scheduler))
    assert new.shown == renewed.certificate != old.shown
    assert await new.ask("/now") == "200 here\n"
    served.answer.set()
    assert await held == "200 at last\n", "the call under way is answered"
    assert await old.ask("/now") == "200 here\n"
    old.close()
    new.close()


async def test_an_authority_that_is_taken_away_vouches_for_nobody_any_more(served: Place) -> None:
    other = Authority("theirs")
    server = served.authority.server(ADDRESS)
    served.give(server, served.authority, other)
    await eventually(lambda: served.reloads("taken") >= 1)
    assert (await served.ask(served.scheduler)).startswith("200")
    assert (await served.ask(other.client(SCHEDULER))).startswith("200"), "both, while one takes the other's place"
    seen = served.reloads("taken")
    served.give(server, other)
    await eventually(lambda: served.reloads("taken") > seen)
    assert "unknown ca" in await refusal(served, served.scheduler)
    assert (await served.ask(other.client(SCHEDULER))).startswith("200")


async def test_a_session_does_not_outlive_the_files_that_it_was_made_with(served: Place) -> None:
    """A resumed one would bring the client in without another look at its certificate."""
    context = served.context(served.scheduler)
    context.maximum_version = ssl.TLSVersion.TLSv1_2  # in which this side knows its session at once

    def resumed(session: ssl.SSLSession | None) -> tuple[bool, ssl.SSLSession | None]:
        with context.wrap_socket(_connected(served.port), server_hostname=ADDRESS, session=session) as wrapped:
            wrapped.sendall(b"GET /now HTTP/1.1\r\nHost: verbs\r\nConnection: close\r\n\r\n")
            assert wrapped.recv(12) == b"HTTP/1.1 200"
            while wrapped.recv(1000):
                pass  # a session whose connection broke off is not resumed
            return bool(wrapped.session_reused), wrapped.session

    _, session = await asyncio.to_thread(resumed, None)
    assert (await asyncio.to_thread(resumed, session))[0], "else the next line shows nothing"
    served.give(served.authority.server(ADDRESS), served.authority)
    await eventually(lambda: served.reloads("taken") >= 1)
    assert not (await asyncio.to_thread(resumed, session))[0]


def _connected(port: int) -> socket.socket:
    return socket.create_connection((ADDRESS, port), timeout=5)


async def test_files_that_cannot_be_used_change_nothing_until_they_are_mended(served: Place) -> None:
    first = (served.files / "tls.crt").read_bytes()
    with capture_logs() as logs:
        (served.files / "tls.crt").write_bytes(served.authority.server(ADDRESS).certificate)
        await eventually(lambda: served.reloads("refused") >= 3)
        connection = await served.connect(served.context(served.scheduler))
        assert connection.shown == first
        assert await connection.ask("/now") == "200 here\n"
        connection.close()
        (served.files / "ca.crt").unlink()
        await eventually(lambda: len(logs) == 2)
    assert "do not belong together" in logs[0]["problem"]
    assert "ca.crt: No such file" in logs[1]["problem"]
    assert served.reloads("taken") == 0
    mended = served.authority.server(ADDRESS)
    served.give(mended, served.authority)
    await eventually(lambda: served.reloads("taken") >= 1)
    connection = await served.connect(served.context(served.scheduler))
    assert connection.shown == mended.certificate
    connection.close()


async def test_files_are_followed_as_the_kubelet_swaps_them(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """A Secret's files are links into the folder ..data, which is a link that is replaced in one step."""
    monkeypatch.setattr(certificates_file, "LOOK_S", 0.01)
    renewed = place.authority.server(ADDRESS)
    for name, pair in (("..1", place.authority.server(ADDRESS)), ("..2", renewed)):
        pair.write(place.files / name, place.authority.certificate)
    (place.files / "..data").symlink_to("..1")
    for name in ("tls.crt", "tls.key", "ca.crt"):
        (place.files / name).unlink()
        (place.files / name).symlink_to(f"..data/{name}")
    async with place.serving():
        (place.files / "..data_tmp").symlink_to("..2")
        os.replace(place.files / "..data_tmp", place.files / "..data")  # noqa: PTH105 - as the kubelet does
        await eventually(lambda: place.reloads("taken") == 1)
        connection = await place.connect(place.context(place.scheduler))
        assert connection.shown == renewed.certificate
        connection.close()
        assert place.reloads("refused") == 0


async def test_nobody_finds_the_port_closed_while_files_change_again_and_again(served: Place) -> None:
    context = served.context(served.scheduler)
    calls = 0

    async def come() -> None:
        nonlocal calls
        while served.reloads("taken") < 20:
            connection = await served.connect(context)
            assert await connection.ask("/now") == "200 here\n"
            connection.close()
            calls += 1

    comers = [asyncio.create_task(come()) for _ in range(4)]
    async with asyncio.timeout(30):
        while served.reloads("taken") < 20:
            served.give(served.authority.server(ADDRESS), served.authority)
            await asyncio.sleep(0.02)
        await asyncio.gather(*comers)
    assert calls > 20
