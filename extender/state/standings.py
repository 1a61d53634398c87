"""What is each waiting gang told, and who has heard it?

A rejection's text is a signal: kube-scheduler tries a pod again at once when it changes. So a gang has one text for
all its members, and numbers in it change at most once in `TEXT_HOLDS_S`.
"""

from msgspec import Struct

from extender.model.claim import GangKey
from extender.model.pod import PodUid

TEXT_HOLDS_S = 300.0
"""After so long kube-scheduler tries any pod again by itself. A new text costs a write to the status and an Event for
each member that waits: with 2,000, and new numbers every ten seconds, other gangs were bound 2.6 times slower."""


class Standing(Struct, frozen=True):
    """Why a gang waits; `kind` is the same while the verdict and its causes are, whatever numbers its text has."""

    kind: str
    text: str
    since_s: float


class Standings:
    """The standing of each waiting gang, and the text that each member was last given."""

    def __init__(self) -> None:
        self._by_gang: dict[GangKey, Standing] = {}
        self._told: dict[PodUid, str] = {}

    def get(self, key: GangKey) -> Standing | None:
        """Return the gang's standing; None when it is not kept waiting."""
        return self._by_gang.get(key)

    def is_due(self, key: GangKey, kind: str, now_s: float) -> bool:
        """Whether a gang may be told something new; new numbers of the same causes are held back for a while."""
        known = self._by_gang.get(key)
        return known is None or known.kind != kind or now_s >= known.since_s + TEXT_HOLDS_S

    def put(self, key: GangKey, standing: Standing) -> None:
        """Note why a gang waits."""
        self._by_gang[key] = standing

    def drop(self, key: GangKey) -> None:
        """Forget a gang that waits no longer."""
        self._by_gang.pop(key, None)

    def tell(self, uid: PodUid, text: str) -> None:
        """Note that a member is told this."""
        self._told[uid] = text

    def heard(self, uid: PodUid) -> bool:
        """Whether the member was turned away by us, and so sleeps until it is woken."""
        return uid in self._told

    def told(self, uid: PodUid) -> str | None:
        """Return what the member was told when it was last turned away by us."""
        return self._told.get(uid)

    def forget(self, uid: PodUid) -> None:
        """Forget what a pod was told."""
        self._told.pop(uid, None)
