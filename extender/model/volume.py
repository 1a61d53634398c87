"""Claims and volumes, as far as they decide where a pod may go."""

from msgspec import Struct

from extender.model.pod import NodeSelectorTerm, PodUid


class VolumeClaim(Struct, frozen=True):
    """A PersistentVolumeClaim. `volume` is empty until it is bound for good; `made_for` is the pod that it belongs to.

    A claim that is `failing` is being deleted, or has lost its volume.
    """

    namespace: str
    name: str
    volume: str = ""
    made_for: PodUid = ""
    failing: bool = False
    single_pod: bool = False
    """Whether its access mode is ReadWriteOncePod."""

    @property
    def key(self) -> str:
        """Return `namespace/name`."""
        return claim_key(self.namespace, self.name)


class PersistentVolume(Struct, frozen=True):
    """A PersistentVolume. One of the `required_terms` must match a node, if there are any.

    `zones` are its labels that name a zone or region, with the values that a node may have there.
    """

    name: str
    required_terms: tuple[NodeSelectorTerm, ...] | None = None
    zones: tuple[tuple[str, frozenset[str]], ...] = ()
    counted: bool = False
    """Whether a driver may limit how many such volumes a node takes (CSI)."""

    migratable: bool = False
    """Whether it is of an old in-tree kind, which kube-scheduler translates before it looks at the node."""


def claim_key(namespace: str, name: str) -> str:
    """Return the key of a claim."""
    return f"{namespace}/{name}"
