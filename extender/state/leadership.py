"""Do we lead, and until when may we act on it?

A lease's record names its holder; who holds it and does not renew it for its duration loses it to whoever sees that
first. Clocks of machines are never compared, as in client-go: all that counts is when, by our own steady clock, a
record was asked for and came.

    no term --the record names us--> term, unsure --it was renewed--> sure --2/3 of its duration pass--> unsure ...
       ^                                 |                             |
       +----- the record names another, or us again after another -----+

A record that was asked for at t is as new as t. So one that differs from the record before was written after *that* was
asked for, and nobody takes it away before its duration has passed since: however long we, or an answer, took meanwhile.
The first record proves nothing, since it may be about to run out. The last third is for what was sent before it.
"""

import math
from collections.abc import Callable

from extender.model.lease import LeaseRecord

SURE_FOR = 2 / 3
"""Of a lease's duration: kube-scheduler gives up renewing after as much (10 s of 15 s)."""


class Leadership:
    """What the records so far mean. `is_ours` says of a holder whether it is us; times are of one steady clock."""

    def __init__(self, is_ours: Callable[[str], bool]) -> None:
        self.term = ""
        """Names the time in which nobody else led; empty while another one, or nobody, holds the lease."""
        self._is_ours = is_ours
        self._last: LeaseRecord | None = None
        self._last_asked_s = -math.inf
        self._sure_until_s = -math.inf
        self._free_at_s = math.inf

    def see(self, record: LeaseRecord | None, asked_s: float, came_s: float) -> None:
        """Take in the lease as it was asked for and came; None where there is none."""
        is_changed = record != self._last
        is_first = self._last_asked_s == -math.inf
        written_after_s, self._last_asked_s = self._last_asked_s, asked_s
        self._last = record
        if record is None or not record.holder:
            self._lose(free_at_s=came_s)
            return
        if is_changed or is_first:
            self._free_at_s = came_s + record.duration_s
        if not self._is_ours(record.holder):
            self._lose(self._free_at_s)
            return
        term = f"{record.holder} {record.transitions}"
        if term != self.term:
            self.term, self._sure_until_s = term, -math.inf
        if is_changed:
            self._sure_until_s = max(self._sure_until_s, written_after_s + SURE_FOR * record.duration_s)

    def wrote(self, record: LeaseRecord, sent_s: float, came_s: float) -> None:
        """Take in a record that we wrote ourselves."""
        self._last_asked_s = sent_s
        self.see(record, sent_s, came_s)

    def is_sure(self, now_s: float) -> bool:
        """Whether we lead, and nobody else can by now."""
        return bool(self.term) and now_s < self._sure_until_s

    def is_free(self, now_s: float) -> bool:
        """Whether anybody may take the lease: it was given up, or nobody has renewed it for its duration."""
        return now_s >= self._free_at_s

    def _lose(self, free_at_s: float) -> None:
        self.term, self._sure_until_s, self._free_at_s = "", -math.inf, free_at_s
