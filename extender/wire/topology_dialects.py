"""What do annotations say of where a gang's members must, or had better, be together?

One table of dialects in the order in which they are asked: the first that says anything decides, be it sense or not.
"""

from collections.abc import Callable, Mapping

from extender.model.claim import Terms
from extender.wire.topology_koordinator import koordinator_topology
from extender.wire.topology_kueue import kueue_topology
from extender.wire.topology_own import own_topology

DIALECTS: tuple[Callable[[Mapping[str, str]], Terms | None], ...] = (
    own_topology,  # gang-extender.io/required-topology, preferred-topology
    koordinator_topology,  # gang.scheduling.koordinator.sh/network-topology-spec
    kueue_topology,  # kueue.x-k8s.io/podset-required-topology, podset-preferred-topology
)


def topology_of(annotations: Mapping[str, str]) -> Terms | None:
    """Return what they say, in terms that have nothing else; None where they say nothing."""
    for dialect in DIALECTS:
        terms = dialect(annotations)
        if terms is not None:
            return terms
    return None
