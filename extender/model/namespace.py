"""A namespace: pods' affinity terms may select namespaces by label."""

from collections.abc import Mapping

from msgspec import Struct


class Namespace(Struct, frozen=True):
    """A namespace with its labels."""

    name: str
    labels: Mapping[str, str] = {}
