"""Something worth an Event, as data."""

from typing import Literal

from msgspec import Struct

from extender.model.pod import Pod


class Announcement(Struct, frozen=True):
    """An Event to write on `pod`; `reason` and `action` are CamelCase as Kubernetes wants them."""

    pod: Pod
    kind: Literal["Normal", "Warning"]
    reason: str
    action: str
    note: str
