"""What kube-scheduler asks of an extender, and how it is answered.

The keys are Go's field names. Both ways of naming nodes are read: `NodeNames` (nodeCacheCapable: true), and `Nodes`
with whole objects (false). An answer comes in the form of its question, whole objects given back as they came.

Mirrors k8s.io/kube-scheduler/extender/v1.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Annotated

from msgspec import Meta, Raw, Struct, field, structs
from msgspec.json import Decoder
from orjson import Fragment, dumps

from extender.model.pod import Pod, PodUid
from extender.wire import core_v1
from extender.wire.malformed import UNREADABLE, MalformedBody, decode
from extender.wire.objects import pod_of

_Required = Annotated[str, Meta(min_length=1)]
_Int64 = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
"""What is given back must be one that Go takes."""


class ExtenderArgs(Struct, frozen=True):
    """The question of filter and prioritize. `raw_nodes` has each node's JSON; it is None with nodeCacheCapable."""

    pod: Pod
    node_names: Sequence[str]
    raw_nodes: Mapping[str, Raw] | None = None


class Victims(Struct, frozen=True, gc=False):
    """The pods that would be killed on one node."""

    uids: tuple[PodUid, ...]
    pdb_violations: int = 0


class PreemptionArgs(Struct, frozen=True):
    """The question of preempt: the candidate nodes with their victims."""

    pod: Pod
    victims: Mapping[str, Victims]


class BindingArgs(Struct, frozen=True, gc=False):
    """The question of bind."""

    namespace: str
    name: str
    uid: PodUid
    node: str


class _NodeList(Struct):
    items: list[Raw] | None = None


class _GlancedMeta(Struct):
    uid: str


class _GlancedStatus(Struct, rename="camel", frozen=True):
    nominated_node_name: str = ""


class _Glanced(Struct):
    """As much of a pod as tells whether it is known already, and where kube-scheduler tries it."""

    metadata: _GlancedMeta
    status: _GlancedStatus = _GlancedStatus()


class _Args(Struct, rename="pascal"):
    pod: Raw
    nodes: _NodeList | None = None
    node_names: list[str] | None = None


class _Meta(Struct):
    name: str


class _NamedNode(Struct):
    metadata: _Meta


class _MetaPod(Struct):
    uid: str = field(name="UID")


class _MetaVictims(Struct, rename="pascal"):
    pods: list[_MetaPod] | None = None
    violations: _Int64 = field(name="NumPDBViolations", default=0)


class _VictimPod(Struct):
    metadata: core_v1.ObjectMeta


class _FullVictims(Struct, rename="pascal"):
    pods: list[_VictimPod] | None = None
    violations: _Int64 = field(name="NumPDBViolations", default=0)


class _PreemptionArgs(Struct, rename="pascal"):
    pod: core_v1.Pod
    node_name_to_victims: dict[str, _FullVictims] | None = None
    node_name_to_meta_victims: dict[str, _MetaVictims] | None = None


class _BindingArgs(Struct, rename="pascal"):
    pod_name: _Required
    pod_namespace: _Required
    node: _Required
    pod_uid: _Required = field(name="PodUID")


def _nobody(_: PodUid) -> None:
    return None


_ARGS = Decoder(_Args)
_GLANCED = Decoder(_Glanced)
_POD = Decoder(core_v1.Pod)
_NAMED_NODE = Decoder(_NamedNode)
_PREEMPTION_ARGS = Decoder(_PreemptionArgs)
_BINDING_ARGS = Decoder(_BindingArgs)
_NOBODY: Mapping[str, str] = {}


def decode_args(body: bytes, known: Callable[[PodUid], Pod | None] = _nobody) -> ExtenderArgs:
    """Return the question of filter or prioritize; raises MalformedBody.

    Of a pod that is `known` only the nominated node is read, which kube-scheduler may know better: reading all of it
    takes longer than deciding on it.
    """
    args = decode(_ARGS, body, "ExtenderArgs")
    pod = _asked_pod(args.pod, known)
    if args.node_names is not None:
        return ExtenderArgs(pod, args.node_names)
    if args.nodes is None:
        raise MalformedBody("This is no ExtenderArgs: it has neither NodeNames nor Nodes.")
    raw_nodes = {
        decode(_NAMED_NODE, node, "Node in ExtenderArgs").metadata.name: node for node in args.nodes.items or ()
    }
    return ExtenderArgs(pod, tuple(raw_nodes), raw_nodes)


def _asked_pod(raw: Raw, known: Callable[[PodUid], Pod | None]) -> Pod:
    glanced = decode(_GLANCED, raw, "Pod in ExtenderArgs")
    pod = known(glanced.metadata.uid)
    if pod is None:
        return _readable(decode(_POD, raw, "Pod in ExtenderArgs"), "ExtenderArgs")
    nominated = glanced.status.nominated_node_name
    return pod if pod.nominated_node == nominated else structs.replace(pod, nominated_node=nominated)


def decode_preemption_args(body: bytes) -> PreemptionArgs:
    """Return the question of preempt; raises MalformedBody."""
    args = decode(_PREEMPTION_ARGS, body, "ExtenderPreemptionArgs")
    victims = {
        node: Victims(tuple(pod.uid for pod in meta.pods or ()), meta.violations)
        for node, meta in (args.node_name_to_meta_victims or {}).items()
    }
    for node, full in (args.node_name_to_victims or {}).items():
        victims.setdefault(node, Victims(tuple(pod.metadata.uid for pod in full.pods or ()), full.violations))
    return PreemptionArgs(_readable(args.pod, "ExtenderPreemptionArgs"), victims)


def decode_binding_args(body: bytes) -> BindingArgs:
    """Return the question of bind; raises MalformedBody."""
    args = decode(_BINDING_ARGS, body, "ExtenderBindingArgs")
    return BindingArgs(args.pod_namespace, args.pod_name, args.pod_uid, args.node)


def encode_filter(args: ExtenderArgs, accepted: Iterable[str], unresolvable: Mapping[str, str] = _NOBODY) -> bytes:
    """Return the ExtenderFilterResult for `args`.

    kube-scheduler fails the call for a name that it did not send, but takes any node that comes as an object: so
    `accepted` are nodes of the question, or one that is not. `unresolvable` says why not, by node, and that no
    preemption would help there.
    """
    names, known = list(accepted), args.raw_nodes
    if known is None and not (len(names) == 1 and names[0] not in args.node_names):
        return _filter_result(names=names, nodes=None, unresolvable=unresolvable)
    items = [Fragment(bytes(known[name])) if known and name in known else _bare_node(name) for name in names]
    return _filter_result(names=None, nodes={"metadata": {}, "items": items}, unresolvable=unresolvable)


def _bare_node(name: str) -> Mapping[str, object]:
    return {"metadata": {"name": name}}


def encode_filter_error(error: str) -> bytes:
    """Return an ExtenderFilterResult that makes kube-scheduler try again later; `error` is shown in the pod's event."""
    return _filter_result(names=None, nodes=None, unresolvable=_NOBODY, error=error)


def _filter_result(
    *,
    names: Sequence[str] | None,
    nodes: Mapping[str, object] | None,
    unresolvable: Mapping[str, str],
    error: str = "",
) -> bytes:
    result = {
        "Nodes": nodes,
        "NodeNames": names,
        "FailedNodes": _NOBODY,
        "FailedAndUnresolvableNodes": unresolvable,
        "Error": error,
    }
    return dumps(result)


def encode_priorities(scores: Mapping[str, int]) -> bytes:
    """Return the HostPriorityList; kube-scheduler wants 0 to 10, as whole numbers."""
    return dumps([{"Host": node, "Score": score} for node, score in scores.items()])


def encode_preemption(victims: Mapping[str, Victims]) -> bytes:
    """Return the ExtenderPreemptionResult; without any node it is a veto, and nobody is killed."""
    result = {
        node: {"Pods": [{"UID": uid} for uid in killed.uids], "NumPDBViolations": killed.pdb_violations}
        for node, killed in victims.items()
    }
    return dumps({"NodeNameToMetaVictims": result})


def encode_binding(error: str = "") -> bytes:
    """Return the ExtenderBindingResult; without an error it says that the pod is bound."""
    return dumps({"Error": error})


def _readable(pod: core_v1.Pod, wanted: str) -> Pod:
    try:
        return pod_of(pod)
    except UNREADABLE as error:
        raise MalformedBody(f"This is no {wanted}: in its Pod, {error}.") from error
