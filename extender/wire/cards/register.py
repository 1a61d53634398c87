"""How is what device managers write of a node's cards taken apart, and what becomes of it where it makes no sense?"""

from typing import Final

from extender.model.device import CardInventory, CardManager, CardPolicy
from extender.wire import core_v1
from extender.wire.quantity import BadQuantity, parse_quantity

_NANOS = 10**9
_MIG_DEVICE: Final = "nvidia.com/mig-"
_SHARED_GPU: Final = "nvidia.com/gpu.shared"
_MOST: Final = 1024
"""Cards on one node; no node has a tenth of it, and a number that somebody mistyped must not fill the memory."""


class BadRegister(ValueError):  # noqa: N818 - says what is wrong, as BadQuantity does
    """What is said of a node's cards makes no sense; the error's text is a clause that is the same on every node."""


def unreadable(where: str) -> BadRegister:
    """Return the complaint about a text, which is not quoted: a reason that changes wakes pods."""
    return BadRegister(f"{where} cannot be read")


def unusable(
    manager: CardManager, node: core_v1.Node, policy: CardPolicy, problem: BadRegister, *own: str
) -> CardInventory:
    """Return the inventory of a node whose cards are not known although the manager has some."""
    return CardInventory(manager, (), kubelet_resources(node, policy, *own), policy.spread, str(problem))


def kubelet_resources(node: core_v1.Node, policy: CardPolicy, *own: str) -> frozenset[str]:
    """Return the names for which the node's kubelet hands out cards; `own` are the manager's."""
    offered = node.status.allocatable or {}
    parts = (name for name in offered if name.startswith(_MIG_DEVICE) or name == _SHARED_GPU)
    return policy.whole_resources.union(own, parts)


def number(where: str, text: str) -> int:
    """Return the whole number of 0 or more that the text is; raises BadRegister."""
    text = text.strip()
    if not (text.isascii() and text.isdigit() and len(text) <= 18):
        raise unreadable(where)
    return int(text)


def flag(where: str, text: str) -> bool:
    """Return what Go's strconv.ParseBool makes of the text; raises BadRegister."""
    lower = text.strip().lower()
    if lower in ("true", "t", "1"):
        return True
    if lower in ("false", "f", "0"):
        return False
    raise unreadable(where)


def amount(quantities: core_v1.Quantities | None, name: str) -> int | None:
    """Return how many of the resource there are, None where it is not named; raises BadRegister."""
    text = (quantities or {}).get(name)
    if text is None:
        return None
    try:
        return parse_quantity(text) // _NANOS
    except BadQuantity:
        raise unreadable(f"the amount of {name}") from None


def card_count(where: str, count: int) -> int:
    """Return the number of cards; raises BadRegister where no node has so many."""
    if count > _MOST:
        raise BadRegister(f"{where} says more than {_MOST} GPUs")
    return count


def check_health(node: core_v1.Node, resource: str) -> None:
    """Raise BadRegister where some of the node's cards are unhealthy and nothing says which."""
    total, healthy = amount(node.status.capacity, resource), amount(node.status.allocatable, resource)
    if total is not None and healthy is not None and healthy < total:
        raise BadRegister(f"less of {resource} is allocatable than there is, and nothing says which GPU is unhealthy")
