"""Bound pods with a manager's annotations, and the cards that are chosen for them."""

from collections.abc import Mapping
from typing import Any

from msgspec import convert

from extender.model.device import Card, CardDialect, CardInventory, CardManager, CardNeed, CardRequest, CardShare
from extender.wire import core_v1
from extender.wire.cards.handshake import CardChoice
from tests.builders import GIB, pod_json

NOW_S = 1_700_000_000.25
UUIDS = ("GPU-aaaa", "GPU-bbbb", "GPU-cccc", "GPU-dddd")


def bound_pod(
    annotations: Mapping[str, str], *, node: str = "n1", phase: str = "Pending", **metadata: Any
) -> core_v1.Pod:
    """Return a pod on the node with these annotations; more metadata may be laid over it."""
    metadata = {"annotations": dict(annotations), **metadata}
    return convert(pod_json(metadata=metadata, spec={"nodeName": node}, status={"phase": phase}), core_v1.Pod)


def inventory(manager: CardManager, *, uuids: bool = True) -> CardInventory:
    """Return four cards of 16 GiB."""
    cards = [Card(index, UUIDS[index] if uuids else "", 16 * GIB, slots=10) for index in range(4)]
    return CardInventory(manager, tuple(cards))


def a_choice(
    manager: CardManager,
    dialect: CardDialect,
    *shares: CardShare,
    needs: tuple[CardNeed, ...] = (CardNeed(),),
    containers: int = 1,
    init_containers: int = 0,
    uuids: bool = True,
) -> CardChoice:
    """Return these cards of n1, chosen for a pod that asks in these terms."""
    request = CardRequest(dialect, needs, containers=containers, init_containers=init_containers)
    return CardChoice(request, shares, inventory(manager, uuids=uuids), "n1", NOW_S)
