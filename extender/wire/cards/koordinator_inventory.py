"""Which cards does a Device object of Koordinator say that a node has? The node's is the object's name.

Mirrors scheduling.koordinator.sh/v1alpha1 Device.
"""

from collections.abc import Sequence
from typing import Final

from msgspec import Struct, field

from extender.model.device import Card, CardInventory, CardManager, CardPolicy, NodeCards
from extender.wire import core_v1
from extender.wire.cards.koordinator import CORE, GPU, KEYS, MEMORY
from extender.wire.cards.register import BadRegister, amount, unreadable

_MODEL: Final = "node.koordinator.sh/gpu-model"
_WHERE: Final = "the minor number of a GPU in its Device"
_PERCENT_MILLI: Final = 10


class _Wire(Struct, frozen=True, gc=False, rename="camel"):
    pass


class DeviceTopology(_Wire, frozen=True):
    """`topology` of a device; `nodeID` is that of the NUMA node."""

    node_id: int = field(name="nodeID", default=-1)


class DeviceInfo(_Wire, frozen=True):
    """One of `spec.devices`, a GPU or something else."""

    type: str = ""
    id: str = ""
    minor: int | None = None
    health: bool = False
    resources: core_v1.Quantities | None = None
    topology: DeviceTopology | None = None


class DeviceSpec(_Wire, frozen=True):
    """`spec` of a Device."""

    devices: tuple[DeviceInfo, ...] | None = None


class Device(_Wire, frozen=True):
    """A Device: all devices of one node."""

    metadata: core_v1.ObjectMeta
    spec: DeviceSpec = DeviceSpec()


def device_cards(device: Device, policy: CardPolicy) -> NodeCards:
    """Return the node's cards as Koordinator reports them."""
    name, model = device.metadata.name, (device.metadata.labels or {}).get(_MODEL, "")
    gpus = [info for info in device.spec.devices or () if info.type == "gpu"]
    if not gpus:
        return NodeCards(name)
    resources = policy.whole_resources | KEYS
    try:
        cards = _cards(gpus, model)
        problem = ""
    except BadRegister as bad:
        cards, problem = (), str(bad)
    return NodeCards(name, CardInventory(CardManager.KOORDINATOR, cards, resources, policy.spread, problem))


def _cards(gpus: Sequence[DeviceInfo], model: str) -> tuple[Card, ...]:
    cards = sorted((_card(gpu, model) for gpu in gpus), key=lambda card: card.index)
    if len({card.index for card in cards}) < len(cards):
        raise unreadable(_WHERE)
    return tuple(cards)


def _card(gpu: DeviceInfo, model: str) -> Card:
    if gpu.minor is None:
        raise unreadable(_WHERE)
    core = amount(gpu.resources, CORE)
    core = amount(gpu.resources, GPU) if core is None else core
    return Card(
        gpu.minor,
        gpu.id,
        amount(gpu.resources, MEMORY) or 0,
        (100 if core is None else core) * _PERCENT_MILLI,
        model,
        gpu.health,
        gpu.topology.node_id if gpu.topology else -1,
    )
