"""The real kube-scheduler and the extender with mutual TLS, as manifests/tls has it: who gets through, and renewal."""

import itertools
import re
import socket
import ssl
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import yaml

from e2e.authority import Authority, Pair
from e2e.cluster import EXTENDER, Cluster, Namespace, Object, wait_for
from tests.e2e.pods import DEADLINE_S, bound, members, pod
from tests.manifests.files import TLS

pytestmark = pytest.mark.timeout(240)

SERVICE = "gang-extender.gang-extender.svc"
SCHEDULER = "system:kube-scheduler"
SIZE = 6


class Secrets:
    """The two mounted Secrets, with an authority for each side, so that one can be changed without the other."""

    def __init__(self, folder: Path) -> None:
        self.extender = folder / "gang-extender-tls"
        self.scheduler = folder / "gang-scheduler-tls"
        self.of_servers = Authority("of servers")
        self.of_clients = Authority("of clients")
        self.renew()
        self.show(self.of_clients.client(SCHEDULER))

    def renew(self) -> Pair:
        """Give the extender a new certificate."""
        pair = self.of_servers.server(SERVICE)
        pair.write(self.extender, self.of_clients.certificate)
        return pair

    def show(self, pair: Pair) -> None:
        """Give kube-scheduler this certificate."""
        pair.write(self.scheduler, self.of_servers.certificate)


def with_tls(cluster: Cluster, secrets: Secrets) -> None:
    """Start the extender and its kube-scheduler anew with the settings of manifests/tls."""
    settings = yaml.safe_load((TLS / "config.yaml").read_text())["server"]
    ports = {
        "port": urlsplit(cluster.extender_url).port,
        "probePort": urlsplit(cluster.probe_url).port,
        "probeAddress": "127.0.0.1",
    }
    files = {key: path.replace("/etc", str(secrets.extender.parent)) for key, path in settings["tls"].items()}
    cluster.restart_extender(settings={"server": {**ports, "tls": files}})
    schedule_with_tls(cluster, secrets)


def schedule_with_tls(cluster: Cluster, secrets: Secrets, *without: str) -> None:
    """Start the kube-scheduler anew, with mutual TLS but for these settings of tlsConfig."""
    entries: list[Object] = yaml.safe_load((TLS / "dedicated.yaml").read_text())["extenders"]
    for entry in entries:
        tls = entry["tlsConfig"]
        entry["tlsConfig"] = {
            key: value.replace("/etc", str(secrets.scheduler.parent))
            for key, value in tls.items()
            if key not in without
        }
    cluster.restart_gang_scheduler({"extenders": entries})


@pytest.fixture(scope="module")
def secrets(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secrets]:
    secrets = Secrets(tmp_path_factory.mktemp("secrets"))
    with_tls(cluster, secrets)
    yield secrets
    cluster.restart_extender()
    cluster.restart_gang_scheduler()


def figure(cluster: Cluster, metric: str, label: str = "") -> float:
    """Return the sum of the extender's own figures of this metric that have the label."""
    with urllib.request.urlopen(f"{cluster.probe_url}/metrics", timeout=5) as answer:  # noqa: S310 - our own process
        text = answer.read().decode()
    return sum(map(float, re.findall(rf"^gang_extender_{metric}(?:{{.*{label}.*}})? (\S+)$", text, re.MULTILINE)))


def failures(namespace: Namespace) -> list[str]:
    """Return what events say of calls to the extender that failed."""
    events = namespace.cluster.api.get(f"{namespace.path}/events")["items"]
    texts = [event.get("message") or event.get("note", "") for event in events]
    return sorted({text for text in texts if "127.0.0.1" in text or "extender at URL" in text})


def failure(namespace: Namespace, name: str) -> str:
    """Return how the call for this pod failed."""
    namespace.apply(pod(name))
    found = wait_for(lambda: failures(namespace), DEADLINE_S, "an event says that the call failed")
    assert bound(namespace) == []
    return found[0]


def shown(cluster: Cluster, secrets: Secrets) -> str:
    """Return the certificate that a new connection is shown."""
    context = ssl.create_default_context(cadata=secrets.of_servers.certificate.decode())
    context.check_hostname = False
    address = urlsplit(cluster.extender_url)
    assert address.hostname
    assert address.port
    with (
        socket.create_connection((address.hostname, address.port), timeout=5) as plain,
        context.wrap_socket(plain) as wrapped,
    ):
        der = wrapped.getpeercert(binary_form=True)
        assert der
        return ssl.DER_cert_to_PEM_cert(der)


@pytest.mark.usefixtures("secrets")
def test_a_gang_is_bound_over_mutual_tls(cluster: Cluster, namespace: Namespace) -> None:
    cluster.add_node("gpu-0", gpus=SIZE)
    namespace.apply(*members("whole", SIZE))
    wait_for(lambda: len(bound(namespace)) == SIZE, DEADLINE_S, "all members are bound")
    assert failures(namespace) == []
    assert figure(cluster, "tls_refusals_total") == 0


def test_files_that_are_renewed_under_way_are_taken_up_and_no_call_fails(
    cluster: Cluster, namespace: Namespace, secrets: Secrets
) -> None:
    """First the extender's certificate and both authorities of clients, then kube-scheduler's, then one authority."""
    cluster.add_node("gpu-0", gpus=SIZE)
    gangs = (f"gang-{index}" for index in itertools.count())
    old, new = secrets.of_clients, Authority("of clients, the next one")
    taken, refused = figure(cluster, "tls_reloads_total", "taken"), figure(cluster, "tls_refusals_total")
    renewed = secrets.of_servers.server(SERVICE)
    renewed.write(secrets.extender, old.certificate + new.certificate)
    count = play_until(namespace, gangs, lambda: figure(cluster, "tls_reloads_total", "taken") > taken)
    assert count > 1
    secrets.of_clients = new
    secrets.show(new.client(SCHEDULER))
    time.sleep(1.1)  # kube-scheduler's client keeps a read certificate for a second
    renewed.write(secrets.extender, new.certificate)
    taken = figure(cluster, "tls_reloads_total", "taken")
    count += play_until(namespace, gangs, lambda: figure(cluster, "tls_reloads_total", "taken") > taken)
    count += play_until(namespace, gangs, lambda: True)
    assert failures(namespace) == []
    assert figure(cluster, "tls_refusals_total") == refused
    assert figure(cluster, "verb_duration_seconds_count", 'result="200",verb="bind"') >= count * SIZE
    assert figure(cluster, "verb_duration_seconds_count", 'result="[^2]') == 0
    assert shown(cluster, secrets).encode() == renewed.certificate


def play_until(namespace: Namespace, gangs: Iterator[str], is_over: Callable[[], bool]) -> int:
    """Let gangs come and go, one after the other, until it is over; return how many.

    Each brings new connections: kube-scheduler keeps two, and binds all members at once.
    """
    end_s = time.monotonic() + 40
    count = 0
    while not count or not is_over():
        play(namespace, next(gangs))
        count += 1
        assert time.monotonic() < end_s
    return count


def play(namespace: Namespace, gang: str) -> None:
    namespace.apply(*members(gang, SIZE))
    wait_for(lambda: len(bound(namespace, gang)) == SIZE, DEADLINE_S, f"{gang} is bound")
    for index in range(SIZE):
        namespace.delete_pod(f"{gang}-{index}")


def test_without_its_certificate_kube_scheduler_is_refused_and_the_pod_says_so(
    cluster: Cluster, namespace: Namespace, secrets: Secrets
) -> None:
    cluster.add_node("gpu-0", gpus=1)
    schedule_with_tls(cluster, secrets, "certFile", "keyFile")
    assert "remote error: tls: certificate required" in failure(namespace, "refused")
    assert "a client of the verbs was refused" in cluster.log_tail(EXTENDER)
    schedule_with_tls(cluster, secrets)
    wait_for(lambda: bound(namespace), DEADLINE_S, "with the certificate it is bound")


def test_anothers_certificate_of_the_same_authority_is_refused_by_its_name(
    cluster: Cluster, namespace: Namespace, secrets: Secrets
) -> None:
    cluster.add_node("gpu-0", gpus=1)
    secrets.show(secrets.of_clients.client("system:node:gpu-0"))
    schedule_with_tls(cluster, secrets)
    assert "code 403" in failure(namespace, "refused")
    told = "the client's certificate names ['system:node:gpu-0']"
    wait_for(lambda: told in cluster.log_tail(EXTENDER), DEADLINE_S, "the log says so, once in ten seconds")
    secrets.show(secrets.of_clients.client(SCHEDULER))
    schedule_with_tls(cluster, secrets)
    wait_for(lambda: bound(namespace), DEADLINE_S, "with its own certificate it is bound")


def test_plain_http_is_refused(cluster: Cluster, namespace: Namespace, secrets: Secrets) -> None:
    cluster.add_node("gpu-0", gpus=1)
    cluster.restart_gang_scheduler()
    assert re.search(r"EOF|connection reset|malformed HTTP", failure(namespace, "refused"))
    schedule_with_tls(cluster, secrets)
    wait_for(lambda: bound(namespace), DEADLINE_S, "with TLS it is bound")
