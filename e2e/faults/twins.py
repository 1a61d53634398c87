"""What if the extender that decides stands still in the midst of everything? Then there are two, which share a lease.

Both reach the API server through the fault proxy, the lease with it. The proxy before their verbs is a stand-in for a
Service: kube-scheduler's calls go to whoever is ready, and those under way are cut when that is another one.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from msgspec import Struct

from e2e.cluster import EXTENDER, LEADING, Cluster
from e2e.components import SERVICE_RIGHTS, extender, extender_config
from e2e.faults.detour import Detour
from e2e.faults.proxy import Proxy
from e2e.processes import Process, figures, free_ports, is_ok, wait_for

SECOND = "second-extender"

LEASE_S = 6
"""Far below a round's length, and above what one fault holds a renewal up for."""

_LEASE = {"leaderElection": {"mode": "service", "resourceName": "gang-extender", "leaseDurationSeconds": LEASE_S}}
_START_S = 60.0


class Twin(Struct, frozen=True):
    """One of the two, and the URLs of its verbs and probes."""

    process: Process
    verbs: str
    probe: str

    @property
    def leads(self) -> bool:
        """Whether it decides, as it says itself."""
        return figures(f"{self.probe}/metrics").get(LEADING) == 1


class Twins:
    """Both of them; made by `two_extenders`."""

    def __init__(self, verbs: Proxy, twins: list[Twin]) -> None:
        self._verbs = verbs
        self._twins = twins
        self._still: Twin | None = None
        self.lead_changes = 0
        """How often kube-scheduler's calls went over to the other one."""

    @property
    def probes(self) -> list[str]:
        """Where they say how they are."""
        return [each.probe for each in self._twins]

    def follow(self) -> None:
        """Have kube-scheduler call whoever is ready; nobody else, if neither is."""
        ready = next((each for each in self._twins if each is not self._still and is_ok(f"{each.probe}/readyz")), None)
        if ready is not None and ready.verbs != self._verbs.target:
            self._verbs.turn_to(ready.verbs)
            self.lead_changes += 1

    def stand_still(self) -> None:
        """Stop the one that decides where it is, with its connections open."""
        self._still = next((each for each in self._twins if each.leads), None)
        if self._still is not None:
            self._still.process.pause()

    def go_on(self) -> None:
        """Let it run on, as if nothing had been."""
        if self._still is not None:
            self._still.process.go_on()
        self._still = None


@contextmanager
def two_extenders(cluster: Cluster, detour: Detour) -> Iterator[Twins]:
    """Let the cluster's extender and a second one follow one lease; neither stands still at the end."""
    cluster.apply(SERVICE_RIGHTS.read_text(encoding="utf-8"))
    cluster.restart_extender(settings=_LEASE)
    verbs, probe = free_ports(2)
    config = cluster.folder / f"{SECOND}.yaml"
    kubeconfig = cluster.service_account_kubeconfig("gang-extender", "gang-extender", detour.api_url)
    config.write_text(extender_config(kubeconfig, verbs, probe, settings=_LEASE), encoding="utf-8")
    process = cluster.start_process(SECOND, extender(config))
    second = Twin(process, f"http://127.0.0.1:{verbs}", f"http://127.0.0.1:{probe}")
    wait_for(lambda: LEADING in figures(f"{second.probe}/metrics"), _START_S, f"the {SECOND} answers")
    twins = Twins(detour.verbs, [Twin(cluster.processes[EXTENDER], detour.verbs.target, cluster.probe_url), second])
    try:
        yield twins
    finally:
        twins.go_on()
