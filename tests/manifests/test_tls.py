"""Do both sides of mutual TLS find their files, and is all else as without it?"""

from pathlib import PurePosixPath
from typing import Any
from urllib.parse import urlsplit

import yaml

from extender.config import TlsConfig, load_config
from extender.verbs.server import PREFIX
from tests.manifests.files import TLS, Object, container, manifest, manifests, scheduler_config

EXTENDER, SCHEDULER = "extender", "kube-scheduler"


def entries() -> list[Object]:
    found: list[Object] = yaml.safe_load((TLS / "dedicated.yaml").read_text())["extenders"]
    return found


def server_tls() -> TlsConfig:
    tls = load_config(TLS / "config.yaml").server.tls
    assert tls
    return tls


def mounted(name: str) -> tuple[str, str]:
    """Return the Secret that the patch mounts into this container, and where."""
    spec = manifest("Deployment", "gang-scheduler", TLS)["spec"]["template"]["spec"]
    (patched,) = (c for c in [*spec["initContainers"], *spec["containers"]] if c["name"] == name)
    (mount,) = patched["volumeMounts"]
    (volume,) = (v for v in spec["volumes"] if v["name"] == mount["name"])
    return volume["secret"]["secretName"], mount["mountPath"]


def certificate(secret: str) -> Object:
    """Return what cert-manager is asked to put into this Secret."""
    (spec,) = (m["spec"] for m in manifests(TLS) if m["kind"] == "Certificate" and m["spec"]["secretName"] == secret)
    return dict(spec)


def folders(*files: str) -> set[str]:
    return {str(PurePosixPath(file).parent) for file in files}


def test_each_side_has_its_own_secret_where_it_looks_for_it() -> None:
    ours, theirs = server_tls(), entries()[0]["tlsConfig"]
    assert folders(ours.cert_file, ours.key_file, ours.client_ca_file) == {mounted(EXTENDER)[1]}
    assert folders(theirs["certFile"], theirs["keyFile"], theirs["caFile"]) == {mounted(SCHEDULER)[1]}
    assert mounted(EXTENDER)[0] != mounted(SCHEDULER)[0]
    for files in ((ours.cert_file, ours.key_file, ours.client_ca_file), tuple(theirs.values())[:3]):
        assert [PurePosixPath(file).name for file in files] == ["tls.crt", "tls.key", "ca.crt"]


def test_the_patch_is_for_containers_that_there_are() -> None:
    for name in (EXTENDER, SCHEDULER):
        assert mounted(name)[1] not in {mount["mountPath"] for mount in container(name)["volumeMounts"]}


def test_cert_manager_is_asked_for_what_each_side_wants_to_see() -> None:
    server, client = certificate(mounted(EXTENDER)[0]), certificate(mounted(SCHEDULER)[0])
    assert server["dnsNames"] == [entries()[0]["tlsConfig"]["serverName"]]
    assert [client["commonName"]] == server_tls().client_names
    assert ("server auth" in server["usages"], "client auth" in client["usages"]) == (True, True)
    assert not {"client auth"} & set(server["usages"])
    assert server["issuerRef"] == client["issuerRef"]


def test_every_entry_shows_a_certificate_and_looks_at_the_extenders() -> None:
    for entry in entries():
        url = urlsplit(entry["urlPrefix"])
        assert (url.scheme, url.hostname, url.port, url.path) == ("https", "127.0.0.1", 8888, PREFIX)
        assert entry["enableHTTPS"]
        assert entry["tlsConfig"].keys() == {"certFile", "keyFile", "caFile", "serverName"}


def test_all_else_of_the_schedulers_configuration_is_as_without_tls() -> None:
    config: dict[str, Any] = yaml.safe_load((TLS / "dedicated.yaml").read_text())
    plain = scheduler_config("dedicated.yaml")
    for entry in config["extenders"]:
        del entry["enableHTTPS"], entry["tlsConfig"]
        entry["urlPrefix"] = entry["urlPrefix"].replace("https:", "http:")
    assert config == plain
