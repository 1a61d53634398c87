"""Finding the API server, sending requests to it, and what is said when that goes wrong."""

import os
from pathlib import Path

import pytest
from kubernetes.aio.config import incluster_config

from extender import apiserver
from extender.apiserver import ApiServer, KubeconfigError, NoAnswerError, RefusedError, Response, connect
from tests.apiserver_stub import Answer, ApiServerStub, answer, break_off, no_answer, silence, stream
from tests.builders import node_json
from tests.conftest import write_kubeconfig

CA = """\
-----BEGIN CERTIFICATE-----
MIIBmDCCAT2gAwIBAgIUDzJYbBvE+JszzGdTI4abl/G68RAwCgYIKoZIzj0EAwIw
IDEeMBwGA1UEAwwVdGVzdCBDQSB3aXRob3V0IGEga2V5MCAXDTI2MTEyMTEyMTIw
MVoYDzIxMjYxMDI4MTIxMjAxWjAgMR4wHAYDVQQDDBV0ZXN0IENBIHdpdGhvdXQg
YSBrZXkwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAASbCIzwLDXknsdpZZxCCI/x
aMScQcGwqXzEJjhyP+YZNfbO/rMQ/gPYfaq/plQc88nXuXOmFJXl1A6AtzDSqPMu
o1MwUTAdBgNVHQ4EFgQUmoAF0LQhjkFm+GFJd0f+voPg4QIwHwYDVR0jBBgwFoAU
moAF0LQhjkFm+GFJd0f+voPg4QIwDwYDVR0TAQH/BAUwAwEB/zAKBggqhkjOPQQD
AgNJADBGAiEAkssDAZOBMZvpLV62nWCiDO2pdhNRi3i33isNXRJrH8ACIQCd8XKz
mL+0pLJ/vzOkAOvIyANPF5919lG+u2uYUPZ1HQ==
-----END CERTIFICATE-----
"""


async def test_a_request_carries_our_token_and_asks_for_plain_json(stub: ApiServerStub, api: ApiServer) -> None:
    await stub.put("/api/v1/nodes/n1", node_json("n1"))
    response = await api.request("GET", "/api/v1/nodes", query={"limit": "1"}, timeout_s=1)
    assert response.status == 200
    assert b'"n1"' in response.body
    [call] = stub.calls
    assert call.query == {"limit": "1"}
    assert call.headers["Authorization"] == "Bearer secret"
    assert call.headers["Accept-Encoding"] == "identity"
    assert call.headers["Accept"] == "application/json"


async def test_a_refusal_is_an_answer_with_the_servers_words(stub: ApiServerStub, api: ApiServer) -> None:
    stub.answer_next("get", answer(429, "too many requests", **{"Retry-After": "3"}))
    response = await api.request("GET", "/api/v1/namespaces/x", timeout_s=1)
    assert (response.status, response.message, response.retry_after_s) == (429, "too many requests", 3.0)
    assert response.is_transient


@pytest.mark.parametrize("value", ["", "soon", "-1", "1.5", "Wed, 21 Oct 2026 07:28:00 GMT", "\u0663"])
def test_a_wait_that_is_no_number_of_seconds_is_no_wait(value: str) -> None:
    assert Response(429, {"Retry-After": value}, b"").retry_after_s == 0.0


def test_an_answer_that_is_no_status_object_speaks_by_how_it_begins() -> None:
    assert Response(502, {}, b"<html>Bad Gateway" + b" " * 1000).message.strip() == "<html>Bad Gateway"


async def test_a_redirect_is_not_followed_with_our_token(stub: ApiServerStub, api: ApiServer) -> None:
    stub.answer_next("get", answer(302, Location=f"{stub.url}/elsewhere"))
    assert (await api.request("GET", "/api/v1/namespaces/x", timeout_s=1)).status == 302
    assert len(stub.calls) == 1


async def test_a_server_that_is_away_is_named(stopped_stub: ApiServerStub, api: ApiServer) -> None:
    with pytest.raises(NoAnswerError, match=rf"no answer from {stopped_stub.url} to GET /api/v1/nodes: .*Connect"):
        await api.request("GET", "/api/v1/nodes", timeout_s=1)


@pytest.mark.parametrize("mute", [no_answer, silence, break_off])
async def test_half_an_answer_is_none(stub: ApiServerStub, api: ApiServer, mute: Answer) -> None:
    stub.answer_next("patch", mute)
    with pytest.raises(NoAnswerError, match="PATCH /api/v1/x"):
        await api.request("PATCH", "/api/v1/x", body=b"{}", timeout_s=0.1)


async def test_a_stream_comes_line_by_line_whatever_the_lines_lengths(stub: ApiServerStub, api: ApiServer) -> None:
    lines = [b"a", b"", b"b" * 5 * 2**20, b"c"]
    stub.answer_next("watch", stream(*lines))
    async with api.stream("/api/v1/nodes", query={"watch": "1"}, silence_s=1) as got:
        assert [line async for line in got] == lines


async def test_a_line_that_breaks_off_is_dropped(stub: ApiServerStub, api: ApiServer) -> None:
    stub.answer_next("watch", stream(b"whole\nbroken off", end=b""))
    async with api.stream("/api/v1/nodes", query={"watch": "1"}, silence_s=1) as got:
        assert [line async for line in got] == [b"whole"]


async def test_a_stream_that_is_refused_says_so(stub: ApiServerStub, api: ApiServer) -> None:
    stub.answer_next("watch", answer(410, "too old"))
    with pytest.raises(RefusedError, match="HTTP 410: too old"):
        async with api.stream("/api/v1/nodes", query={"watch": "1"}, silence_s=1):
            pass


async def test_a_stream_that_falls_silent_breaks(stub: ApiServerStub, api: ApiServer) -> None:
    stub.answer_next("watch", silence)
    with pytest.raises(NoAnswerError, match="GET /api/v1/nodes"):
        async with api.stream("/api/v1/nodes", query={"watch": "1"}, silence_s=0.05) as lines:
            [line async for line in lines]


async def test_a_stream_may_be_left_early(stub: ApiServerStub, api: ApiServer) -> None:
    stub.answer_next("watch", stream(b"a", b"b"))
    async with api.stream("/api/v1/nodes", query={"watch": "1"}, silence_s=1) as lines:
        assert await anext(lines) == b"a"


async def test_a_token_file_is_read_again(stub: ApiServerStub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    token = tmp_path / "token"
    token.write_text("first\n")
    monkeypatch.setattr(apiserver, "_CREDENTIALS_REREAD_S", 0.0)
    api = await connect(write_kubeconfig(tmp_path, stub.url, {"tokenFile": "token"}))
    await api.request("GET", "/api/v1/nodes", timeout_s=1)
    token.write_text("second\n")
    await api.request("GET", "/api/v1/nodes", timeout_s=1)
    await api.close()
    assert [call.headers["Authorization"] for call in stub.calls] == ["Bearer first", "Bearer second"]


async def test_a_token_file_is_not_read_at_every_request(stub: ApiServerStub, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("first")
    api = await connect(write_kubeconfig(tmp_path, stub.url, {"tokenFile": "token"}))
    (tmp_path / "token").write_text("second")
    await api.request("GET", "/api/v1/nodes", timeout_s=1)
    await api.close()
    assert stub.calls[0].headers["Authorization"] == "Bearer first"


async def test_a_token_file_that_has_gone_is_no_answer(
    stub: ApiServerStub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "token").write_text("first")
    monkeypatch.setattr(apiserver, "_CREDENTIALS_REREAD_S", 0.0)
    api = await connect(write_kubeconfig(tmp_path, stub.url, {"tokenFile": "token"}))
    (tmp_path / "token").unlink()
    with pytest.raises(NoAnswerError, match="token"):
        await api.request("GET", "/api/v1/nodes", timeout_s=1)
    await api.close()
    assert stub.calls == []


@pytest.fixture
def pod(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return where our pod's ServiceAccount is mounted; the token is yet to come."""
    (tmp_path / "ca.crt").write_text(CA)
    monkeypatch.setattr(incluster_config, "SERVICE_TOKEN_FILENAME", str(tmp_path / "token"))
    monkeypatch.setattr(incluster_config, "SERVICE_CERT_FILENAME", str(tmp_path / "ca.crt"))
    monkeypatch.setitem(os.environ, "KUBERNETES_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setitem(os.environ, "KUBERNETES_SERVICE_PORT", "443")
    return tmp_path


async def test_in_a_pod_the_service_account_is_used(pod: Path) -> None:
    (pod / "token").write_text("mounted")
    api = await connect("")
    assert api.host == "https://10.0.0.1:443"
    headers = await api._headers()
    await api.close()
    assert headers["Authorization"].lower() == "bearer mounted"


async def test_in_a_pod_without_a_token_it_is_said_what_is_missing(pod: Path) -> None:
    assert not (pod / "token").exists()
    with pytest.raises(KubeconfigError, match="token file does not exist"):
        await connect("")


async def test_outside_of_a_cluster_it_is_said_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(os.environ, "KUBERNETES_SERVICE_HOST", raising=False)
    with pytest.raises(KubeconfigError, match=r"no kubeconfig is given, and .* set kubeconfig"):
        await connect("")


async def test_a_kubeconfig_that_does_not_exist_is_named() -> None:
    with pytest.raises(KubeconfigError, match=r"^kubeconfig /nowhere/config: no such file$"):
        await connect("/nowhere/config")


async def test_kubeconfigs_that_kubectl_would_merge_are_named_with_what_joins_them() -> None:
    with pytest.raises(KubeconfigError, match=r"^kubeconfig /one:/other: several files; .*kubectl config view"):
        await connect("/one:/other")


HERE = "current-context: x, contexts: [{name: x, context: {cluster: c, user: u}}]"


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        "text",
        "{",
        "\x00",
        "kind: Config",
        "{current-context: x, contexts: [], clusters: [], users: []}",
        f"{{{HERE}, clusters: []}}",
        f"{{{HERE}, clusters: [{{name: c, cluster: {{}}}}]}}",
        f"{{{HERE}, clusters: [{{name: c, cluster: {{server: 'https://h', certificate-authority: /nowhere/ca}}}}]}}",
        f"{{{HERE}, clusters: [{{name: c, cluster: {{server: 'https://h', certificate-authority-data: '?'}}}}]}}",
    ],
)
async def test_what_is_no_kubeconfig_is_named_without_the_words_of_a_traceback(tmp_path: Path, content: str) -> None:
    path = tmp_path / "kubeconfig"
    path.write_text(content)
    with pytest.raises(KubeconfigError, match=rf"^kubeconfig {path}: (?!.*('NoneType'|'str' object|indices))."):
        await connect(str(path))
