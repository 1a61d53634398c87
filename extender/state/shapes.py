"""One shape for all pods that ask for the same.

A template's pods then keep one shape in memory instead of one each, and are told alike without comparing them.
"""

from typing import Final

from cachetools import LRUCache
from msgspec import structs

from extender.model.pod import Pod, PodShape

_TEMPLATES: Final = 4096
"""Shapes seen lately, at about 1 kB each; one that is forgotten is kept twice, no more."""


class Shapes:
    """The shapes that are shared."""

    def __init__(self) -> None:
        self._known: LRUCache[PodShape, PodShape] = LRUCache(_TEMPLATES)

    def share(self, pod: Pod) -> Pod:
        """Return the pod with the shape that others of its kind have."""
        shape = self._known.get(pod.shape)
        if shape is None:
            self._known[pod.shape] = shape = pod.shape
        return pod if shape is pod.shape else structs.replace(pod, shape=shape)
