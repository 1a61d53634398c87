"""How a core/v1 object becomes one of the model's nouns.

Pods of a job repeat each other, so equal shapes, gang claims and names are kept once (flyweight).
"""

from functools import lru_cache
from sys import intern

from extender.model.claim import BadGangClaim, GangClaim, solo_claim
from extender.model.device import CardPolicy
from extender.model.flyweight import KEPT, is_worth_keeping
from extender.model.namespace import Namespace
from extender.model.node import Node
from extender.model.pod import HOLD_GATE, ClaimUse, Pod, PodShape
from extender.wire import core_v1
from extender.wire.cards.handshakes import awaits_plugin, given_cards
from extender.wire.cards.inventories import inventory_of
from extender.wire.gang_dialects import gang_of
from extender.wire.outsized import outsized
from extender.wire.pod_shape import shape_of
from extender.wire.quantity import parse_quantity, whole_amount
from extender.wire.roles import number_of, rank_of, role_of
from extender.wire.seat_annotations import sorted_rank_of

_BOUND_TO_NODES = frozenset({("apps/v1", "DaemonSet"), ("v1", "Node")})
"""What makes pods for a node of their own; a static pod's mirror is the Node's."""


def pod_of(pod: core_v1.Pod) -> Pod:
    """Return the pod as scheduling sees it; raises BadQuantity."""
    meta, spec, status = pod.metadata, pod.spec, pod.status
    created, started = meta.creation_timestamp, status.start_time
    gates = {gate.name for gate in spec.scheduling_gates or ()}
    shape = _one_of_equal_shapes(shape_of(pod))
    claim, rank = _claim_of(pod, shape), rank_of(meta.labels or {})
    request = shape.cards if spec.node_name else None  # an unbound pod's annotations are its template's leftovers
    return Pod(
        uid=meta.uid,
        namespace=intern(meta.namespace),
        name=meta.name,
        shape=shape,
        created_at=created.timestamp() if created else 0.0,
        node_name=intern(spec.node_name),
        nominated_node=intern(status.nominated_node_name),
        scheduler_name=intern(spec.scheduler_name),
        priority=spec.priority or 0,
        preempts=spec.preemption_policy != "Never" and not shape.is_placed_by_us,
        started_at=started.timestamp() if started else None,
        stays_with_node=_stays_with_node(meta),
        running=status.phase == "Running",
        succeeded=status.phase == "Succeeded",
        finished=status.phase in ("Succeeded", "Failed"),
        terminating=meta.deletion_timestamp is not None,
        gated=bool(gates - {HOLD_GATE}),
        held=HOLD_GATE in gates,
        turned_away=_is_turned_away(status),
        role=intern(role_of(pod)),
        rank=intern(rank),
        number=number_of(meta.name, rank),
        gang=None if claim is None else _one_of_equal_claims(claim),
        labels={intern(key): intern(value) for key, value in (meta.labels or {}).items()},
        claims=_claims(pod),
        cards=given_cards(pod, request),
        awaits_plugin=awaits_plugin(pod, request),
        sorted_rank=sorted_rank_of(meta.annotations or {}) if spec.node_name else None,
    )


def _claim_of(pod: core_v1.Pod, shape: PodShape) -> GangClaim | BadGangClaim | None:
    """Return the pod's gang; of one that asks for too much, that it cannot be planned."""
    claim = gang_of(pod)
    if pod.spec.node_name or (claim is None and not shape.is_placed_by_us):
        return claim
    problem = outsized(shape)
    if not problem:
        return claim
    claim = claim or solo_claim(pod.metadata.namespace, pod.metadata.name)
    derived = claim.derived and not shape.is_placed_by_us
    return BadGangClaim(claim.key, f"{problem}: that is too much to look for a node", derived)


def node_of(node: core_v1.Node, policy: CardPolicy) -> Node:
    """Return the node as scheduling sees it; raises BadQuantity."""
    allocatable = node.status.allocatable or {}
    return Node(
        name=intern(node.metadata.name),
        allocatable={name: whole_amount(name, parse_quantity(text)) for name, text in allocatable.items()},
        labels=node.metadata.labels or {},
        taints=node.spec.taints or (),
        unschedulable=node.spec.unschedulable,
        inventory=inventory_of(node, policy),
    )


def namespace_of(namespace: core_v1.Namespace) -> Namespace:
    """Return the namespace as scheduling sees it."""
    return Namespace(intern(namespace.metadata.name), namespace.metadata.labels or {})


def _is_turned_away(status: core_v1.PodStatus) -> bool:
    for condition in status.conditions or ():
        if condition.type == "PodScheduled":
            return condition.status == "False" and condition.reason != "SchedulingGated"
    return False


def _stays_with_node(meta: core_v1.ObjectMeta) -> bool:
    """Whether killing it frees no room for long: its controller makes it anew on the same node."""
    owners = {(owner.api_version, owner.kind) for owner in meta.owner_references or () if owner.controller}
    return not owners.isdisjoint(_BOUND_TO_NODES)


def _claims(pod: core_v1.Pod) -> tuple[ClaimUse, ...]:
    uses = []
    for volume in pod.spec.volumes or ():
        if volume.persistent_volume_claim is not None:
            uses.append(ClaimUse(intern(volume.persistent_volume_claim.claim_name)))
        elif volume.ephemeral is not None:
            uses.append(ClaimUse(f"{pod.metadata.name}-{volume.name}", ephemeral=True))
    return tuple(uses)


def _one_of_equal_shapes(shape: PodShape) -> PodShape:
    return _kept_shape(shape) if is_worth_keeping(shape) else shape


def _one_of_equal_claims(claim: GangClaim | BadGangClaim) -> GangClaim | BadGangClaim:
    return _kept_claim(claim) if is_worth_keeping(claim) else claim


@lru_cache(maxsize=KEPT)
def _kept_shape(shape: PodShape) -> PodShape:
    return shape


@lru_cache(maxsize=KEPT)
def _kept_claim(claim: GangClaim | BadGangClaim) -> GangClaim | BadGangClaim:
    return claim
