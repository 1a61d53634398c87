"""How is a gang admitted?

A gang is admitted when room for min-available of its members exists at the same moment, counting those that are bound
or hold room already. Members that do not exist yet are planned for as well, where it is known what they will need.
The rule is Koordinator's (its Strict mode), decided here on the whole cluster before any member is let through.
"""

from collections.abc import Collection, Sequence

from extender.decide.packing import LEADER_ROLES, Member, Packing, pack_gang
from extender.model.gang import Gang
from extender.model.pod import PodShape
from extender.model.snapshot import Snapshot
from extender.model.verdict import Admission, Gathering, NoRoom, Placed, Placement, Reason, Refused


def admit_gang(
    gang: Gang,
    snapshot: Snapshot,
    *,
    kept: Sequence[Placement] = (),
    avoid: Collection[tuple[str, PodShape]] = (),
    plan_absent: bool = True,
) -> Admission:
    """Decide whether the members without room can have it, as many as are needed together.

    `kept` is room that members hold already, counted in the snapshot; `avoid` are nodes that kube-scheduler refused
    for a shape; without `plan_absent` a gang of fewer than min-available members is not planned at all.
    """
    # 1. Who needs room?
    holders = {placement.uid for placement in kept}
    members = [Member(p.shape, p.role, p.uid, p.name, p.tags) for p in gang.waiting if p.uid not in holders]

    # 2. Who is yet to come?
    absent_count = gang.min_available - gang.present
    if absent_count > 0:
        absent = expect_absent(gang) if plan_absent else None
        if absent is None:
            return Gathering(gang.present, gang.min_available)
        members += [absent] * absent_count
    if not members:
        return Placed(())

    # 3. How many must find room together? Above min-available, each one goes for itself.
    required = max(1, gang.min_available - len(gang.bound) - len(kept))

    # 4. Is there room?
    homes = {pod.node_name for pod in gang.bound} | {placement.node for placement in kept}
    packing = pack_gang(members, snapshot, required=required, homes=homes, avoid=avoid)
    if len(packing.placements) >= required:
        return Placed(packing.placements)
    return _no_room(packing, snapshot, avoid)


def expect_absent(gang: Gang) -> Member | None:
    """Return what a member that does not exist yet will look like, or None where that cannot be told.

    Replicas of one role are made from one template, so the youngest member shows it, unless it is one of a kind (a
    parameter server, a master). A wrong guess is mended when the real member comes; nothing is bound before.
    """
    youngest = gang.waiting[-1] if gang.waiting else gang.bound[-1]
    if youngest.role in LEADER_ROLES:
        return None
    return Member(youngest.shape, youngest.role, tags=youngest.tags)


def _no_room(packing: Packing, snapshot: Snapshot, avoid: Collection[tuple[str, PodShape]]) -> NoRoom:
    misfit = packing.left_over[0]

    def why(node_name: str) -> tuple[Reason, ...]:
        if (node_name, misfit.shape) in avoid:
            return (Refused(),)
        return packing.trial.fit(misfit.occupant, node_name)

    return NoRoom(misfit.name, {name: why(name) for name in snapshot.rooms})
