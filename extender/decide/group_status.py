"""What does a PodGroup's status say of its gang? What its own scheduler would, since operators go by it.

Mirrors Koordinator's PodGroup controller, that of scheduler-plugins, and Volcano's jobStatus; phases that these pass
through within one step are left out.
"""

from collections.abc import Collection

from extender.model.pod import Pod
from extender.model.pod_group import KOORDINATOR, SCHEDULER_PLUGINS, VOLCANO, GroupStatus, PodGroup

REPORTED_APIS = frozenset({KOORDINATOR, SCHEDULER_PLUGINS, VOLCANO})
"""Kubernetes' own PodGroup has conditions instead, which its own scheduler writes."""

_FINAL = frozenset({"Finished", "Failed"})
"""Of Koordinator and scheduler-plugins, which look no further then."""


def group_status(group: PodGroup, members: Collection[Pod]) -> GroupStatus:
    """Return the status that the PodGroup of these members should have; all pods count, whatever their phase."""
    succeeded = sum(pod.succeeded for pod in members)
    counted = GroupStatus(
        scheduled=sum(bool(pod.node_name) for pod in members) if group.api == KOORDINATOR else 0,
        running=sum(pod.running for pod in members),
        succeeded=succeeded,
        failed=sum(pod.finished for pod in members) - succeeded,
    )
    if group.status.phase in _FINAL and group.api != VOLCANO:
        return group.status
    phase = _volcano_phase if group.api == VOLCANO else _phase
    return GroupStatus(phase(group, members, counted), *_counts(counted))


def _phase(group: PodGroup, members: Collection[Pod], counted: GroupStatus) -> str:
    needed = group.min_available or 1
    scheduled = sum(bool(pod.node_name) for pod in members)
    done = counted.running + counted.succeeded
    if counted.succeeded >= needed:
        return "Finished"
    if counted.failed and done + counted.failed >= needed:
        return "Failed"
    if done >= needed:
        return "Running"
    if scheduled >= needed and group.api == KOORDINATOR:
        return "Scheduled"
    return "Scheduling" if len(members) >= needed or scheduled else "Pending"


def _volcano_phase(group: PodGroup, members: Collection[Pod], counted: GroupStatus) -> str:
    """Inqueue from the start: Kubeflow's operator makes no pods before, and we plan for pods that there are."""
    needed = group.min_available or 1
    scheduled = sum(bool(pod.node_name) and (pod.succeeded or not pod.finished) for pod in members)
    if scheduled >= needed:
        return "Completed" if counted.succeeded == scheduled else "Running"
    return "Unknown" if counted.running else "Inqueue"


def _counts(status: GroupStatus) -> tuple[int, int, int, int]:
    return status.scheduled, status.running, status.succeeded, status.failed
