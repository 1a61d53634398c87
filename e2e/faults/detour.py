"""How do extender, API server and kube-scheduler come to reach each other through the fault proxies only?"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from e2e.cluster import Cluster
from e2e.faults.proxy import Proxy, running
from e2e.faults.rules import Draws, Rule, Tally


class Detour(NamedTuple):
    """The proxies and what they have done. A second extender finds the API server by one of its own, at `twin_url`."""

    api: Proxy
    verbs: Proxy
    tally: Tally
    twin_api: Proxy
    twin_url: str

    def pause(self) -> None:
        """Let everything through from now on."""
        self.api.pause()
        self.twin_api.pause()
        self.verbs.pause()

    def resume(self) -> None:
        """Inject faults from now on."""
        self.api.resume()
        self.twin_api.resume()
        self.verbs.resume()


@contextmanager
def detoured(cluster: Cluster, seed: int, rules: Iterable[Rule]) -> Iterator[Detour]:
    """Put the proxies in between, with no faults yet; the cluster is of no use afterwards."""
    draws, tally = Draws(seed, rules), Tally()
    api, twin_api = (Proxy("api", cluster.api_url, draws, tally, tls=cluster.tls) for _ in range(2))
    verbs = Proxy("verbs", cluster.extender_url, draws, tally)
    with running(api, verbs, twin_api) as (api_url, verbs_url, twin_url):
        cluster.reroute(api_url, verbs_url)
        yield Detour(api, verbs, tally, twin_api, twin_url)
