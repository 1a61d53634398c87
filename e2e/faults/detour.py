"""How do extender, API server and kube-scheduler come to reach each other through the fault proxies only?"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from e2e.cluster import Cluster
from e2e.faults.proxy import Proxy, running
from e2e.faults.rules import Draws, Rule, Tally


class Detour(NamedTuple):
    """Both proxies and what they have done; `api_url` is where extenders find the API server."""

    api: Proxy
    verbs: Proxy
    tally: Tally
    api_url: str

    def pause(self) -> None:
        """Let everything through from now on."""
        self.api.pause()
        self.verbs.pause()

    def resume(self) -> None:
        """Inject faults from now on."""
        self.api.resume()
        self.verbs.resume()


@contextmanager
def detoured(cluster: Cluster, seed: int, rules: Iterable[Rule]) -> Iterator[Detour]:
    """Put the proxies in between, with no faults yet; the cluster is of no use afterwards."""
    draws, tally = Draws(seed, rules), Tally()
    api = Proxy("api", cluster.api_url, draws, tally, tls=cluster.tls)
    verbs = Proxy("verbs", cluster.extender_url, draws, tally)
    with running(api, verbs) as (api_url, verbs_url):
        cluster.reroute(api_url, verbs_url)
        yield Detour(api, verbs, tally, api_url)
