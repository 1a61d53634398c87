"""With whom must a gang be in one domain of the network?

With the gangs that it is bound together with, or that are other roles of its job, and that require the same level: as
in Koordinator, whose specification is that of the whole gang group.
"""

from collections.abc import Callable, Collection, Mapping

from extender.decide.gang import Company
from extender.model.claim import GangKey
from extender.model.gang import Gang
from extender.state.cluster import Cluster


def find_company(
    gang: Gang, cluster: Cluster, lacks: Callable[[Gang], bool], tried: Mapping[GangKey, Collection[str]]
) -> Company:
    """Return where those are, and who of them has yet to find room; `tried` are nodes that some of them may get."""
    nodes: set[str] = set()
    lacking = []
    if not gang.required_level:
        return Company()
    together = cluster.gangs.together(gang)
    for key in sorted({*together, *(cluster.gangs.of_job(gang.job) if gang.job else ())} - {gang.key}):
        other = together[key] if key in together else cluster.gangs.get(key)
        if other is None or other.required_level != gang.required_level:
            continue
        held = [slot.as_placement() for slot in cluster.reservations.slots_of(key) if slot.holder]
        nodes.update(pod.node_name for pod in other.bound)
        nodes.update(tried.get(key, ()), (each.node for each in held))
        if key in together and key not in tried and not other.satisfied and lacks(other):
            lacking.append((other, tuple(held)))
    return Company(frozenset(nodes), tuple(lacking))
