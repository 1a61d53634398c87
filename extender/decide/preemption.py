"""Who may be killed, and for whom?

kube-scheduler preempts for one pod at a time, without having asked whether its gang could run then: for a gang that
could not, innocent pods would die for nothing. So the victims of a gang are chosen for all its members at once, with
the prices that stand here, and nobody dies before a set is known that makes it whole. What kube-scheduler prefers holds
here, too: not to break a PodDisruptionBudget, then low priorities, then few victims; and a running gang is spared where
others do, since the rest of it would be of no use.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence

from extender.decide.budgets import violating
from extender.decide.node_prices import Candidate
from extender.model.disruption_budget import DisruptionBudget
from extender.model.gang import Gang
from extender.model.pod import Pod, PodUid


def victims_for(
    members: Sequence[Pod],
    pods: Iterable[Pod],
    budgets: Iterable[DisruptionBudget],
    gangs_at_risk: Mapping[PodUid, int],
) -> list[Candidate]:
    """Return whom these members may have killed: whoever has a lower priority than all of them, if all may preempt.

    `gangs_at_risk` numbers, from 1, the running gangs that the loss of a pod would break, so that one which breaks
    anyhow is used up before another one breaks.
    """
    if not all(member.preempts for member in members):
        return []
    lowest = min(member.priority for member in members)
    lower = sorted(
        (pod for pod in pods if pod.priority < lowest), key=lambda pod: (pod.priority, -(pod.started_at or 0))
    )
    protected = violating(lower, budgets)
    return [Candidate((pod.uid in protected, pod.priority, gangs_at_risk.get(pod.uid, 0)), pod) for pod in lower]


def leavers(pods: Iterable[Pod], gangs_at_risk: Mapping[PodUid, int]) -> list[Candidate]:
    """Return whose end a gang may wait for: anybody's, rather one gang's than several gangs'."""
    return [Candidate((gangs_at_risk.get(pod.uid, 0),), pod) for pod in pods]


def sparing_nodes(victims: Mapping[str, Sequence[Pod]], gang_of: Callable[[Pod], Gang | None]) -> list[str]:
    """Return the nodes on which these victims' deaths break no running gang; all of them where each breaks one."""
    sparing = [node for node, pods in victims.items() if not _breaks_a_gang(pods, gang_of)]
    return sparing or list(victims)


def _breaks_a_gang(pods: Sequence[Pod], gang_of: Callable[[Pod], Gang | None]) -> bool:
    lost = {pod.uid for pod in pods}
    gangs = [gang for pod in pods if (gang := gang_of(pod)) is not None]
    return any(gang.breaks_without(lost) for gang in gangs)
