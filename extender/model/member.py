"""A member of a gang, as it is placed: one that waits, or one that is yet to be created."""

from msgspec import Struct

from extender.model.pod import Occupant, PodShape, PodUid, Tags


class Member(Struct, frozen=True, gc=False):
    """A member to place; `uid` and `name` are empty while it does not exist yet."""

    shape: PodShape
    role: str = ""
    uid: PodUid = ""
    name: str = ""
    tags: Tags = Tags()

    @property
    def occupant(self) -> Occupant:
        """What it will be to its node and neighbours."""
        return Occupant(self.shape, self.tags)
