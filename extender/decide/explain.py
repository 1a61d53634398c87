"""What do we tell the user of a gang or a pod? Why a node is not for it, `node_reasons` says.

The texts travel in kube-scheduler's own FailedScheduling line, and a text that changes makes kube-scheduler try again
at once: so they name what stays true while a gang waits, and count nothing but nodes. Wording and order follow
kube-scheduler's FitError and, around it, Koordinator's gang rejection.
"""

from collections.abc import Iterable
from typing import assert_never

from extender.decide.node_reasons import explain_reason, tally
from extender.model.announcement import Announcement
from extender.model.claim import BadGangClaim, GangKey, Ignored, solo_pod
from extender.model.declaration import (
    MinAboveReplicas,
    MinBelowRendezvous,
    MissingGang,
    NotNamedBack,
    Problem,
    SourcesDisagree,
    TotalBelowMin,
    Undeclared,
)
from extender.model.gang import Gang
from extender.model.pod import Pod
from extender.model.verdict import (
    Admission,
    CardRequestBad,
    Gathering,
    NoRoom,
    Placed,
    Preempting,
    Reason,
    WaitsForGang,
)

ROOM_IS_KEPT = "the room on this node is kept for a gang"
"""Why a pod that waits for nobody may not use what is free; which gang is not said, since that changes often."""

NEVER_CHOSEN = "other nodes come first for the GPUs that the pod asks for"
"""Why a pod may not go to a node that has such GPUs: those on another one are chosen, or soon will be."""

OTHER_DOMAIN = "the members of the pod's gang that run are in another domain of the topology level that it requires"

NOT_SYNCED = "gang extender: its cache is not synced with the API server yet"

STANDING_BY = "gang extender: another one leads, or this one has only begun to"

STOPPING = "gang extender: it is being stopped"


def _named(key: GangKey) -> str:
    pod = solo_pod(key)
    return f'Pod "{pod}"' if pod else f'Gang "{key}"'


def explain_admission(gang: Gang, admission: Admission) -> str:
    """Say why no member of the gang may run now; empty when it is placed."""
    match admission:
        case Placed():
            return ""
        case WaitsForGang(other):
            return f'Gang "{gang.key}" has room, but waits for gang "{other}", which it is bound together with'
        case Preempting():
            return f'Gang "{gang.key}" waits until the pods of lower priority are gone that are preempted for it'
        case Gathering(least, role) if role:
            return f'Gang "{gang.key}" waits for its members: fewer than the minimum {least} of role "{role}" exist'
        case Gathering(min_available):
            return f'Gang "{gang.key}" waits for its members: fewer than its min-available {min_available} exist'
        case NoRoom() if _bad_request(admission):
            return explain_bad_cards(gang, admission)
        case NoRoom(member, reasons):
            on_nodes = f'"0/{len(reasons)} nodes are available: {tally(reasons.values())}."'
            if solo_pod(gang.key):
                return f"{_named(gang.key)} has no room: {on_nodes}"
            who = f'member Pod "{member}"' if member else "a member Pod that does not exist yet"
            text = f'Gang "{gang.key}" gets rejected due to {who} is unschedulable with reason {on_nodes}'
            return f"{text} {_in_best_domain(admission)}" if admission.level else text
        case _:
            assert_never(admission)


def _in_best_domain(why: NoRoom) -> str:
    where = (
        f'the "{why.level}" domain that takes most of it' if why.reasons else f'a "{why.level}" domain: there is none'
    )
    return f"in {where}; of {why.needed} members that must be in one it takes {why.found}"


def explain_bad_cards(gang: Gang, why: NoRoom) -> str:
    """Say of a gang with a member whose request for GPUs makes no sense what is wrong with it."""
    who = "" if solo_pod(gang.key) else f': its member Pod "{why.member}"'
    return f"{_named(gang.key)}{who} asks for GPUs in a way that cannot be honoured: {_bad_request(why)}"


def _bad_request(why: NoRoom) -> str:
    every = (reason for reasons in why.reasons.values() for reason in reasons)
    return next((reason.problem for reason in every if isinstance(reason, CardRequestBad)), "")


def explain_gathering(gang: Gang) -> str:
    """Say why members wait for which room is held, beside that of those which do not exist yet."""
    return (
        f'Gang "{gang.key}" has room and waits for its members: fewer than its min-available {gang.min_available} exist'
    )


def explain_bad_claim(claim: BadGangClaim) -> str:
    """Say why a pod's gang metadata keeps it from being scheduled."""
    return f"{_named(claim.key)}: {claim.problem}"


def explain_undeclared(key: GangKey, undeclared: Undeclared) -> str:
    """Say what a gang lacks of which nobody says how many members it needs."""
    if undeclared.derived:
        return f'Gang "{key}" is derived from a job that is not known, so nobody says how many members it needs'
    lacking = "minMember in the PodGroup" if undeclared.is_there else "the PodGroup"
    group = f', or {lacking} "{key}" of {undeclared.pod_group}' if undeclared.pod_group else ""
    return (
        f'Gang "{key}": nobody says how many members it needs; what is missing is the annotation '
        f"gang.scheduling.koordinator.sh/min-available on its members{group}"
    )


def explain_replaced(key: GangKey) -> str:
    """Say why a member does not count that has a successor."""
    return f'Gang "{key}": a younger member of the same rank takes the place of this one'


def explain_planned_elsewhere(key: GangKey) -> str:
    """Say that the member has room, on a node that was not offered."""
    if solo_pod(key):
        return f"{_named(key)} has room on another node, which is tried next"
    return f'Gang "{key}" has room for this member on another node, which is tried next'


def explain_not_waiting(pod: Pod) -> str:
    """Say why a member that kube-scheduler asks about is not one to place."""
    if pod.terminating or pod.finished or pod.node_name or pod.gated:
        return f'pod "{pod.namespace}/{pod.name}" is deleted, finished, gated or bound already'
    return (
        f'this extender does not serve the scheduler "{pod.scheduler_name}": add it to schedulerNames in the '
        "extender's configuration, or change the pod's schedulerName"
    )


def explain_lost_room(key: GangKey) -> str:
    """Say why a member is not bound although it was let through."""
    if solo_pod(key):
        return f"{_named(key)} has no room any more; it is planned again"
    return f'Gang "{key}" has no room for this member any more: its members did not come together; it is planned again'


def explain_unknown_pod(namespace: str, name: str) -> str:
    """Say why a bind call is refused for a pod that the state does not have."""
    return f'gang extender: pod "{namespace}/{name}" is not known or was deleted'


def explain_superseded(key: GangKey) -> str:
    """Say why a bind call ends that nobody waits for."""
    return f"{_named(key)}: this bind call was given up or repeated"


def explain_overtaken(pod: Pod, node: str, reasons: Iterable[Reason]) -> str:
    """Say why a pod is not bound to the node that it was let through to."""
    why = ", ".join(map(explain_reason, reasons))
    return f'node "{node}" has no room for pod "{pod.namespace}/{pod.name}" any more: {why}'


def explain_binding_elsewhere(pod: Pod, node: str) -> str:
    """Say that an earlier bind call for the pod goes on or may have been heard, so that its GPUs are kept for it."""
    return f'pod "{pod.namespace}/{pod.name}" may be bound to node "{node}" by now: only that node is tried meanwhile'


def explain_lost_cards(pod: Pod, node: str) -> str:
    """Say that what was chosen for a pod is not there any more."""
    return f'the GPUs of node "{node}" have changed since some were chosen for pod "{pod.namespace}/{pod.name}"'


def explain_turn(node: str, before: Pod, pod: Pod) -> str:
    """Say whom a pod waits for that is not bound yet."""
    who = name_before(pod.namespace, before.namespace, before.name)
    return f'the GPU device plugin of node "{node}" has not taken up {who} yet, and could not tell another one from it'


def name_before(reader: str, namespace: str, name: str) -> str:
    """Name a pod that another one waits for to those who read in the namespace `reader`; strangers are not named."""
    return f'pod "{namespace}/{name}"' if namespace == reader else "a pod of another namespace"


def explain_superseded_turn(pod: Pod) -> str:
    """Say why a bind call ends that waited for its turn."""
    return f'Pod "{pod.namespace}/{pod.name}": this bind call was given up or repeated'


def explain_locked_node(node: str, problem: str) -> str:
    """Say why a pod is not bound that needs the lock of its node."""
    return f'node "{node}" could not be locked for its GPU device plugin: {problem}'


def announce_placed(gang: Gang) -> Announcement:
    """Make the Event for a gang whose min-available members are bound."""
    nodes = sorted({pod.node_name for pod in gang.bound})
    note = (
        f'Gang "{gang.key}" is placed: {len(gang.bound)} of its members are bound (min-available {gang.min_available}) '
        f"on {len(nodes)} node(s): {', '.join(nodes)}"
    )
    return Announcement(gang.oldest, "Normal", "GangPlaced", "Binding", note)


def announce_gave_up_room(gang: Gang, waited_s: float) -> Announcement:
    """Make the Event for a gang whose absent members did not come in time."""
    note = (
        f'Gang "{gang.key}" gave up its reserved room: after {waited_s:g} s only {gang.present} of its min-available '
        f"{gang.min_available} members exist. It is planned again when another member is created."
    )
    return Announcement(gang.oldest, "Warning", "GangMembersMissing", "Reserving", note)


def announce_incomplete(gang: Gang) -> Announcement:
    """Make the Event for a gang of which fewer members exist than it needs."""
    note = (
        f'Gang "{gang.key}" waits for its members: {gang.present} of its min-available {gang.min_available} exist. The '
        "others are still to be created, or do not say that they belong to it."
    )
    return Announcement(gang.oldest, "Normal", "GangIncomplete", "Gathering", note)


def announce_too_large(gang: Gang, why: NoRoom) -> Announcement:
    """Make the Event for a gang that cannot run on this cluster, whoever ends."""
    if _bad_request(why):
        return Announcement(gang.oldest, "Warning", "BadGpuRequest", "Planning", explain_bad_cards(gang, why))
    if solo_pod(gang.key):
        note = (
            f"{_named(gang.key)} fits no node, even with nothing else on the nodes ({tally(why.reasons.values())}). It "
            "waits for nodes to join or to change."
        )
        return Announcement(gang.oldest, "Warning", "PodTooLarge", "Planning", note)
    where = f'any "{why.level}" domain' if why.level else "the cluster"
    note = (
        f'Gang "{gang.key}" is larger than {where}: even with nothing else on the nodes, there is no room for all '
        f"of its min-available {gang.min_available} members together ({tally(why.reasons.values())}). It waits for "
        "nodes to join; no room is kept for it meanwhile, and nobody is preempted for it."
    )
    return Announcement(gang.oldest, "Warning", "GangTooLarge", "Planning", note)


def announce_disagreement(gang: Gang, other: Pod) -> Announcement:
    """Make the Event for a member that says something else of its gang than the oldest one, which holds."""
    note = (
        f'Gang "{gang.key}": what this member says of its gang is ignored, since an older one says something else '
        f"(min-available is {gang.min_available}); write the same values into every member's template"
    )
    return Announcement(other, "Warning", "GangMembersDisagree", "Gathering", note)


def announce_problem(gang: Gang, problem: Problem) -> Announcement:
    """Make the Event for something that is wrong with what was declared of a gang."""
    note = f'Gang "{gang.key}": {explain_problem(problem)}'
    return Announcement(gang.oldest, "Warning", "GangMisdeclared", "Gathering", note)


def explain_problem(problem: Problem) -> str:
    """Say what is wrong with what was declared of a gang, and what holds instead."""
    match problem:
        case SourcesDisagree(what, holder, held, other, ignored):
            return f"{what} is {held} by {holder}, which holds, and {ignored} by {other}, which is ignored"
        case TotalBelowMin(total, min_available):
            return f"total-number {total} is less than min-available {min_available}, which is taken for both"
        case MinAboveReplicas(min_available, replicas):
            return (
                f"min-available {min_available} is more than the {replicas} pods that its job makes: it stays waiting"
            )
        case MinBelowRendezvous(min_available, nodes):
            return (
                f"min-available {min_available} is less than the {nodes} nodes that --nnodes makes its members wait "
                f"for: so many may hold their room without ever training; raise min-available to {nodes}"
            )
        case MissingGang(key):
            return f'its groups name gang "{key}", of which there is no member'
        case NotNamedBack(key):
            return f'its groups name gang "{key}" of another namespace, whose own groups do not name this one: it waits'
        case Ignored(where, value, wanted):
            return f"{where} is {value!r} and is ignored: it must be {wanted}"
        case _:
            assert_never(problem)


def announce_rejection(pod: Pod, text: str) -> Announcement:
    """Make the Event for a member whose gang's reason to wait has changed since it was last tried."""
    return Announcement(pod, "Warning", "FailedScheduling", "Scheduling", text)
