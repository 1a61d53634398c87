"""How is a gang admitted?

A gang is admitted when room for min-available of its members exists at the same moment, counting those that are bound
or hold room already. Members that do not exist yet are planned for as well, where it is known what they will need.
The rule is Koordinator's (its Strict mode), decided here on the whole cluster before any member is let through.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from functools import partial
from typing import NamedTuple

from msgspec import Struct, structs

from extender.decide.absent import expect_absent, expect_followers
from extender.decide.alike import group_alike
from extender.decide.columns import columns_of
from extender.decide.draft import Batch, Draft
from extender.decide.leaders import Homes, bring_together, homes_of
from extender.decide.packing import Packing, pack_gang
from extender.decide.ranks import seat_by_rank
from extender.decide.room import reasons_by_node
from extender.decide.search import Needs
from extender.decide.topology import Area, Place, place_near
from extender.decide.trial import Trial
from extender.model.gang import Gang
from extender.model.member import AnyMember, Squad
from extender.model.pod import Occupant, PodShape
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
    members: list[AnyMember] = [pod for pod in gang.waiting if pod.uid not in holders] if kept else [*gang.waiting]

    # 2. Who is yet to come?
    missing = gang.missing
    if missing:
        absent = expect_absent(gang) if plan_absent else []
        if len(absent) < missing:
            return Gathering(gang.min_available)
        members += absent
    if not members:
        return Placed(())

    # 3. Who must find room, together? Each role's minimum first; above min-available, each one goes for itself.
    minimum, others = _role_minimums(gang, members, [*_roles(gang.in_place), *_roles(kept)])
    short = _short_of_role(gang, [*gang.in_place, *kept, *minimum])
    if short:
        return short
    required = max(0 if minimum else 1, gang.needed - len(kept) - len(minimum))
    followers = expect_followers(gang)
    if followers:  # whom they follow is placed with them, first
        minimum, others, required = [*minimum, *others[:required], *followers], others[required:], 0

    # 4. Is there room for them, and for how many others beside them?
    crew = _Crew(*(group_alike(these, snapshot) for these in (minimum, others)))
    needs = Needs(len(minimum) + required, Counter(_roles(minimum)))
    homes = homes_of([*((pod.role, pod.node_name) for pod in gang.bound), *((each.role, each.node) for each in kept)])
    ground = _Ground(snapshot, homes, avoid)
    place = partial(_place_beside, company, partial(_place, crew, needs, ground), ground)
    beside = homes.keys() | company.nodes
    found = place_near(gang, [*crew.minimum, *crew.others], needs.required, snapshot, beside, place)
    limit = needs if only_needed else None
    return found if isinstance(found, NoRoom) else Placed(_seated(gang, found.batches, limit, kept, ground))


class _Crew(NamedTuple):
    """Who must find room, and who of the others besides."""

    minimum: Sequence[Squad]
    others: Sequence[Squad]


class _Ground(Struct, frozen=True):
    snapshot: Snapshot
    homes: Homes
    avoid: Collection[tuple[str, PodShape]]


def _seated(
    gang: Gang, batches: Sequence[Batch], limit: Needs | None, kept: Sequence[Placement], ground: _Ground
) -> tuple[Placement, ...]:
    """Bring workers and leaders together where nobody sits yet, and let each have the seat of its rank.

    With a `limit`, nobody gets a seat beyond what is needed.
    """
    batches = batches if limit is None else _needed_of(batches, limit)
    if not ground.homes:
        batches = bring_together(batches, ground.snapshot, ground.avoid)
    return seat_by_rank(gang, batches, kept, ground.snapshot.topology)


def _place(crew: _Crew, needs: Needs, ground: _Ground, area: Area | None) -> Draft | NoRoom:
    snapshot, homes, avoid = ground.snapshot, ground.homes, ground.avoid
    pack = partial(pack_gang, avoid=avoid, within=area)
    least = sum(needs.role_minimums.values())
    first = pack(crew.minimum, snapshot, required=least, homes=homes)
    packing = first
    if not first.rest:
        rest = first.trial.as_snapshot() if crew.minimum else snapshot
        packing = pack(crew.others, rest, required=needs.required - least, homes=_homes_beside(first, homes))
        if packing.size >= needs.required - least:
            return Draft(first.batches + packing.batches)
    if crew.minimum and crew.others:  # others may do for the minimum, or need the room that it has taken
        squads = (*crew.minimum, *crew.others)
        everybody = group_alike([member for squad in squads for member in squad.members], snapshot)
        together = pack(everybody, snapshot, required=needs.required, role_minimums=needs.role_minimums, homes=homes)
        if together.is_enough(needs):
            return together
    no_room = _no_room(packing, snapshot, avoid)
    here = None if area is None else set(columns_of(snapshot).layout.names_of(area))
    reasons = {name: why for name, why in no_room.reasons.items() if here is None or name in here}
    return structs.replace(no_room, reasons=reasons, found=first.size + (packing.size if packing is not first else 0))


def _homes_beside(packing: Packing, homes: Homes) -> Homes:
    return homes_of(((batch.squad.role, batch.node) for batch in packing.batches), homes)


def _place_beside(company: Company, place: Place, ground: _Ground, area: Area | None) -> Draft | NoRoom:
    """Place a gang where the others that lack room find it as well, in the same domain."""
    first = place(area)
    if isinstance(first, NoRoom) or not company.lacking:
        return first
    trial, nodes = Trial(ground.snapshot), first.nodes | company.nodes
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


def _needed_of(batches: Sequence[Batch], needs: Needs) -> list[Batch]:
    """Return those of the roles' minimums, and of the others as many as are needed beside them."""
    missing = Counter(needs.role_minimums)
    firsts: list[Batch] = []
    others: list[Batch] = []
    for batch in batches:
        count = min(batch.count, missing[batch.squad.role])
        missing[batch.squad.role] -= count
        some, rest = batch.split(count)
        firsts.append(some)
        others.append(rest)
    spare = needs.required - sum(batch.count for batch in firsts)
    for batch in others:
        firsts.append(batch.split(max(0, min(batch.count, spare)))[0])
        spare -= batch.count
    return [batch for batch in firsts if batch.count]


def _role_minimums(
    gang: Gang, members: Sequence[AnyMember], placed_roles: Sequence[str]
) -> tuple[list[AnyMember], list[AnyMember]]:
    """Split off the members, as far as they exist, that the roles' minimums ask for beside those placed already."""
    if not gang.role_minimums:
        return [], list(members)
    missing = Counter(dict(gang.role_minimums))
    missing.subtract(role for role in placed_roles if role in missing)
    minimum: list[AnyMember] = []
    others: list[AnyMember] = []
    for member in members:
        if missing[member.role] > 0:
            missing[member.role] -= 1
            minimum.append(member)
        else:
            others.append(member)
    return minimum, others


def _short_of_role(gang: Gang, members: Sequence[AnyMember | Placement]) -> Gathering | None:
    """Return the first role of which there are fewer than its minimum."""
    there = Counter(_roles(members) if gang.role_minimums else ())
    return next((Gathering(least, role) for role, least in gang.role_minimums if there[role] < least), None)


def _roles(members: Iterable[AnyMember | Placement]) -> list[str]:
    return [member.role for member in members]


def _no_room(packing: Packing, snapshot: Snapshot, avoid: Collection[tuple[str, PodShape]]) -> NoRoom:
    misfit = packing.left_over[0]
    pod = Occupant(misfit.shape, misfit.tags)
    related = misfit.shape.relations is not None or packing.trial.repels
    changed = snapshot.rooms if related else packing.nodes
    reasons = {} if related else dict(reasons_by_node(misfit.shape, snapshot))
    reasons.update((name, packing.trial.fit(pod, name)) for name in changed)
    reasons.update((name, (Refused(),)) for name, shape in avoid if shape == misfit.shape and name in snapshot.rooms)
    return NoRoom(misfit.name, reasons)
