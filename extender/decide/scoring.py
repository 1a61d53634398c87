"""Which of the nodes that fit is best for one pod?

Asked for members that join a gang which runs already: beside its parameter server or master first, then beside other
siblings, and then near them on the network. Members of a gang that is placed whole are not scored: they have one
planned node each. A pod that needs no device rather goes where there is none to be kept from others, unless it belongs
beside its siblings; the planner goes by that, too.
"""

from collections.abc import Iterable
from typing import Final

from extender.decide.leaders import LEADER_ROLES
from extender.model.gang import Gang
from extender.model.pod import PodShape
from extender.model.snapshot import Snapshot

BEST: Final = 10
"""kube-scheduler's MaxExtenderPriority: with our weight, more than all of its own plugins say together."""

BESIDE_SIBLING: Final = 7
"""Well below the best: no number of workers outweighs the parameter server that they all talk to."""

NEAR_SIBLING: Final = 6
"""In the nearest domain of a sibling's; one less for each level farther out, but not less than FAR."""

FAR: Final = 2
"""Near enough to be told from nodes that share no domain with a sibling."""

SPARES_DEVICES: Final = 1
"""For a member with siblings elsewhere. To a pod without any this counts as the best."""


def score_nodes(shape: PodShape, gang: Gang | None, node_names: Iterable[str], snapshot: Snapshot) -> dict[str, int]:
    """Return a score of 0 to 10 for each node, also for those that are not known."""
    siblings = gang.bound if gang else ()
    homes = {pod.node_name for pod in siblings}
    near = {name: max(FAR, NEAR_SIBLING - steps) for name, steps in snapshot.topology.steps_from(homes).items()}
    near |= dict.fromkeys(homes, BESIDE_SIBLING)
    near |= {pod.node_name: BEST for pod in siblings if pod.role in LEADER_ROLES}
    sparing = 0 if shape.asks_for_devices else SPARES_DEVICES if homes else BEST

    def score(name: str) -> int:
        room = snapshot.rooms.get(name)
        return near.get(name) or (sparing if room is not None and not room.node.has_devices else 0)

    return {name: score(name) for name in node_names}
