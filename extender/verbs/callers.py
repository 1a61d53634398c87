"""Who may call the verbs? Where there is TLS, only clients whose certificate has one of the names that may.

That the certificate is good was made sure of before there was a request: see `verbs/certificates.py`.
"""

from collections.abc import Callable, Iterable
from typing import Any

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware


def only(names: Iterable[str], refuse: Callable[[str], None]) -> Middleware:
    """Answer 403 to everybody else, whatever they ask for."""
    allowed = frozenset(names)

    @web.middleware
    async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
        certificate = request.get_extra_info("peercert")
        found = names_of(certificate or {})
        if not found & allowed:
            refuse(f"the client's certificate names {sorted(found)}, server.tls.clientNames {sorted(allowed)}")
            return web.Response(status=403, text="The certificate has none of the names of server.tls.clientNames.\n")
        return await handler(request)

    return guard


def names_of(certificate: dict[str, Any]) -> frozenset[str]:
    """Return the common name, DNS names and URIs of a certificate as the ssl module shows it."""
    subject = [pair for part in certificate.get("subject", ()) for pair in part]
    others = certificate.get("subjectAltName", ())
    return frozenset(value for kind, value in (*subject, *others) if kind in {"commonName", "DNS", "URI"} and value)
