"""Which certificates do tests of mutual TLS show? Those of authorities of their own, made anew for each."""

import datetime as dt
import ipaddress
from collections.abc import Sequence
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
from msgspec import Struct

_DAY = dt.timedelta(days=1)

_FOR_SIGNING_CERTIFICATES = x509.KeyUsage(
    digital_signature=False,
    content_commitment=False,
    key_encipherment=False,
    data_encipherment=False,
    key_agreement=False,
    key_cert_sign=True,
    crl_sign=False,
    encipher_only=False,
    decipher_only=False,
)


class Pair(Struct, frozen=True):
    """A certificate and its key, in PEM."""

    certificate: bytes
    key: bytes

    def write(self, folder: Path, authority: bytes = b"") -> None:
        """Write them as a Secret of type kubernetes.io/tls is mounted, with the authorities that are to be believed."""
        folder.mkdir(exist_ok=True)
        for name, content in (("tls.crt", self.certificate), ("tls.key", self.key), ("ca.crt", authority)):
            (folder / name).write_bytes(content)


class Authority:
    """A certificate authority whose key nobody else has."""

    def __init__(self, name: str) -> None:
        self._name = _named(name)
        self._key = ec.generate_private_key(ec.SECP256R1())
        constraints = x509.BasicConstraints(ca=True, path_length=0)
        own = _unsigned(self._name, self._name, self._key).add_extension(constraints, critical=True)
        # What Python 3.13 wants of an authority, as strict clients do.
        own = own.add_extension(_FOR_SIGNING_CERTIFICATES, critical=True)
        own = own.add_extension(x509.SubjectKeyIdentifier.from_public_key(self._key.public_key()), critical=False)
        self.certificate = _signed(own, self._key)

    def server(self, *names: str) -> Pair:
        """Issue a certificate for a server of these addresses and DNS names."""
        return self._issue(names[0], ExtendedKeyUsageOID.SERVER_AUTH, names)

    def client(self, name: str, others: Sequence[str] = (), *, days: int = 1) -> Pair:
        """Issue a certificate for a client of this common name and these DNS names; it is over where `days` are."""
        return self._issue(name, ExtendedKeyUsageOID.CLIENT_AUTH, others, days)

    def _issue(self, name: str, usage: x509.ObjectIdentifier, others: Sequence[str], days: int = 1) -> Pair:
        key = ec.generate_private_key(ec.SECP256R1())
        unsigned = _unsigned(_named(name), self._name, key, days)
        unsigned = unsigned.add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
        issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        unsigned = unsigned.add_extension(issuer, critical=False)
        if others:
            unsigned = unsigned.add_extension(x509.SubjectAlternativeName(map(_alternative, others)), critical=False)
        return Pair(_signed(unsigned, self._key), _in_pem(key))


def _unsigned(
    name: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, days: int = 1
) -> x509.CertificateBuilder:
    now = dt.datetime.now(dt.UTC)
    return (
        x509.CertificateBuilder(issuer, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - 2 * _DAY)
        .not_valid_after(now + days * _DAY)
    )


def _signed(unsigned: x509.CertificateBuilder, key: ec.EllipticCurvePrivateKey) -> bytes:
    return unsigned.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


def _in_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _alternative(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)
