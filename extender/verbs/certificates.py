"""What do the verbs show kube-scheduler, and whom do they let in? The files of `server.tls`, as long as they change.

A new SSLContext for new files, never a changed one: OpenSSL forgets no authority that it was told of, and a session of
the old files could be resumed without the certificate being looked at again. Tickets are not given out for that reason;
what is left is that a TLS 1.2 client resumes a session of the same files, for two hours at most.
"""

import asyncio
import ssl
import time
from pathlib import Path
from typing import NoReturn

import structlog

from extender.config import TlsConfig
from extender.observe.metrics import Metrics
from extender.verbs.handshake import Handshakes

LOOK_S = 10.0
"""How often the files are looked at. The kubelet itself takes a minute or so to bring a changed Secret to the pod."""

_SAID_AGAIN_S = 10.0
"""How often the log tells of clients that are sent away, whom anybody can send. The metric counts them all."""

_log = structlog.get_logger()


class CertificateError(Exception):
    """The files of `server.tls` cannot be used; the text says which, and why."""


class Certificates:
    """The files of one configuration; raises CertificateError where they cannot be used at the start.

    `context` is what to listen with.
    """

    def __init__(self, tls: TlsConfig, metrics: Metrics) -> None:
        self._tls = tls
        self._metrics = metrics
        self._said_s = -_SAID_AGAIN_S
        self._problem = ""
        self._taken = self._read()
        self.context = Handshakes(ssl.PROTOCOL_TLS_SERVER)
        self.context.newest = self._load()
        self.context.refuse = self.refuse

    async def run(self) -> None:
        """Follow the files for ever. Connections that are open stay as they are."""
        while True:
            await asyncio.sleep(LOOK_S)
            try:
                self._look_again()
            except CertificateError as error:
                self._metrics.tls_reloads.labels("refused").inc()
                self._complain(str(error))

    def _look_again(self) -> None:
        found = self._read()
        if found != self._taken:
            self.context.newest = self._load()
            self._taken = found
            self._metrics.tls_reloads.labels("taken").inc()
            _log.info("new TLS files are used", certificate=self._tls.cert_file)
        self._problem = ""

    def refuse(self, problem: str) -> None:
        """Count and tell of a client that is sent away."""
        self._metrics.tls_refusals.inc()
        now_s = time.monotonic()
        if now_s - self._said_s >= _SAID_AGAIN_S:
            self._said_s = now_s
            _log.warning("a client of the verbs was refused", problem=problem)

    def _complain(self, problem: str) -> None:
        if problem != self._problem:
            self._problem = problem
            _log.warning("the new TLS files cannot be used; the verbs go on with the old ones", problem=problem)

    def _read(self) -> list[bytes]:
        """Return the files' content, which tells of a change more surely than times and inodes do."""
        return [
            _content(field, path)
            for field, path in (
                ("certFile", self._tls.cert_file),
                ("keyFile", self._tls.key_file),
                ("clientCaFile", self._tls.client_ca_file),
            )
        ]

    def _load(self) -> ssl.SSLContext:
        # Not ssl.create_default_context: it would let in whom the machine's own authorities vouch for.
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.verify_mode = ssl.CERT_REQUIRED
        context.options |= ssl.OP_NO_TICKET
        context.num_tickets = 0
        self._load_pair(context)
        try:
            context.load_verify_locations(self._tls.client_ca_file)
        except (OSError, ssl.SSLError) as error:
            raise CertificateError(
                f"server.tls.clientCaFile: {self._tls.client_ca_file}: no certificate in PEM: {_reason(error)}"
            ) from error
        return context

    def _load_pair(self, context: ssl.SSLContext) -> None:
        certificate, key = self._tls.cert_file, self._tls.key_file

        def ask() -> NoReturn:
            raise CertificateError(f"server.tls.keyFile: {key}: it is encrypted; a key without a passphrase is needed")

        try:
            context.load_cert_chain(certificate, key, password=ask)
        except (OSError, ssl.SSLError) as error:
            problem = f"certFile {certificate} and keyFile {key}"
            if _reason(error) == "KEY_VALUES_MISMATCH":
                raise CertificateError(f"server.tls: {problem} do not belong together") from error
            raise CertificateError(
                f"server.tls: {problem} are not a certificate and its key in PEM: {_reason(error)}"
            ) from error


def _content(field: str, path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise CertificateError(f"server.tls.{field}: {path}: {error.strerror}") from error


def _reason(error: OSError) -> str:
    return (error.reason if isinstance(error, ssl.SSLError) else error.strerror) or str(error)
