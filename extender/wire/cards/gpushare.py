"""Alibaba Cloud's gpushare: memory of one GPU, for the pod as a whole.

The unit is the device plugin's (GiB by default, MiB if it is told so), on nodes as on pods. It is taken for GiB on
both, so that what fits does not depend on it.
"""

from typing import Final

from extender.model.device import CardDialect, CardNeed, CardRequest
from extender.wire import core_v1
from extender.wire.cards.amounts import GIB
from extender.wire.cards.asked import asked_by_pod, containers_of

GPUSHARE_MEMORY: Final = "aliyun.com/gpu-mem"
UNIT_BYTES: Final = GIB
KEYS: Final = frozenset({GPUSHARE_MEMORY})


def gpushare_cards(pod: core_v1.Pod) -> CardRequest:
    """Return the request; raises BadCards."""
    place, amounts = asked_by_pod(pod, KEYS)
    need = CardNeed(memory_bytes=amounts[GPUSHARE_MEMORY] * UNIT_BYTES, container=place)
    return CardRequest(CardDialect.GPUSHARE, (need,), containers=len(containers_of(pod)))
