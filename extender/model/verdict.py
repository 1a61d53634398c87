"""Reasons and verdicts as data; `decide/explain.py` and `node_reasons.py` alone put them into words."""

from collections.abc import Mapping
from typing import TypeAlias

from msgspec import Struct

from extender.model.claim import GangKey
from extender.model.device import CardDialect, CardShare
from extender.model.member import AnyMember
from extender.model.node import Taint
from extender.model.pod import Occupant, PodShape, PodUid, Tags


class Cordoned(Struct, frozen=True, gc=False):
    """The node is unschedulable (kube-scheduler's NodeUnschedulable)."""


class UntoleratedTaint(Struct, frozen=True, gc=False):
    """The node has a NoSchedule or NoExecute taint that the pod does not tolerate (TaintToleration)."""

    taint: Taint


class AffinityMismatch(Struct, frozen=True, gc=False):
    """The node does not match the node selector or the required node affinity (NodeAffinity)."""


class PortsTaken(Struct, frozen=True, gc=False):
    """A host port is in use (NodePorts)."""


class Insufficient(Struct, frozen=True, gc=False):
    """Too little of one resource is free (NodeResourcesFit), in the units of `model.resources`."""

    resource: str
    requested: int
    free: int


class VolumeElsewhere(Struct, frozen=True, gc=False):
    """The node does not match the required node affinity of a volume (VolumeBinding)."""


class NoVolumeZone(Struct, frozen=True, gc=False):
    """The node is in another zone or region than a volume (VolumeZone)."""


class SpreadLabelMissing(Struct, frozen=True, gc=False):
    """The node lacks the label that a spread constraint is about (PodTopologySpread)."""


class SpreadTooUneven(Struct, frozen=True, gc=False):
    """One more pod on the node would exceed a spread constraint's maxSkew (PodTopologySpread)."""


class PodAffinityUnmet(Struct, frozen=True, gc=False):
    """The pods that the pod wants beside it are not there (InterPodAffinity)."""


class PodAntiAffinityViolated(Struct, frozen=True, gc=False):
    """A pod that this one must not be beside is there (InterPodAffinity)."""


class RepelledByPods(Struct, frozen=True, gc=False):
    """A pod there must not have this one beside it (InterPodAffinity)."""


class CardRequestBad(Struct, frozen=True, gc=False):
    """What the pod asks of GPUs makes no sense; `problem` says why."""

    problem: str


class CardsNotServed(Struct, frozen=True, gc=False):
    """No GPU of the node is handed out in the terms in which the pod asks for it."""

    dialect: CardDialect


class CardsUnreadable(Struct, frozen=True, gc=False):
    """What is said of the node's GPUs makes no sense, so that none can be chosen; `problem` says what of it."""

    problem: str


class CardsHandedOutWhole(Struct, frozen=True, gc=False):
    """The kubelet has picked GPUs for pods on the node, so that nobody knows which of them are free to be chosen."""


class CardsChosen(Struct, frozen=True, gc=False):
    """GPUs of the node are chosen for pods, so that the kubelet must not pick any there: it does not know which."""


class NoCardMatches(Struct, frozen=True, gc=False):
    """No healthy GPU of the node is of the model, has the UUID, or is as large as the pod wants."""


class TooLittleOfCards(Struct, frozen=True, gc=False):
    """Too little is free on any GPU of the node, or on too few of them."""


class Refused(Struct, frozen=True, gc=False):
    """kube-scheduler's own filters said no to this node a short while ago."""


Relation: TypeAlias = SpreadLabelMissing | SpreadTooUneven | PodAffinityUnmet | PodAntiAffinityViolated | RepelledByPods
"""Why the pods that are there, rather than the node itself, keep a pod off."""

CardReason: TypeAlias = (
    CardRequestBad
    | CardsNotServed
    | CardsUnreadable
    | CardsHandedOutWhole
    | CardsChosen
    | NoCardMatches
    | TooLittleOfCards
)
"""Why a node's GPUs are not for the pod, of which kube-scheduler knows nothing."""

Reason: TypeAlias = (
    Cordoned
    | UntoleratedTaint
    | AffinityMismatch
    | PortsTaken
    | Insufficient
    | CardReason
    | VolumeElsewhere
    | NoVolumeZone
    | Relation
    | Refused
)


class Placement(Struct, frozen=True, gc=False):
    """Room for one member on one node, on these of its cards if it asks for any that are ours to choose."""

    node: str
    member: AnyMember
    cards: tuple[CardShare, ...] = ()

    @property
    def shape(self) -> PodShape:
        """What the member asks for."""
        return self.member.shape

    @property
    def role(self) -> str:
        """The member's role in its job."""
        return self.member.role

    @property
    def uid(self) -> PodUid:
        """The member's UID; NOBODY while it does not exist yet."""
        return self.member.uid

    @property
    def tags(self) -> Tags:
        """What selectors find the member by; a guess while it does not exist yet."""
        return self.member.tags

    @property
    def occupant(self) -> Occupant:
        """What it is to its node and its neighbours."""
        return Occupant(self.shape, self.tags, cards=self.cards)


class Placed(Struct, frozen=True, gc=False):
    """The gang fits: a placement for each member that needed one."""

    placements: tuple[Placement, ...]


class Gathering(Struct, frozen=True, gc=False):
    """Too few members exist, and what the absent ones need is not known.

    `role` is the one whose minimum is not reached; empty where `least` is min-available.
    """

    least: int
    role: str = ""


class NoRoom(Struct, frozen=True):
    """The gang does not fit.

    `member` names a pod that found no node once those before it were placed; it is empty when that one does not exist
    yet. `reasons` says for every node of the cluster why this member does not fit there beside its siblings. `found` is
    how many found room. Where `needed` members must be in one domain of a `level` all this is about the domain that
    takes most.
    """

    member: str
    reasons: Mapping[str, tuple[Reason, ...]]
    found: int = 0
    level: str = ""
    needed: int = 0


class WaitsForGang(Struct, frozen=True, gc=False):
    """The gang fits, but is bound together with another one, which does not or is not there."""

    other: GangKey


class Preempting(Struct, frozen=True, gc=False):
    """The gang fits as soon as pods of lower priority are gone that are killed for it."""


Admission: TypeAlias = Placed | Gathering | NoRoom | WaitsForGang | Preempting
