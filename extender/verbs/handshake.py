"""How does a TLS connection to the verbs begin? With the newest files; and who is sent away is told why, and so are we.

asyncio asks the one context that it was given for each handshake (`wrap_bio`), so that nothing has to stop listening
when the files change. It sends nothing after a failure, the alert neither, and tells nobody of it.
"""

import ssl
from collections.abc import Callable


class Handshakes(ssl.SSLContext):
    """A server's context without certificates of its own: each connection begins with `newest` as it is then.

    `refuse` is called with the reason for each client that is sent away.
    """

    newest: ssl.SSLContext
    refuse: Callable[[str], None]

    def wrap_bio(
        self,
        incoming: ssl.MemoryBIO,
        outgoing: ssl.MemoryBIO,
        server_side: bool = False,
        server_hostname: str | bytes | None = None,
        session: ssl.SSLSession | None = None,
    ) -> ssl.SSLObject:
        """Begin a handshake."""
        self.newest.sslobject_class = _Handshake
        handshake = self.newest.wrap_bio(incoming, outgoing, server_side, server_hostname, session)
        assert isinstance(handshake, _Handshake)  # noqa: S101 - for the type checker
        handshake.begin(outgoing, self.refuse)
        return handshake


class _Handshake(ssl.SSLObject):
    """Fails a step later than OpenSSL does where there is an alert, which asyncio then sends.

    The client ends the connection when it has read the alert; one that does not meets asyncio's limit of a minute.
    """

    def begin(self, outgoing: ssl.MemoryBIO, refuse: Callable[[str], None]) -> None:
        self._outgoing = outgoing
        self._refuse = refuse
        self._failed = False

    def do_handshake(self) -> None:
        try:
            super().do_handshake()
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            raise
        except ssl.SSLError as error:
            if self._failed:
                raise
            self._failed = True
            self._refuse(str(error))
            if self._outgoing.pending:
                raise ssl.SSLWantReadError from error
            raise
