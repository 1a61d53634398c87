"""How does Kubernetes write a moment to the microsecond, as Leases and Events have it?"""

from datetime import UTC, datetime


def micro_time(epoch_s: float) -> str:
    """Return seconds since the epoch as a MicroTime."""
    return datetime.fromtimestamp(epoch_s, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
