"""Which of the nodes that fit is best for one member?

Asked for members that join a gang which runs already: beside its parameter server or master first, then beside other
siblings, and then near them on the network. Members of a gang that is placed whole are not scored: they have one
planned node each.
"""

from collections.abc import Iterable

from extender.decide.leaders import LEADER_ROLES
from extender.model.gang import Gang
from extender.model.topology import Topology

BEST = 10
"""kube-scheduler's MaxExtenderPriority."""

BESIDE_SIBLING = 5
"""Half of the best: no number of workers outweighs the parameter server that they all talk to."""


NEAR_SIBLING = 4
"""In the nearest domain of a sibling's; one less for each level farther out."""


def score_nodes(gang: Gang | None, node_names: Iterable[str], topology: Topology) -> dict[str, int]:
    """Return a score of 0 to 10 for each node; without a gang all are equal."""
    siblings = gang.bound if gang else ()
    homes = {pod.node_name for pod in siblings}
    leader_homes = {pod.node_name for pod in siblings if pod.role in LEADER_ROLES}
    near = {name: max(0, NEAR_SIBLING - steps) for name, steps in topology.steps_from(homes).items()}
    near |= dict.fromkeys(homes, BESIDE_SIBLING) | dict.fromkeys(leader_homes, BEST)
    return {name: near.get(name, 0) for name in node_names}
