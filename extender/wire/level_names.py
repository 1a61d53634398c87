"""How is a level of the network named in an annotation? By a label key, or by a word."""

import re
from collections.abc import Mapping

from extender.model.claim import Ignored
from extender.model.topology import LevelName, NameKind

_LABEL_KEY = re.compile(r"([a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")
_SHOWN = 63
"""Characters of a bad value that are shown: an annotation may hold 256 KiB."""


class LevelReader:
    """Reads levels from annotations; `ignored` is what makes no sense there."""

    def __init__(self, annotations: Mapping[str, str], kind: NameKind = "name or label") -> None:
        self._annotations = annotations
        self._kind: NameKind = kind
        self.ignored: tuple[Ignored, ...] = ()

    def level(self, key: str) -> tuple[LevelName, ...] | None:
        """Return the level that the annotation names."""
        text = self._annotations.get(key)
        if text is None:
            return None
        if _LABEL_KEY.fullmatch(text):
            return (LevelName(text, self._kind),)
        wanted = "the key of a node label" if self._kind == "label" else "a level's name or the key of a node label"
        self.ignored = (*self.ignored, Ignored(f"annotation {key}", text[:_SHOWN], wanted))
        return None
