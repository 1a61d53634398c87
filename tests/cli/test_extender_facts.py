"""What is learned of an extender, from beside it and from afar?"""

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from aiohttp import web

from extender.apiserver import ApiServer
from extender.cli.asking import Asker
from extender.cli.extender_facts import ask_beside, ask_pods, own_url
from extender.config import ServerConfig
from extender.doctor.finding import Unseen
from tests.apiserver_stub import ApiServerStub

METRICS = """gang_extender_repeat_filter_calls_created 1.7e9
# TYPE gang_extender_verb_duration_seconds histogram
gang_extender_verb_duration_seconds_count{verb="filter",result="accepted"} 3.0
gang_extender_verb_duration_seconds_count{verb="filter",result="rejected"} 4.0
gang_extender_verb_duration_seconds_count{verb="bind",result="bound"} 2.0
"""
NOT_READY = "[+]watch nodes ok\n[-]watch pods not synced\nreadyz check failed\n"
TLS = {"certFile": "c", "keyFile": "k", "clientCaFile": "a"}
POD = {"metadata": {"name": "one"}, "spec": {"containers": [], "initContainers": [{"name": "extender"}]}}


@pytest.fixture
async def server(unused_tcp_port: int) -> AsyncIterator[ServerConfig]:
    """Serve what an extender that is not ready serves, on one port."""

    async def filter_verb(_: web.Request) -> web.Response:
        return web.Response()

    app = web.Application()
    app.router.add_post("/v1/filter", filter_verb)
    app.router.add_get("/readyz", _answer(503, NOT_READY))
    app.router.add_get("/metrics", _answer(200, METRICS))
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", unused_tcp_port).start()
    yield ServerConfig.model_validate({"port": unused_tcp_port, "probePort": unused_tcp_port})
    await runner.cleanup()


def _answer(status: int, text: str) -> Callable[[web.Request], Any]:
    async def answer(_: web.Request) -> web.Response:
        return web.Response(status=status, text=text)

    return answer


async def test_beside_it_all_is_seen(server: ServerConfig) -> None:
    here = f"http://127.0.0.1:{server.port}"
    found = await ask_beside(server, (f"{here}/v1", f"{here}/v2"))
    assert found.ready == "watch pods not synced"
    assert found.calls == {"filter": 7, "bind": 2}
    assert found.started_s == 1.7e9
    assert found.reachable == {f"{here}/v1": "", f"{here}/v2": "HTTP 404 to GET, where the extender answers 405"}


async def test_of_a_url_with_tls_only_the_connection_is_tried(
    server: ServerConfig, unused_tcp_port_factory: Any
) -> None:
    there, nowhere = f"https://127.0.0.1:{server.port}/v1", f"https://127.0.0.1:{unused_tcp_port_factory()}/v1"
    found = await ask_beside(server, (there, nowhere))
    assert isinstance(found.reachable, dict)
    assert found.reachable[there] == ""
    assert found.reachable[nowhere].startswith("no connection")


async def test_beside_it_silence_is_an_answer(unused_tcp_port: int) -> None:
    found = await ask_beside(ServerConfig.model_validate({"probePort": unused_tcp_port}), ())
    assert isinstance(found.ready, str)
    assert "no answer" in found.ready
    assert isinstance(found.calls, Unseen)


@pytest.mark.parametrize(
    ("settings", "url"),
    [
        ({}, "http://127.0.0.1:8888/v1"),
        ({"address": "::1", "port": 9}, "http://[::1]:9/v1"),
        ({"tls": TLS}, "https://127.0.0.1:8888/v1"),
        ({"tls": TLS, "address": "0.0.0.0"}, "https://127.0.0.1:8888/v1"),  # noqa: S104 - none is bound
        ({"tls": TLS, "address": "::"}, "https://[::1]:8888/v1"),
    ],
)
def test_where_no_entry_can_be_read_its_own_settings_say_where_it_answers(settings: dict[str, Any], url: str) -> None:
    assert own_url(ServerConfig.model_validate(settings)) == url


async def test_beside_it_the_probes_are_found_at_an_address_of_ipv6(unused_tcp_port: int) -> None:
    found = await ask_beside(ServerConfig.model_validate({"probeAddress": "::", "probePort": unused_tcp_port}), ())
    assert found.where == f"http://[::1]:{unused_tcp_port}"
    assert "Cannot connect" in str(found.ready)


async def from_afar(stub: ApiServerStub, api: ApiServer, pod: dict[str, Any], status: int, text: str) -> Any:
    """Ask a pod through the API server, whose proxy answers so."""

    async def listed(_: web.Request) -> web.Response:
        return web.json_response({"metadata": {}, "items": [pod]})

    proxied = _answer(status, text)
    stub.answer_next("list", listed)
    stub.answer_next("get", proxied, proxied)
    found = await ask_pods(Asker(api), "gangs", ServerConfig())
    assert isinstance(found, tuple)
    return found[0]


async def test_from_afar_its_probes_are_read_and_the_verbs_are_out_of_reach(
    stub: ApiServerStub, api: ApiServer
) -> None:
    found = await from_afar(stub, api, POD, 503, NOT_READY)
    assert found.ready == "watch pods not synced"
    assert isinstance(found.reachable, Unseen)
    assert found.reachable.mend.startswith("kubectl -n gangs exec one -c extender -- ")


@pytest.mark.parametrize("status", [403, 503])
async def test_what_the_api_server_does_not_get_is_unknown(stub: ApiServerStub, api: ApiServer, status: int) -> None:
    found = await from_afar(stub, api, POD, status, '{"message": "dial tcp: connection refused"}')
    assert isinstance(found.ready, Unseen)
    assert isinstance(found.calls, Unseen)


async def test_where_the_kubelet_knows_that_it_crashes_that_is_said(stub: ApiServerStub, api: ApiServer) -> None:
    waiting = {"name": "extender", "ready": False, "state": {"waiting": {"reason": "CrashLoopBackOff"}}}
    pod = POD | {"status": {"initContainerStatuses": [waiting]}}
    found = await from_afar(stub, api, pod, 503, '{"message": "dial tcp: connection refused"}')
    assert found.ready == "the kubelet says that its container is not ready (CrashLoopBackOff)"
