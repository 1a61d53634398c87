"""A gang: pods of which at least min-available hold room together, or none does."""

from msgspec import Struct

from extender.model.claim import GangKey
from extender.model.pod import Pod


class Gang(Struct, frozen=True):
    """A gang with the members that exist now.

    `waiting` are the members to place, unbound and schedulable; `bound` are those that run or will, terminating and
    finished ones left out. Both are ordered by creation, then name. The oldest member's min-available holds for all.
    """

    key: GangKey
    min_available: int
    waiting: tuple[Pod, ...] = ()
    bound: tuple[Pod, ...] = ()

    @property
    def present(self) -> int:
        """How many members count toward min-available, wherever they stand."""
        return len(self.waiting) + len(self.bound)

    @property
    def satisfied(self) -> bool:
        """Whether min-available members are bound; further ones may go one by one."""
        return len(self.bound) >= self.min_available

    @property
    def stranded(self) -> bool:
        """Whether some members are bound, but too few to be of use."""
        return 0 < len(self.bound) < self.min_available

    @property
    def oldest(self) -> Pod:
        """The oldest member that counts; there must be one."""
        return min((*self.waiting, *self.bound), key=lambda pod: (pod.created_at, pod.name))
