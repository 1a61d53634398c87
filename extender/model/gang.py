"""A gang: pods of which at least min-available hold room together, or none does."""

from msgspec import Struct

from extender.model.claim import GangKey
from extender.model.pod import Pod


class Gang(Struct, frozen=True):
    """A gang with the members that exist now.

    `waiting` are the members to place, unbound and schedulable; `bound` are those that run or will, terminating and
    finished ones left out. Both are ordered by creation, then name. The oldest of them says min-available for all.
    `succeeded_count` members have done their part beside those that are bound; they take no room.
    """

    key: GangKey
    min_available: int
    waiting: tuple[Pod, ...] = ()
    bound: tuple[Pod, ...] = ()
    succeeded_count: int = 0

    @property
    def in_place(self) -> int:
        """How many members need no room any more: those bound, and those that succeeded."""
        return len(self.bound) + self.succeeded_count

    @property
    def present(self) -> int:
        """How many members count toward min-available, wherever they stand."""
        return len(self.waiting) + self.in_place

    @property
    def satisfied(self) -> bool:
        """Whether min-available members are in place; further ones may go one by one."""
        return self.in_place >= self.min_available

    @property
    def stranded(self) -> bool:
        """Whether some members are bound, but too few to be of use."""
        return bool(self.bound) and not self.satisfied

    @property
    def oldest(self) -> Pod:
        """The oldest member that waits or is bound; there must be one."""
        return min((*self.waiting, *self.bound), key=lambda pod: (pod.created_at, pod.name))
