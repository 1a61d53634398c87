"""Which cards has a node, and who manages them?

Nodes are alike, and each sends itself again and again, so equal inventories are kept once (flyweight).
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Final

from extender.model.device import CardInventory, CardPolicy
from extender.wire import core_v1
from extender.wire.cards.hami_inventory import hami_inventory
from extender.wire.cards.memory_inventories import gpushare_inventory, volcano_gpu_inventory
from extender.wire.cards.own_inventory import own_inventory
from extender.wire.cards.volcano_vgpu_inventory import volcano_vgpu_inventory

_SOURCES: Final[tuple[Callable[[core_v1.Node, CardPolicy], CardInventory | None], ...]] = (
    hami_inventory,
    volcano_vgpu_inventory,
    gpushare_inventory,
    volcano_gpu_inventory,
    own_inventory,
)
"""The first that knows cards has them: what is written for one device plugin goes before what holds of any."""


def inventory_of(node: core_v1.Node, policy: CardPolicy) -> CardInventory | None:
    """Return the node's cards, as far as the node says them."""
    for source in _SOURCES:
        inventory = source(node, policy)
        if inventory is not None:
            return _one_of_equal(inventory)
    return None


@lru_cache(maxsize=8192)  # more than large clusters have nodes with GPUs; 8 cards are about 1 KB
def _one_of_equal(inventory: CardInventory) -> CardInventory:
    return inventory
