"""What is wrong with TLS files is said at the start, by the field that names them."""

from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)

from e2e.authority import Authority
from extender.config import TlsConfig
from extender.observe.metrics import Metrics
from extender.verbs.callers import names_of
from extender.verbs.certificates import CertificateError, Certificates

AUTHORITY = Authority("ours")


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """Return a folder with files that can be used."""
    AUTHORITY.server("127.0.0.1").write(tmp_path, AUTHORITY.certificate)
    return tmp_path


def load(files: Path) -> Certificates:
    tls = {"certFile": files / "tls.crt", "keyFile": files / "tls.key", "clientCaFile": files / "ca.crt"}
    return Certificates(TlsConfig.model_validate({field: str(path) for field, path in tls.items()}), Metrics("test"))


def encrypted(key: bytes) -> bytes:
    key_object = load_pem_private_key(key, None)
    return key_object.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"secret"))


@pytest.mark.parametrize(
    ("name", "field"), [("tls.crt", "certFile"), ("tls.key", "keyFile"), ("ca.crt", "clientCaFile")]
)
def test_a_file_that_is_not_there_or_cannot_be_read_is_named(files: Path, name: str, field: str) -> None:
    (files / name).unlink()
    with pytest.raises(CertificateError, match=rf"server\.tls\.{field}: .*{name}: No such file or directory"):
        load(files)
    (files / name).mkdir()
    with pytest.raises(CertificateError, match=rf"server\.tls\.{field}: .*{name}: Is a directory"):
        load(files)


def test_a_key_of_another_certificate_is_told(files: Path) -> None:
    (files / "tls.key").write_bytes(AUTHORITY.server("127.0.0.1").key)
    with pytest.raises(CertificateError, match=r"certFile .*tls\.crt and keyFile .*tls\.key do not belong together"):
        load(files)


def test_an_encrypted_key_is_told_and_nobody_is_asked_for_a_passphrase(files: Path) -> None:
    (files / "tls.key").write_bytes(encrypted((files / "tls.key").read_bytes()))
    with pytest.raises(CertificateError, match=r"server\.tls\.keyFile: .*tls\.key: it is encrypted"):
        load(files)


@pytest.mark.parametrize(
    "content", [b"", b"no PEM\n", b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"]
)
@pytest.mark.parametrize(
    ("name", "field"), [("tls.crt", "certFile"), ("tls.key", "keyFile"), ("ca.crt", "clientCaFile")]
)
def test_a_file_that_holds_something_else_is_told(files: Path, name: str, field: str, content: bytes) -> None:
    (files / name).write_bytes(content)
    with pytest.raises(CertificateError, match=rf"{field}.*{name}.*in PEM"):
        load(files)


def test_a_clients_names_are_its_common_name_dns_names_and_uris() -> None:
    certificate = {
        "subject": ((("organizationName", "system:masters"),), (("commonName", "a"),)),
        "subjectAltName": (("DNS", "b"), ("URI", "spiffe://c"), ("IP Address", "10.0.0.1"), ("email", "d@e")),
    }
    assert names_of(certificate) == {"a", "b", "spiffe://c"}
    assert names_of({}) == frozenset()
