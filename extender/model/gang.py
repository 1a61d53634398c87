"""A gang: pods of which at least min-available hold room together, or none does."""

from collections.abc import Iterable

from extender.model.declaration import Declaration
from extender.model.pod import Pod


class Gang(Declaration, frozen=True):
    """A gang with the members that exist now, and what was declared of it.

    `waiting` are the members to place, unbound and schedulable; `bound` are those that run or will, terminating and
    finished ones left out. Both are ordered by creation, then name. Of unbound members with the same role and rank
    only the youngest waits: it replaces the others.
    """

    waiting: tuple[Pod, ...] = ()
    bound: tuple[Pod, ...] = ()

    @property
    def present(self) -> int:
        """How many members count toward min-available, wherever they stand; those of one role and rank count once."""
        return _ranks((*self.waiting, *self.bound))

    @property
    def bound_count(self) -> int:
        """How many bound members count toward min-available."""
        return _ranks(self.bound)

    @property
    def satisfied(self) -> bool:
        """Whether min-available members are bound; further ones may go one by one."""
        return self.bound_count >= self.min_available

    @property
    def stranded(self) -> bool:
        """Whether some members are bound, but too few to be of use."""
        return 0 < self.bound_count < self.min_available

    @property
    def oldest(self) -> Pod:
        """The oldest member that counts; there must be one."""
        return min((*self.waiting, *self.bound), key=lambda pod: (pod.created_at, pod.name))


def _ranks(pods: Iterable[Pod]) -> int:
    return len({pod.seat for pod in pods})
