"""Which members of a gang may change places?

Those of equal shape and role, unless somebody selects pods by labels in which they differ.
"""

from collections.abc import Sequence
from itertools import groupby
from operator import attrgetter

from extender.decide.one_by_one import selecting_keys
from extender.model.member import AnyMember, Squad
from extender.model.snapshot import Snapshot

_shape_and_role = attrgetter("shape", "role")


def group_alike(members: Sequence[AnyMember], snapshot: Snapshot) -> list[Squad]:
    """Return the members in squads, these and the members of each in the order in which they came."""
    runs = [(*alike, list(run)) for alike, run in groupby(members, _shape_and_role)]
    shapes = {id(shape): shape for shape, _, _ in runs}  # comparing takes long, and templates share them
    numbers = {shape: number for number, shape in enumerate(shapes.values())}
    number_of = {identity: numbers[shape] for identity, shape in shapes.items()}
    keys = selecting_keys(numbers, snapshot)
    squads: dict[tuple[int, str, tuple[str | None, ...]], list[AnyMember]] = {}
    for shape, role, these in runs:
        if not keys:
            squads.setdefault((number_of[id(shape)], role, ()), []).extend(these)
        for member in these if keys else ():
            labels = tuple(map(member.tags.labels.get, keys))
            squads.setdefault((number_of[id(shape)], role, labels), []).append(member)
    return [Squad(alike[0].shape, role, labels, alike) for (_, role, labels), alike in squads.items()]
