"""Koordinator's network-topology-spec, on a PodGroup or on members: which layers must, or had better, be shared.

Mirrors NetworkTopologySpec (apis/extension/network_topology.go). Its layers are named by the ClusterNetworkTopology
object, which is not read: they are the levels of that name in our own configuration, and `NodeTopologyLayer` is a node.
"""

from collections.abc import Mapping
from typing import Final, Literal

from msgspec import MsgspecError, Struct
from msgspec.json import Decoder

from extender.model.claim import Ignored, Terms
from extender.model.topology import LevelName

SPEC: Final = "gang.scheduling.koordinator.sh/network-topology-spec"
NODE_LAYER: Final = "NodeTopologyLayer"
HOSTNAME: Final = "kubernetes.io/hostname"

_SHOWN = 63
"""Characters of a bad value that are shown."""


class _GatherRule(Struct, rename="camel"):
    layer: str
    strategy: Literal["MustGather", "PreferGather"]
    pod_count_multiple: int = 0


class _Spec(Struct, rename="camel"):
    gather_strategy: list[_GatherRule] = []


_SPEC = Decoder(_Spec)


def koordinator_topology(annotations: Mapping[str, str]) -> Terms | None:
    """Return what it says; None without it, and where it is empty, as Koordinator has it."""
    text = annotations.get(SPEC)
    if not text:
        return None
    try:
        rules = _SPEC.decode(text).gather_strategy
    except (MsgspecError, RecursionError):
        wanted = '{"gatherStrategy": [{"layer": "a level", "strategy": "MustGather" or "PreferGather"}, ...]}'
        return Terms(ignored=(Ignored(f"annotation {SPEC}", text[:_SHOWN], wanted),))
    ignored = [
        Ignored(f"podCountMultiple in annotation {SPEC}", str(rule.pod_count_multiple), "absent: it is not supported")
        for rule in rules
        if rule.pod_count_multiple
    ]
    layers = {
        strategy: tuple(_level_of(rule.layer) for rule in rules if rule.strategy == strategy)
        for strategy in ("MustGather", "PreferGather")
    }
    return Terms(
        required=layers["MustGather"] or None, preferred=layers["PreferGather"] or None, ignored=tuple(ignored)
    )


def _level_of(layer: str) -> LevelName:
    return LevelName(HOSTNAME, "label") if layer == NODE_LAYER else LevelName(layer[:_SHOWN], "name")
