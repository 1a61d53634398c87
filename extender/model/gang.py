"""A gang: pods of which at least min-available hold room together, or none does."""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence

from msgspec import structs

from extender.model.declaration import Declaration
from extender.model.job import JobRole
from extender.model.pod import Pod, PodUid, Seniority


class Gang(Declaration, frozen=True):
    """A gang with the members that exist now, and what was declared of it.

    `waiting` are the members to place, unbound and schedulable; `bound` are those that run or will, terminating and
    finished ones left out. Both are ordered by creation, then name. Of unbound members with the same role and rank
    only the youngest waits: it replaces the others. `succeeded` have done their part beside those that are bound; they
    take no room. `ran` says that enough members were in place at some time since the first of them was bound.
    `followers` are roles of its job that are only made once it runs, with as many `replicas` as the job needs: without
    room for them it runs for nothing.
    """

    waiting: tuple[Pod, ...] = ()
    bound: tuple[Pod, ...] = ()
    succeeded: tuple[Pod, ...] = ()
    ran: bool = False
    followers: tuple[JobRole, ...] = ()

    @property
    def in_place(self) -> tuple[Pod, ...]:
        """The members that count toward min-available and need no room any more, as the match-policy has it."""
        return () if self.match_policy == "only-waiting" else (*self.bound, *self.succeeded)

    @property
    def present(self) -> int:
        """How many members count toward min-available, wherever they stand; those of one role and rank count once."""
        return _seats((*self.waiting, *self.in_place))

    @property
    def missing(self) -> int:
        """How many members must still be created before any may run."""
        return 0 if self.satisfied else max(0, self.min_available - self.present)

    @property
    def needed(self) -> int:
        """How many members must still find a place, together, before any of them may run."""
        return 0 if self.satisfied else max(0, self.min_available - _seats(self.in_place))

    def is_enough(self, ready_roles: Sequence[str] = ()) -> bool:
        """Whether members of these roles, beside those in place, make min-available and every role's minimum."""
        if _seats(self.in_place) + len(ready_roles) < self.min_available:
            return False
        roles = Counter([*ready_roles, *(pod.role for pod in self.in_place)]) if self.role_minimums else Counter()
        return all(roles[role] >= least for role, least in self.role_minimums)

    @property
    def satisfied(self) -> bool:
        """Whether it runs, so that further members and replacements may go one by one.

        With match-policy once-satisfied that stays so until no member is bound any more.
        """
        return self.is_enough() or (self.ran and self.match_policy == "once-satisfied")

    def breaks_without(self, lost: Collection[PodUid]) -> bool:
        """Whether it has what it needs to run, and would not without these members."""
        rest = tuple(pod for pod in self.bound if pod.uid not in lost)
        return len(rest) < len(self.bound) and self.is_enough() and not structs.replace(self, bound=rest).is_enough()

    @property
    def stranded(self) -> bool:
        """Whether some members are bound, but too few to be of use."""
        return bool(self.bound) and not self.satisfied

    @property
    def priority(self) -> int:
        """The highest of its members' priorities."""
        return max(pod.priority for pod in (*self.waiting, *self.bound))

    @property
    def seniority(self) -> Seniority:
        """Where it stands among those that want room."""
        return (not self.stranded, -self.priority, self.oldest.created_at)

    @property
    def oldest(self) -> Pod:
        """The oldest member that waits or is bound; there must be one."""
        return min((*self.waiting, *self.bound), key=lambda pod: (pod.created_at, pod.name))


def _seats(pods: Iterable[Pod]) -> int:
    pods = list(pods)
    ranked = [pod.seat for pod in pods if pod.rank]  # few have one, and only then do several share a seat
    return len(pods) - len(ranked) + len(set(ranked))
