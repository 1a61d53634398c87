"""Which members of a gang may change places?

Those of equal shape and role, unless somebody selects pods by labels in which they differ.
"""

from collections.abc import Sequence
from typing import Protocol, TypeVar

from extender.decide.one_by_one import selecting_keys
from extender.model.pod import PodShape, Tags
from extender.model.snapshot import Snapshot


class _Alike(Protocol):
    @property
    def shape(self) -> PodShape: ...
    @property
    def role(self) -> str: ...
    @property
    def tags(self) -> Tags: ...


T = TypeVar("T", bound=_Alike)


def group_alike(members: Sequence[T], snapshot: Snapshot) -> list[list[T]]:
    """Return the members in groups of those that are alike, both in the order in which they came."""
    shapes = {id(member.shape): member.shape for member in members}  # comparing takes long, and templates share them
    numbers = {shape: number for number, shape in enumerate(shapes.values())}
    number_of = {identity: numbers[shape] for identity, shape in shapes.items()}
    keys = selecting_keys(numbers, snapshot)
    groups: dict[tuple[int, str, tuple[str | None, ...]], list[T]] = {}
    for member in members:
        labels = tuple(map(member.tags.labels.get, keys)) if keys else ()
        groups.setdefault((number_of[id(member.shape)], member.role, labels), []).append(member)
    return list(groups.values())
