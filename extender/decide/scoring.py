"""Which of the nodes that fit is best for one member?

Asked for members that join a gang which runs already: beside its parameter server or master first, then beside other
siblings. Members of a gang that is placed whole are not scored: they have one planned node each.
"""

from collections.abc import Iterable

from extender.decide.packing import LEADER_ROLES
from extender.model.gang import Gang

BEST = 10
"""kube-scheduler's MaxExtenderPriority."""

BESIDE_SIBLING = 5
"""Half of the best: no number of workers outweighs the parameter server that they all talk to."""


def score_nodes(gang: Gang | None, node_names: Iterable[str]) -> dict[str, int]:
    """Return a score of 0 to 10 for each node; without a gang all are equal."""
    siblings = gang.bound if gang else ()
    homes = {pod.node_name for pod in siblings}
    leader_homes = {pod.node_name for pod in siblings if pod.role in LEADER_ROLES}
    return {name: BEST if name in leader_homes else BESIDE_SIBLING if name in homes else 0 for name in node_names}
