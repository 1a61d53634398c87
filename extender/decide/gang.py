"""How is a gang admitted?

A gang is admitted when room for min-available of its members exists at the same moment, counting those that are bound
or hold room already. Members that do not exist yet are planned for as well, where it is known what they will need.
The rule is Koordinator's (its Strict mode), decided here on the whole cluster before any member is let through.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import partial

from msgspec import Struct, structs

from extender.decide.absent import expect_absent, expect_followers
from extender.decide.leaders import Homes, bring_together, homes_of
from extender.decide.packing import Packing, pack_gang
from extender.decide.ranks import seat_by_rank
from extender.decide.room import reasons_by_node
from extender.decide.search import Needs
from extender.decide.topology import Area, Place, place_near
from extender.decide.trial import Trial
from extender.model.gang import Gang
from extender.model.member import Member
from extender.model.pod import Pod, PodShape
from extender.model.snapshot import Snapshot
from extender.model.verdict import Admission, Gathering, NoRoom, Placed, Placement, Refused


class Company(Struct, frozen=True):
    """Gangs that must be in the same domain as another one.

    Some are on `nodes` already; the `lacking` ones have yet to find room, beside what their members hold.
    """

    nodes: frozenset[str] = frozenset()
    lacking: tuple[tuple[Gang, tuple[Placement, ...]], ...] = ()


ALONE = Company()


def admit_gang(  # noqa: PLR0913 - a plan depends on all of this; by name
    gang: Gang,
    snapshot: Snapshot,
    *,
    kept: Sequence[Placement] = (),
    avoid: Collection[tuple[str, PodShape]] = (),
    plan_absent: bool = True,
    only_needed: bool = False,
    company: Company = ALONE,
) -> Admission:
    """Decide whether the members without room can have it, as many as are needed together.

    `kept` is room that members hold already, counted in the snapshot; `avoid` are nodes that kube-scheduler refused
    for a shape; without `plan_absent` a gang of fewer than min-available members is not planned at all; `only_needed`
    leaves those out that would find room beyond what is needed; `company` matters where the gang requires a domain.
    """
    # 1. Who needs room?
    holders = {placement.uid for placement in kept}
    members = [Member(p.shape, p.role, p.uid, p.name, p.tags) for p in gang.waiting if p.uid not in holders]

    # 2. Who is yet to come?
    if gang.missing:
        absent = expect_absent(gang) if plan_absent else []
        if len(absent) < gang.missing:
            return Gathering(gang.min_available)
        members += absent
    if not members:
        return Placed(())

    # 3. Who must find room, together? Each role's minimum first; above min-available, each one goes for itself.
    minimum, others = _role_minimums(gang, members, [*_roles(gang.in_place), *_roles(kept)])
    there = Counter(_roles([*gang.in_place, *kept, *minimum]) if gang.role_minimums else ())
    for role, least in gang.role_minimums:
        if there[role] < least:
            return Gathering(least, role)
    required = max(0 if minimum else 1, gang.needed - len(kept) - len(minimum))
    followers = expect_followers(gang)
    if followers:  # whom they follow is placed with them, first
        minimum, others, required = [*minimum, *others[:required], *followers], others[required:], 0

    # 4. Is there room for them, and for how many others beside them?
    needs = Needs(len(minimum) + required, Counter(_roles(minimum)))
    homes = homes_of([*((pod.role, pod.node_name) for pod in gang.bound), *_seats_of(kept)])
    ground = _Ground(snapshot, homes, avoid)
    place = partial(_place_beside, company, partial(_place, minimum, others, needs, ground), ground)
    admission = place_near(gang, [*minimum, *others], needs.required, snapshot, homes.keys() | company.nodes, place)
    if isinstance(admission, NoRoom):
        return admission
    placements = _needed_of(admission.placements, needs) if only_needed else admission.placements
    return Placed(_seated(gang, placements, kept, ground))


class _Ground(Struct, frozen=True):
    snapshot: Snapshot
    homes: Homes
    avoid: Collection[tuple[str, PodShape]]


def _seated(
    gang: Gang, placements: Sequence[Placement], kept: Sequence[Placement], ground: _Ground
) -> tuple[Placement, ...]:
    """Bring workers and leaders together where nobody sits yet, and let each have the seat of its rank."""
    if not ground.homes:
        placements = bring_together(placements, ground.snapshot, ground.avoid)
    return seat_by_rank(gang, placements, kept, ground.snapshot)


def _place(
    minimum: Sequence[Member],
    others: Sequence[Member],
    needs: Needs,
    ground: _Ground,
    area: Area | None,
) -> Placed | NoRoom:
    snapshot, homes, avoid = ground.snapshot, ground.homes, ground.avoid
    pack = partial(pack_gang, avoid=avoid, within=area)
    first = pack(minimum, snapshot, required=len(minimum), homes=homes)
    packing = first
    if not first.left_over:
        required = needs.required - len(minimum)
        rest = first.trial.as_snapshot() if minimum else snapshot
        packing = pack(others, rest, required=required, homes=homes_of(_seats_of(first.placements), homes))
        if len(packing.placements) >= required:
            return Placed(first.placements + packing.placements)
    if minimum and others:  # others may do for the minimum, or need the room that it has taken
        needed, least = needs
        everybody = [*minimum, *others]
        together = pack(everybody, snapshot, required=needed, role_minimums=least, homes=homes)
        if together.is_enough(needs):
            return Placed(together.placements)
    found = len(first.placements) + (len(packing.placements) if packing is not first else 0)
    no_room = _no_room(packing, snapshot, avoid)
    reasons = {name: why for name, why in no_room.reasons.items() if area is None or name in area}
    return structs.replace(no_room, reasons=reasons, found=found)


def _place_beside(company: Company, place: Place, ground: _Ground, area: Area | None) -> Placed | NoRoom:
    """Place a gang where the others that lack room find it as well, in the same domain."""
    first = place(area)
    if isinstance(first, NoRoom) or not company.lacking:
        return first
    trial, nodes = Trial(ground.snapshot), _nodes(first.placements) | company.nodes
    for placement in first.placements:
        trial.place(placement.occupant, placement.node)
    for other, kept in company.lacking:
        beside = Company(frozenset(nodes))
        found = admit_gang(other, trial.as_snapshot(), kept=kept, avoid=ground.avoid, only_needed=True, company=beside)
        if isinstance(found, NoRoom):
            return found
        for placement in found.placements if isinstance(found, Placed) else ():
            trial.place(placement.occupant, placement.node)
            nodes.add(placement.node)
    return first


def _needed_of(placements: Sequence[Placement], needs: Needs) -> tuple[Placement, ...]:
    """Return those of the roles' minimums, and of the others as many as are needed beside them."""
    missing = Counter(needs.role_minimums)
    firsts: list[Placement] = []
    others: list[Placement] = []
    for placement in placements:
        (firsts if missing[placement.role] > 0 else others).append(placement)
        missing[placement.role] -= 1
    return (*firsts, *others[: needs.required - len(firsts)])


def _role_minimums(
    gang: Gang, members: Sequence[Member], placed_roles: Sequence[str]
) -> tuple[list[Member], list[Member]]:
    """Split off the members, as far as they exist, that the roles' minimums ask for beside those placed already."""
    if not gang.role_minimums:
        return [], list(members)
    missing = Counter(dict(gang.role_minimums))
    missing.subtract(role for role in placed_roles if role in missing)
    minimum: list[Member] = []
    others: list[Member] = []
    for member in members:
        if missing[member.role] > 0:
            missing[member.role] -= 1
            minimum.append(member)
        else:
            others.append(member)
    return minimum, others


def _nodes(placements: Iterable[Placement]) -> set[str]:
    return {placement.node for placement in placements}


def _seats_of(placements: Iterable[Placement]) -> Iterator[tuple[str, str]]:
    return ((each.role, each.node) for each in placements)


def _roles(members: Iterable[Pod | Placement | Member]) -> list[str]:
    return [member.role for member in members]


def _no_room(packing: Packing, snapshot: Snapshot, avoid: Collection[tuple[str, PodShape]]) -> NoRoom:
    misfit = packing.left_over[0]
    related = misfit.shape.relations is not None or packing.trial.repels
    changed = snapshot.rooms if related else _nodes(packing.placements)
    reasons = {} if related else dict(reasons_by_node(misfit.shape, snapshot))
    reasons.update((name, packing.trial.fit(misfit.occupant, name)) for name in changed)
    reasons.update((name, (Refused(),)) for name, shape in avoid if shape == misfit.shape and name in snapshot.rooms)
    return NoRoom(misfit.name, reasons)
