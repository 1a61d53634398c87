"""Why is a node not for a pod? Each reason in kube-scheduler's own words, or in words like these.

They are tallied in kube-scheduler's FailedScheduling line, where a text that changes makes it try again at once: so
they count nothing but nodes.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import assert_never

from extender.model.verdict import (
    AffinityMismatch,
    CardReason,
    CardRequestBad,
    CardsChosen,
    CardsHandedOutWhole,
    CardsNotServed,
    CardsUnreadable,
    Cordoned,
    Insufficient,
    NoCardMatches,
    NoVolumeZone,
    PodAffinityUnmet,
    PodAntiAffinityViolated,
    PortsTaken,
    Reason,
    Refused,
    Relation,
    RepelledByPods,
    SpreadLabelMissing,
    SpreadTooUneven,
    TooLittleOfCards,
    UntoleratedTaint,
    VolumeElsewhere,
)

LONGEST_TALLY = 4000
"""Characters: more than anybody reads. A pod may ask for more that no node has, and filter answers it for each."""


def explain_reason(reason: Reason) -> str:
    """Put why a pod does not fit a node in kube-scheduler's words."""
    match reason:
        case Cordoned() | UntoleratedTaint() | AffinityMismatch():
            return _explain_labels(reason)
        case PortsTaken():
            return "node(s) didn't have free ports for the requested pod ports"
        case Insufficient(resource):
            return "Too many pods" if resource == "pods" else f"Insufficient {resource}"
        case CardRequestBad() | CardsNotServed() | CardsHandedOutWhole() | CardsChosen():
            return _explain_cards(reason)
        case CardsUnreadable() | NoCardMatches() | TooLittleOfCards():
            return _explain_cards(reason)
        case VolumeElsewhere() | NoVolumeZone():
            return _explain_volumes(reason)
        case Refused():
            return "node(s) were refused by kube-scheduler's other filters or at binding"
        case _:
            return _explain_relation(reason)


def _explain_labels(reason: Cordoned | UntoleratedTaint | AffinityMismatch) -> str:
    match reason:
        case Cordoned():
            return "node(s) were unschedulable"
        case UntoleratedTaint(taint):
            return f"node(s) had untolerated taint {{{taint.key}: {taint.value}}}"
        case AffinityMismatch():
            return "node(s) didn't match Pod's node affinity/selector"
        case _:
            assert_never(reason)


def _explain_cards(reason: CardReason) -> str:
    match reason:
        case CardRequestBad(problem):
            return f"node(s) cannot give what is asked of GPUs: {problem}"
        case CardsNotServed(dialect):
            return f"node(s) don't hand out GPUs for {dialect} requests"
        case CardsUnreadable(problem):
            return f"node(s) have GPUs that cannot be used: {problem}"
        case CardsHandedOutWhole():
            return "node(s) run pods with whole GPUs that the kubelet picked, beside which none can be chosen"
        case CardsChosen():
            return "node(s) have GPUs in shared use, beside which the kubelet must not pick whole ones"
        case NoCardMatches():
            return "node(s) had no GPU of the wanted model, UUID or size"
        case TooLittleOfCards():
            return "Insufficient free GPU shares"
        case _:
            assert_never(reason)


def _explain_volumes(reason: VolumeElsewhere | NoVolumeZone) -> str:
    match reason:
        case VolumeElsewhere():
            return "node(s) didn't match PersistentVolume's node affinity"
        case NoVolumeZone():
            return "node(s) had no available volume zone"
        case _:
            assert_never(reason)


def _explain_relation(reason: Relation) -> str:
    match reason:
        case SpreadLabelMissing():
            return "node(s) didn't match pod topology spread constraints (missing required label)"
        case SpreadTooUneven():
            return "node(s) didn't match pod topology spread constraints"
        case PodAffinityUnmet():
            return "node(s) didn't match pod affinity rules"
        case PodAntiAffinityViolated():
            return "node(s) didn't match pod anti-affinity rules"
        case RepelledByPods():
            return "node(s) didn't satisfy existing pods anti-affinity rules"
        case _:
            assert_never(reason)


def tally(reasons: Iterable[Sequence[Reason]]) -> str:
    """Count, for kube-scheduler's own line, on how many nodes each reason stands."""
    counts: Counter[str] = Counter()
    for node, times in Counter(map(tuple, reasons)).items():
        counts.update({explain_reason(reason): times for reason in node})
    text = ", ".join(sorted(f"{count} {text}" for text, count in counts.items()))
    return text if len(text) <= LONGEST_TALLY else f"{text[:LONGEST_TALLY]}..."


PLUGINS: Mapping[type[Reason], str] = {
    Cordoned: "NodeUnschedulable",
    UntoleratedTaint: "TaintToleration",
    AffinityMismatch: "NodeAffinity",
    PortsTaken: "NodePorts",
    Insufficient: "NodeResourcesFit",
    VolumeElsewhere: "VolumeBinding",
    NoVolumeZone: "VolumeZone",
    SpreadLabelMissing: "PodTopologySpread",
    SpreadTooUneven: "PodTopologySpread",
    PodAffinityUnmet: "InterPodAffinity",
    PodAntiAffinityViolated: "InterPodAffinity",
    RepelledByPods: "InterPodAffinity",
}
"""kube-scheduler's plugin that gives each reason; `Refused` is nobody's."""
