"""What is to be looked at by who begins to decide on a state that has been filled without him?

Everything: nothing that an earlier process, or another one, has planned is known here.
"""

from extender.decide.group_status import REPORTED_APIS
from extender.model.pod import Pod
from extender.state.cluster import Cluster
from extender.state.membership import key_of


def begin(cluster: Cluster) -> None:
    """Note everything as changed, and the pods that may be on their way to some node.

    The latter were let through by who decided before, nobody knows where to, until `undecided.disinherit`.
    """
    changes = cluster.changes
    let_go_of_notes(cluster)
    changes.free_room()
    for key in (*cluster.gangs, *(key for api in REPORTED_APIS for key in cluster.gangs.pod_group_keys(api))):
        changes.plan(key)
    for pod in cluster.pods.values():
        if pod.held and key_of(pod) is None:
            changes.stray(pod.uid)
    cluster.undecided.inherit(pod.uid for pod in cluster.pods.values() if _may_be_on_its_way(cluster, pod))


def let_go_of_notes(cluster: Cluster) -> None:
    """Forget what has changed: while nobody decides the notes only grow, and `begin` makes them anew."""
    changes = cluster.changes
    changes.room_freed = False
    for take in (changes.take_touched, changes.take_to_plan, changes.take_gone, changes.take_strays):
        take()


def _may_be_on_its_way(cluster: Cluster, pod: Pod) -> bool:
    return cluster.gangs.is_waiting(pod) and not pod.held
