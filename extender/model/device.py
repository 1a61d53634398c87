"""GPU cards: what a node has of them, what a pod asks of them, and which it was given.

Amounts are integers: a card is 1,000 milli-GPU, memory is in bytes.
"""

from collections.abc import Iterable, Mapping
from enum import StrEnum

from msgspec import Struct

WHOLE_MILLI = 1000
"""All of one card."""

NVIDIA_GPU = "nvidia.com/gpu"
"""The one resource for whole cards that device managers give a meaning of their own."""


class CardManager(StrEnum):
    """Who takes the cards of a node to the containers."""

    OWN = "own"
    """Nobody but the kubelet's device plugin, which picks whole cards itself; shares of a card reach their container as
    NVIDIA_VISIBLE_DEVICES, by the choice that we write on the pod."""
    HAMI = "HAMi"
    GPUSHARE = "gpushare"
    VOLCANO_VGPU = "volcano-vgpu"
    VOLCANO_GPU = "Volcano GPU sharing"
    KOORDINATOR = "Koordinator"


class CardDialect(StrEnum):
    """In which system's terms a pod asks for cards."""

    WHOLE = "whole GPUs"
    HAMI = "HAMi"
    GPUSHARE = "gpushare"
    VOLCANO_VGPU = "Volcano vGPU"
    VOLCANO_GPU = "Volcano GPU sharing"
    KOORDINATOR = "Koordinator"
    KUBESHARE_1 = "KubeShare 1"
    KUBESHARE_2 = "KubeShare 2"
    KAI = "KAI"


CHOICES = {
    CardManager.OWN: frozenset({CardDialect.KUBESHARE_1, CardDialect.KUBESHARE_2, CardDialect.KAI}),
    CardManager.HAMI: frozenset({CardDialect.WHOLE, CardDialect.HAMI}),
    CardManager.GPUSHARE: frozenset({CardDialect.GPUSHARE}),
    CardManager.VOLCANO_VGPU: frozenset({CardDialect.VOLCANO_VGPU}),
    CardManager.VOLCANO_GPU: frozenset({CardDialect.VOLCANO_GPU}),
    CardManager.KOORDINATOR: frozenset({CardDialect.WHOLE, CardDialect.KOORDINATOR}),
}
"""Whose cards are ours to choose: in these terms a pod may ask on a node of this manager, and it heeds what we write.
Whole GPUs go elsewhere, too, but there the kubelet picks them."""


class Card(Struct, frozen=True, gc=False):
    """One GPU of a node.

    `memory_bytes` is 0 where nobody says it, `numa` -1. At most `slots` pods share it, any number where that is 0.
    `links` say how near other cards are, by their key: more is nearer. `mode` is how its plugin shares it, empty where
    nobody says it.
    """

    index: int
    uuid: str = ""
    memory_bytes: int = 0
    core_milli: int = WHOLE_MILLI
    model: str = ""
    healthy: bool = True
    numa: int = -1
    slots: int = 0
    links: tuple[tuple[str, int], ...] = ()
    mode: str = ""

    @property
    def key(self) -> str:
        """What it is known by on its node."""
        return self.uuid or str(self.index)


class CardShare(Struct, frozen=True, gc=False):
    """So much of one card, given to a container (its place among init containers and containers, in this order).

    `uuid` is empty where only the index is known, `index` is -1 where only the UUID is.
    """

    index: int
    uuid: str = ""
    core_milli: int = 0
    memory_bytes: int = 0
    container: int = 0


def amounts_of(shares: Iterable[CardShare]) -> Mapping[str, tuple[int, int]]:
    """Return how much of the cores and of the memory is given of each card: the same however a manager wrote it."""
    amounts: dict[str, tuple[int, int]] = {}
    for share in shares:
        key = share.uuid or str(share.index)
        core_milli, memory_bytes = amounts.get(key, (0, 0))
        amounts[key] = core_milli + share.core_milli, memory_bytes + share.memory_bytes
    return amounts


class CardInventory(Struct, frozen=True, gc=False):
    """The cards of a node, by index, and who manages them.

    `kubelet_resources` are resources for which the kubelet hands out cards there: a pod with one of these, for which no
    cards were chosen, has some that nobody knows. `spread`: fractions go to the emptiest card, not to the fullest.
    With a `problem`, a clause, there are cards that cannot be used, and `cards` is empty.
    """

    manager: CardManager
    cards: tuple[Card, ...]
    kubelet_resources: frozenset[str] = frozenset()
    spread: bool = False
    problem: str = ""

    def key_of(self, share: CardShare) -> str:
        """Return the key of the card; one that is not there (any more) keeps its UUID as a key."""
        if share.uuid:
            return share.uuid
        return next((card.key for card in self.cards if card.index == share.index), str(share.index))


class NodeCards(Struct, frozen=True, gc=False):
    """What an object beside the node says of its cards; `inventory` is None where it names none."""

    node: str
    inventory: CardInventory | None = None


class CardPolicy(Struct, frozen=True):
    """What the configuration says of cards.

    `whole_resources` are the resources for which kubelets hand out whole cards; `memory_bytes` is that of a card by its
    model, for nodes that do not say it. `spread` is as in CardInventory.
    """

    whole_resources: frozenset[str] = frozenset({NVIDIA_GPU})
    memory_bytes: Mapping[str, int] = {}
    spread: bool = False


class CardUse(Struct, frozen=True, gc=False):
    """What pods take of one card, and how many shares they are."""

    core_milli: int = 0
    memory_bytes: int = 0
    shares: int = 0

    def plus(self, share: CardShare, sign: int) -> "CardUse":
        """Return it with a share more, or less where `sign` is -1."""
        return CardUse(
            self.core_milli + sign * share.core_milli,
            self.memory_bytes + sign * share.memory_bytes,
            self.shares + sign,
        )


class CardNeed(Struct, frozen=True, gc=False):
    """What one container asks for: `count` different cards, and this much of each.

    Memory is asked for in bytes, or in thousandths of the card's; then it is rounded down to whole `memory_unit`s, as
    the managers do. `container` is as in CardShare. With `idle` a card will do only while nobody has any of it.
    """

    count: int = 1
    core_milli: int = 0
    memory_bytes: int = 0
    memory_milli: int = 0
    memory_unit: int = 1
    container: int = 0
    idle: bool = False


class CardTerms(Struct, frozen=True, gc=False):
    """Which cards will do: models are compared as parts of the card's model, without regard to case, UUIDs whole.

    Without `models` or `uuids` any will do. `exact_model` is compared whole, and `mode` names those in which the cards
    may be shared; both are empty for any. `spread` is None where the pod does not say how to choose.
    """

    models: tuple[str, ...] = ()
    not_models: tuple[str, ...] = ()
    uuids: tuple[str, ...] = ()
    not_uuids: tuple[str, ...] = ()
    one_numa: bool = False
    spread: bool | None = None
    mode: str = ""
    exact_model: str = ""


class CardRequest(Struct, frozen=True, gc=False):
    """What a pod asks of cards, by container; a dialect that speaks of the pod as a whole has one need.

    `containers` are all that the pod has; the first `init_containers` of them are such. `limit_milli` is how much of a
    card the pod may use while nobody else does; it is not charged, and 0 where nobody says it.
    """

    dialect: CardDialect
    needs: tuple[CardNeed, ...]
    terms: CardTerms = CardTerms()
    containers: int = 1
    limit_milli: int = 0
    init_containers: int = 0


class BadCardRequest(Struct, frozen=True, gc=False):
    """A request for cards that cannot be honoured; `problem` is a clause for the pod's owner, without a full stop."""

    problem: str
