"""Of which class is a request? Named by what it asks for, so that rules can name it: `api POST pods/binding`.

The API server's methods are told apart as its RBAC does: GET of one object, LIST and WATCH of a collection.
"""

from collections.abc import Sequence

from msgspec import Struct

from e2e.faults.rules import Where


class Call(Struct, frozen=True):
    """A request on its way through the proxy; `name` is the object's, where the path names one."""

    where: Where
    method: str
    path: str
    resource: str
    name: str = ""
    body: bytes = b""

    @property
    def of_class(self) -> str:
        """The class whose draws it takes part in."""
        return f"{self.where} {self.method} {self.resource}"

    @property
    def of_lines(self) -> str:
        """The class of the lines that answer it, where it is a watch."""
        return f"{self.where} LINE {self.resource}"


def call_of(where: Where, method: str, path: str, body: bytes = b"", *, watches: bool = False) -> Call:
    """Read a request; `path` is without the query."""
    parts = [part for part in path.split("/") if part]
    if where == "verbs":
        return Call(where, method, path, parts[-1] if parts else "", body=body)
    resource, name = _resource_of(parts)
    if method == "GET" and not name:
        method = "WATCH" if watches else "LIST"
    return Call(where, method, path, resource, name, body)


def _resource_of(parts: Sequence[str]) -> tuple[str, str]:
    """Return `pods` or `pods/binding`, and the object's name."""
    rest = parts[2:] if parts[:1] == ["api"] else parts[3:]
    if rest[:1] == ["namespaces"] and len(rest) > 2:
        rest = rest[2:]
    name = rest[1] if len(rest) > 1 else ""
    return "/".join([*rest[:1], *rest[2:]]), name
