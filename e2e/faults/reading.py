"""What do objects of the API server say, as the checker reads them? It shares no code with the extender on purpose."""

from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import NamedTuple

from e2e.client import Object

GANG_NAME = "gang.scheduling.koordinator.sh/name"
MIN_AVAILABLE = "gang.scheduling.koordinator.sh/min-available"
VISIBLE_DEVICES = "gang-extender.io/visible-devices"
GPU = "nvidia.com/gpu"
HOLD_GATE_PREFIX = "gang-extender.io/"

_SHARE = "kubeshare/gpu_request"
_KUBESHARE_CARDS = "kubeshare/gpu_info"
_VOLCANO_CARDS = "volcano.sh/node-vgpu-register"
_VOLCANO_GIVEN = "volcano.sh/vgpu-ids-new"
_VOLCANO_CARD_COUNT = "volcano.sh/vgpu-number"
_NO_RESOURCES = ("volcano.sh/vgpu-memory",)  # kube-scheduler is told to ignore it: it says how much of each card
_UNITS = {"m": Fraction(1, 1000), "k": Fraction(10**3), "M": Fraction(10**6), "G": Fraction(10**9)}
_UNITS |= {f"{letter}i": Fraction(1024**power) for power, letter in enumerate("KMGT", start=1)}


class Gang(NamedTuple):
    """A strict gang."""

    name: str
    min_available: int


def gang_of(pod: Object) -> Gang | None:
    """Return the gang that the pod declares in Koordinator's terms."""
    said = annotations_of(pod)
    if GANG_NAME not in said:
        return None
    return Gang(f"{pod['metadata']['namespace']}/{said[GANG_NAME]}", int(said[MIN_AVAILABLE]))


def name_of(obj: Object) -> str:
    """Return namespace and name, for people."""
    metadata = obj["metadata"]
    return f"{metadata['namespace']}/{metadata['name']}" if "namespace" in metadata else str(metadata["name"])


def annotations_of(obj: Object) -> Mapping[str, str]:
    """Return what is written on the object."""
    said: Mapping[str, str] = obj["metadata"].get("annotations") or {}
    return said


def node_of(pod: Object) -> str:
    """Return the node that the pod is bound to, or nothing."""
    return str(pod["spec"].get("nodeName", ""))


def is_over(pod: Object) -> bool:
    """Whether its containers have ended, so that it uses nothing any more."""
    return pod.get("status", {}).get("phase") in ("Succeeded", "Failed")


def is_terminating(pod: Object) -> bool:
    """Whether it is being deleted."""
    return "deletionTimestamp" in pod["metadata"]


def is_held(pod: Object) -> bool:
    """Whether our own scheduling gate is on it."""
    return any(gate["name"].startswith(HOLD_GATE_PREFIX) for gate in pod["spec"].get("schedulingGates", ()))


def amount(text: str) -> Fraction:
    """Read a quantity."""
    unit = next((each for each in sorted(_UNITS, key=len, reverse=True) if text.endswith(each)), "")
    return Fraction(text.removesuffix(unit)) * _UNITS.get(unit, Fraction(1))


def requests_of(pod: Object) -> dict[str, Fraction]:
    """Return what the pod uses of its node, itself included: its containers together, or its largest init container."""
    used = added_up(_requests(container) for container in pod["spec"]["containers"])
    for container in pod["spec"].get("initContainers", ()):
        used |= {what: max(used.get(what, Fraction(0)), each) for what, each in _requests(container).items()}
    return used | {"pods": Fraction(1)}


def added_up(amounts: Iterable[Mapping[str, Fraction]]) -> dict[str, Fraction]:
    """Return the sums by name."""
    sums: dict[str, Fraction] = {}
    for each in amounts:
        sums |= {what: sums.get(what, Fraction(0)) + much for what, much in each.items()}
    return sums


def _requests(container: Object) -> dict[str, Fraction]:
    resources = container.get("resources", {})
    texts = {**resources.get("limits", {}), **resources.get("requests", {})}
    return {resource: amount(text) for resource, text in texts.items() if resource not in _NO_RESOURCES}


def offer_of(node: Object) -> Mapping[str, Fraction]:
    """Return what the node has for pods."""
    return {resource: amount(text) for resource, text in node["status"].get("allocatable", {}).items()}


def cards_of(node: Object) -> Mapping[str, int]:
    """Return the MiB of each card by UUID, as KubeShare's collector or Volcano's plugin lists them on the node.

    Where nobody lists them they have indexes, and how much memory is not known.
    """
    said = annotations_of(node)
    listed = (entry.split(":") for entry in said.get(_KUBESHARE_CARDS, "").split(",") if entry)
    registered = (entry.split(",") for entry in said.get(_VOLCANO_CARDS, "").split(":") if entry)
    cards = {uuid: int(mib) for uuid, mib in listed} | {uuid: int(mib) for uuid, _, mib, *_ in registered}
    return cards or {str(index): 0 for index in range(int(offer_of(node).get(GPU, 0)))}


def shares_of(pod: Object, cards: Mapping[str, int]) -> Mapping[str, Fraction] | None:
    """Return how much of which card a bound pod was given; None where it asks for none in either's terms.

    Of a card that is not among the node's cards it was given all.
    """
    said = annotations_of(pod)
    if _SHARE in said:
        wanted = min(Fraction(said[_SHARE]), Fraction(1))
        return {uuid: wanted for uuid in said.get(VISIBLE_DEVICES, "").split(",") if uuid}
    if wanted_cards(pod) == 0:
        return None
    entries = (entry.split(",") for entry in said.get(_VOLCANO_GIVEN, "").replace(";", ":").split(":") if entry)
    return {uuid: Fraction(int(mib), cards.get(uuid, int(mib))) for uuid, _, mib, _ in entries}


def needs_plugin(pod: Object) -> bool:
    """Whether pods like it wait on a node until its device plugin has taken up the one before."""
    return any(_VOLCANO_CARD_COUNT in _requests(container) for container in pod["spec"]["containers"])


def wanted_cards(pod: Object) -> int:
    """Return how many cards a pod must get that asks in KubeShare's or Volcano's terms."""
    said = annotations_of(pod)
    if _SHARE in said:
        return max(1, int(Fraction(said[_SHARE])))
    return int(sum(requests.get(_VOLCANO_CARD_COUNT, 0) for requests in map(_requests, pod["spec"]["containers"])))


def refusal_of(pod: Object, node: Object | None) -> str:
    """Say why the node is not for the pod, whatever is on it; empty where it is."""
    if node is None:
        return "there is no such node"
    labels = node["metadata"].get("labels", {})
    if any(labels.get(key) != text for key, text in pod["spec"].get("nodeSelector", {}).items()):
        return "its labels are not those that the pod selects"
    bad = [taint for taint in taints_of(node) if not _tolerates(pod["spec"].get("tolerations", ()), taint)]
    return f"the pod does not tolerate its taints {bad}" if bad else ""


def taints_of(node: Object) -> list[Object]:
    """Return the taints that keep pods away, that of a cordoned node included."""
    spec = node["spec"]
    taints = [taint for taint in spec.get("taints", ()) if taint["effect"] in ("NoSchedule", "NoExecute")]
    if spec.get("unschedulable"):
        taints.append({"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"})
    return taints


def _tolerates(tolerations: Iterable[Object], taint: Object) -> bool:
    return any(
        each.get("effect", taint["effect"]) == taint["effect"]
        and each.get("key", taint["key"]) == taint["key"]
        and (each.get("operator") == "Exists" or each.get("value", "") == taint.get("value", ""))
        for each in tolerations
    )
