"""A member of a gang, as it is placed: one that waits, or one that is yet to be created."""

from collections.abc import Sequence
from typing import Final, TypeAlias

from msgspec import Struct

from extender.model.pod import NO_NUMBER, Occupant, Pod, PodShape, PodUid, Tags

NOBODY: Final = ""
"""The UID of a member that does not exist yet; where a gang's own members are all there, of its followers."""


class Member(Struct, frozen=True, gc=False):
    """A member to place; `uid` is NOBODY, and `name` empty, while it does not exist yet."""

    shape: PodShape
    role: str = ""
    uid: PodUid = NOBODY
    name: str = ""
    tags: Tags = Tags()
    number: int = NO_NUMBER


AnyMember: TypeAlias = Pod | Member
"""One that waits is placed as it is: a gang has thousands."""


class Squad(Struct, frozen=True, gc=False):
    """Members that may change places: they are equal in `shape`, `role` and the labels by which somebody selects pods.

    Room is handed out to so many of them; the first ones get it.
    """

    shape: PodShape
    role: str
    labels: tuple[str | None, ...]
    members: Sequence[AnyMember]

    @property
    def kind(self) -> tuple[PodShape, str, tuple[str | None, ...]]:
        """What is the same in two squads whose members are alike."""
        return self.shape, self.role, self.labels

    @property
    def occupant(self) -> Occupant:
        """What each of them will be to its node and neighbours."""
        return Occupant(self.shape, self.members[0].tags)
