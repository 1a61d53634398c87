"""Which settings of kube-scheduler are compared?

Those that say how soon a rejected pod is tried again. Everything else is as scheduler-config/dedicated.yaml has it.
"""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

_WAIT_OUT_BACK_OFF = "--feature-gates=SchedulerPopFromBackoffQ=false"
"""By default kube-scheduler ends a pod's back-off early whenever it has nothing else to do."""


class Variant(Struct, frozen=True):
    """What differs from the repository's file."""

    settings: Mapping[str, Any] = {}
    flags: tuple[str, ...] = ()


VARIANTS: Mapping[str, Variant] = {
    "as shipped": Variant(),
    "initial 5 s": Variant({"podInitialBackoffSeconds": 5}),
    "max 60 s": Variant({"podMaxBackoffSeconds": 60}),
    "waits out": Variant(flags=(_WAIT_OUT_BACK_OFF,)),
    "waits out, max 2 s": Variant({"podMaxBackoffSeconds": 2}, (_WAIT_OUT_BACK_OFF,)),
    "waits out, max 60 s": Variant({"podMaxBackoffSeconds": 60}, (_WAIT_OUT_BACK_OFF,)),
}
