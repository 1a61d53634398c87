"""Is a strict gang bound in part for too long?

In part: some members are bound, fewer than min-available, although as many as are needed exist. Not judged by this is a
gang of which a bound member was lost, or that lost one while others were bound: there may be no room for who replaces
it, and whether there is, is judged at the end of each round.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from e2e.client import Object
from e2e.faults.reading import Gang, gang_of, is_over, is_terminating, needs_plugin, node_of


@dataclass
class _Members:
    """One gang, as far as it was seen."""

    gang: Gang
    bound_s: float
    is_bound: dict[str, bool] = field(default_factory=dict)
    """By UID, of the living."""
    since_s: float | None = None
    was_broken: bool = False
    is_told: bool = False

    @property
    def bound(self) -> int:
        return sum(self.is_bound.values())

    @property
    def is_in_part(self) -> bool:
        is_enough = len(self.is_bound) >= self.gang.min_available
        return not self.was_broken and is_enough and 0 < self.bound < self.gang.min_available


class GangsInPart:
    """All gangs; `longest_s` is for how long one was in part, at most, and `spells` how often one was."""

    def __init__(self, bound_s: float, plugin_s: float) -> None:
        self._bound_s = bound_s
        self._plugin_s = plugin_s
        self._gangs: dict[str, _Members] = {}
        self.longest_s = 0.0
        self.longest_of = ""
        self.spells = 0

    def see_pod(self, pod: Object, at_s: float, *, gone: bool) -> Iterator[str]:
        """Take in a pod; yield what is wrong."""
        yield from self.look(at_s)
        gang = gang_of(pod)
        if gang is None:
            return
        bound_s = self._bound_s + (self._plugin_s if needs_plugin(pod) else 0.0)
        members = self._gangs.setdefault(gang.name, _Members(gang, bound_s))
        uid = pod["metadata"]["uid"]
        if gone or is_terminating(pod) or is_over(pod):
            members.was_broken |= members.is_bound.pop(uid, None) is not None and (members.bound > 0)
            if not members.is_bound:
                members.was_broken = False
        else:
            members.is_bound[uid] = bool(node_of(pod))
        self._note(members, at_s)

    def look(self, at_s: float) -> Iterator[str]:
        """Yield which gangs have been in part for too long by now, each spell once."""
        for members in self._gangs.values():
            if members.since_s is not None and not members.is_told and at_s - members.since_s > members.bound_s:
                members.is_told = True
                yield (
                    f"gang {members.gang.name}: {members.bound} of {members.gang.min_available} bound "
                    f"for more than {members.bound_s:g} s"
                )

    def unfinished(self) -> list[str]:
        """Return the gangs with enough living members of which not enough are bound."""
        return [
            f"gang {name}: {each.bound} bound of {len(each.is_bound)}, {each.gang.min_available} needed"
            for name, each in self._gangs.items()
            if len(each.is_bound) >= each.gang.min_available > each.bound
        ]

    def _note(self, members: _Members, at_s: float) -> None:
        if members.is_in_part and members.since_s is None:
            members.since_s, members.is_told = at_s, False
            self.spells += 1
        elif not members.is_in_part and members.since_s is not None:
            lasted_s = at_s - members.since_s
            members.since_s = None
            if lasted_s > self.longest_s:
                self.longest_s, self.longest_of = lasted_s, members.gang.name
