"""A gang: pods of which at least min-available hold room together, or none does."""

from collections.abc import Iterable

from extender.model.declaration import Declaration
from extender.model.pod import Pod


class Gang(Declaration, frozen=True):
    """A gang with the members that exist now, and what was declared of it.

    `waiting` are the members to place, unbound and schedulable; `bound` are those that run or will, terminating and
    finished ones left out. Both are ordered by creation, then name. Of unbound members with the same role and rank
    only the youngest waits: it replaces the others. `succeeded` have done their part beside those that are bound; they
    take no room.
    """

    waiting: tuple[Pod, ...] = ()
    bound: tuple[Pod, ...] = ()
    succeeded: tuple[Pod, ...] = ()

    @property
    def in_place(self) -> int:
        """How many members need no room any more: those bound, and those that succeeded."""
        return _seats((*self.bound, *self.succeeded))

    @property
    def present(self) -> int:
        """How many members count toward min-available, wherever they stand; those of one role and rank count once."""
        return _seats((*self.waiting, *self.bound, *self.succeeded))

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


def _seats(pods: Iterable[Pod]) -> int:
    return len({pod.seat for pod in pods})
