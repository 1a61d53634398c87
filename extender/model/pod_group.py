"""A PodGroup object, of whichever scheduler's API."""

from typing import Final

from msgspec import Struct

from extender.model.claim import GangKey, Terms

UPSTREAM: Final = "scheduling.k8s.io"
KOORDINATOR: Final = "scheduling.sigs.k8s.io"
SCHEDULER_PLUGINS: Final = "scheduling.x-k8s.io"
VOLCANO: Final = "scheduling.volcano.sh"


class PodGroup(Struct, frozen=True):
    """The gang that the object of API group `api` declares, under the object's own name.

    `min_available` is None where it does not say, and 0 where it says that its pods need not run together.
    `role_minimums` has how many members of a role are needed, sorted by role.
    """

    api: str
    key: GangKey
    min_available: int | None = None
    terms: Terms = Terms()
    role_minimums: tuple[tuple[str, int], ...] = ()
