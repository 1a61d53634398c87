"""Which PodGroups need another status?

Each status is asked for once, so that there is no quarrel with a scheduler or controller that writes its own.
"""

from cachetools import LRUCache

from extender.decide.group_status import REPORTED_APIS, group_status
from extender.model.claim import GangKey
from extender.model.pod_group import GroupStatus, StatusReport
from extender.state.gangs import GangIndex

REMEMBERED = 16_384
"""More PodGroups than a cluster has; one that is forgotten is only written again. About 5 MB when full."""


class GroupStatuses:
    """Remembers which status was asked for last."""

    def __init__(self, gangs: GangIndex) -> None:
        self._gangs = gangs
        self._asked: LRUCache[str, GroupStatus] = LRUCache(REMEMBERED)

    def is_current(self, report: StatusReport) -> bool:
        """Whether this was asked for last of a PodGroup that is still there."""
        group = report.group
        is_there = any(each.uid == group.uid for each in self._gangs.our_pod_groups(group.key))
        return is_there and self._asked.get(group.uid) == report.status

    def take_due(self, key: GangKey) -> list[StatusReport]:
        """Return what is to be written on the PodGroups of a gang; it counts as asked for from then on."""
        due = []
        for group in self._gangs.our_pod_groups(key):
            if group.api in REPORTED_APIS:
                status = group_status(group, self._gangs.members_of(group))
                if status not in (group.status, self._asked.get(group.uid)):
                    self._asked[group.uid] = status
                    due.append(StatusReport(group, status))
        return due
