"""May these pods be killed for a member of a gang?

kube-scheduler preempts for one pod at a time, without having asked whether its gang could run then; for a gang that
could not, innocent pods would die for nothing. So a member may preempt only where these victims alone make its whole
gang fit. (A gang that needs victims on several nodes is refused: one call shows the victims of one node each.)
"""

from collections.abc import Iterable, Mapping, Sequence

from msgspec import structs

from extender.decide.gang import admit_gang
from extender.decide.trial import Trial
from extender.model.gang import Gang
from extender.model.pod import Pod
from extender.model.snapshot import Snapshot
from extender.model.verdict import Placed, Placement


def worthwhile_node(
    gang: Gang,
    victims: Mapping[str, Sequence[Pod]],
    snapshot: Snapshot,
    *,
    kept: Sequence[Placement] = (),
) -> str | None:
    """Return the first candidate node, the fewest victims first, whose victims' room makes the whole gang fit.

    None, too, when it fits without anybody's death; `kept` is room that members hold already.
    """
    if isinstance(admit_gang(gang, snapshot, kept=kept, plan_absent=False), Placed):
        return None
    for node in sorted(victims, key=lambda name: (len(victims[name]), name)):
        after = _without(victims[node], snapshot)
        if isinstance(admit_gang(gang, after, kept=kept, plan_absent=False), Placed):
            return node
    return None


def _without(victims: Iterable[Pod], snapshot: Snapshot) -> Snapshot:
    trial = Trial(snapshot)
    rooms = dict(snapshot.rooms)
    for pod in victims:
        if pod.occupies_node and pod.node_name in rooms:
            trial.evict(pod.occupant, pod.node_name)
            rooms[pod.node_name] = trial.room(pod.node_name)
    return structs.replace(snapshot, rooms=rooms)
