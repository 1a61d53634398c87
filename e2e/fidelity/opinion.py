"""What does our model say of a pod, on which nodes, and which of kube-scheduler's plugins made the difference?"""

from collections import Counter
from collections.abc import Iterable

from msgspec import Struct, structs

from extender.decide.node_reasons import PLUGINS, explain_reason
from extender.decide.trial import Trial
from extender.model.pod import Occupant, Relations, Tags, Toleration, VolumeTerms
from extender.model.snapshot import Snapshot
from extender.model.verdict import Reason, UntoleratedTaint

_EVERYTHING = (Toleration(operator="Exists"),)


class Opinion(Struct, frozen=True):
    """On which nodes the pod fits; `reasons` counts the texts of why not on the others.

    A plugin is decisive when some node would do but for it.
    """

    fits: frozenset[str]
    reasons: Counter[str]
    decisive: frozenset[str]


def opinion_on(pod: Occupant, snapshot: Snapshot) -> Opinion:
    """Ask our model about the pod on every node."""
    trial = Trial(snapshot)
    why_not = {name: trial.fit(pod, name) for name in snapshot.rooms}
    reasons = Counter(_text(reason) for node in why_not.values() for reason in node)
    fits = frozenset(name for name, found in why_not.items() if not found)
    return Opinion(fits, reasons, frozenset(_decisive(pod, why_not.items(), trial)))


def _text(reason: Reason) -> str:
    """Return it in kube-scheduler 1.36's own words, which do not name the taint as ours and its older ones do."""
    return "node(s) had untolerated taint(s)" if isinstance(reason, UntoleratedTaint) else explain_reason(reason)


def _decisive(pod: Occupant, why_not: Iterable[tuple[str, tuple[Reason, ...]]], trial: Trial) -> Iterable[str]:
    for name, reasons in why_not:
        plugin = PLUGINS[type(reasons[0])] if reasons else ""
        if plugin and not trial.fit(_indifferent_to(plugin, pod), name):
            yield plugin


def _indifferent_to(plugin: str, pod: Occupant) -> Occupant:
    """Return the pod without what the plugin looks at."""
    shape, relations = pod.shape, pod.shape.relations or Relations()
    volumes = shape.volumes or VolumeTerms()
    match plugin:
        case "NodeUnschedulable" | "TaintToleration":
            shape = structs.replace(shape, tolerations=_EVERYTHING)
        case "NodeAffinity":
            shape = structs.replace(shape, node_selector=(), required_terms=None)
        case "NodePorts":
            shape = structs.replace(shape, host_ports=())
        case "NodeResourcesFit":
            shape = structs.replace(shape, requests=())
        case "VolumeBinding":
            shape = structs.replace(shape, volumes=structs.replace(volumes, required_terms=()))
        case "VolumeZone":
            shape = structs.replace(shape, volumes=structs.replace(volumes, zones=()))
        case "PodTopologySpread":
            shape = structs.replace(shape, relations=structs.replace(relations, spread=()))
        case "InterPodAffinity":
            shape = structs.replace(shape, relations=structs.replace(relations, affinity=(), anti_affinity=()))
            return Occupant(shape, Tags())
        case _:
            raise ValueError(plugin)
    return structs.replace(pod, shape=shape)
