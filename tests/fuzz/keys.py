"""By which keys is anything read? Collected from the code that reads, so that a new dialect is fuzzed at once.

Every string that stands in a module of `wire/`, as a literal or in a constant that is put together from others, is a
key if it looks like one. Which fields of objects are read, the types that they are decoded to say (`objects.py`).
"""

import ast
import importlib
import pkgutil
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path

import msgspec

import extender.wire

_KEY = re.compile(r"([a-z0-9.-]+/)?[A-Za-z_][A-Za-z0-9._-]{1,62}")


@cache
def keys() -> tuple[str, ...]:
    """Return all that may be the key of an annotation, a label or a resource."""
    found: set[str] = set()
    for module in pkgutil.walk_packages(extender.wire.__path__, "extender.wire."):
        loaded = importlib.import_module(module.name)
        assert loaded.__file__ is not None
        found.update(_literals(Path(loaded.__file__)))
        for name, value in vars(loaded).items():
            if name.strip("_").isupper() or name.strip("_").replace("_", "").isupper():
                found.update(_strings(value))
    return tuple(sorted(text for text in found if _KEY.fullmatch(text)))


def _literals(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield f"{value}"  # members of an enumeration are more than texts
    elif isinstance(value, msgspec.Struct):
        yield from _strings(tuple(getattr(value, field) for field in value.__struct_fields__))
    elif isinstance(value, Mapping):
        yield from _strings([*value.keys(), *value.values()])
    elif isinstance(value, (tuple, list, set, frozenset)):
        yield from (text for each in _plain(value) for text in _strings(each))


def _plain(values: Iterable[object]) -> Iterable[object]:
    return (each for each in values if not callable(each))
