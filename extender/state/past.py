"""What have a gang's earlier plans come to, and so which nodes are left out of the next one, and for how long?"""

from collections import Counter
from dataclasses import dataclass, field

from extender.model.pod import PodShape
from extender.state.doubling import doubled_s

REFUSAL_HOLDS_S = 0.5
"""How long a node that kube-scheduler refused is left out of a gang's plans at first, doubled with each time. Mostly it
just did not know yet of room that became free, or of a pod that is gone, which it learns within milliseconds."""

LONGEST_REFUSAL_S = 10.0
"""What it knows of a node and we do not (a volume, a device) may change within seconds, and its own back-off ends."""

LONGEST_COSTLY_REFUSAL_S = 300.0
"""A gang that waits on each node must not go to and fro between a few of them while a further one has room; five
minutes are ten waits. Nobody tells us when the node is worth another try, so it is not for ever."""

REFUSED_FOR_GOOD = 3
"""Refusals, over a second and a half, before anybody elsewhere is killed since a node is refused."""


@dataclass(slots=True)
class Past:
    """What a gang's earlier plans came to: it decides what the next plan may be."""

    refused_until_s: dict[tuple[str, PodShape], float] = field(default_factory=dict)
    refusals: Counter[tuple[str, PodShape]] = field(default_factory=Counter)
    gave_up_at: int = 0
    """With how many members it waited in vain for others; below one more, absent ones are not planned for."""
    turn_lost_s: float = 0.0
    """When its room was last taken back because its time was over; who has not had a turn since goes first."""

    def refuse(self, what: tuple[str, PodShape], now_s: float, costs_s: float) -> None:
        """Note that the shape is not taken on the node."""
        times = self.refusals[what]
        costly_s = doubled_s(2 * costs_s, times, LONGEST_COSTLY_REFUSAL_S + 2 * costs_s) - 2 * costs_s
        self.refused_until_s[what] = now_s + max(costly_s, doubled_s(REFUSAL_HOLDS_S, times, LONGEST_REFUSAL_S))
        self.refusals[what] += 1

    @property
    def refused_for_good(self) -> list[tuple[str, PodShape]]:
        """What kube-scheduler has refused so often that it is no misunderstanding."""
        return [what for what in self.refused_until_s if self.refusals[what] >= REFUSED_FOR_GOOD]
