"""Packing members that have not been grouped yet."""

from collections.abc import Sequence
from typing import Any

from extender.decide.alike import group_alike
from extender.decide.packing import Packing, pack_gang
from extender.model.member import Member
from extender.model.snapshot import Snapshot


def pack(members: Sequence[Member], snapshot: Snapshot, **asked: Any) -> Packing:
    """Return the packing of these members; for what else is asked see `pack_gang`."""
    return pack_gang(group_alike(members, snapshot), snapshot, **asked)
