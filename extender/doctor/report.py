"""How is the answer shown, to a person and to a program, and what is the exit status?"""

import textwrap
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

import orjson
from msgspec import structs

from extender.doctor.finding import Finding, Level

HEALTHY: Final = 0
ERRORS: Final = 1
NOTHING_SEEN: Final = 2

_LEVELS: Final[tuple[Level, ...]] = ("error", "warning", "unknown", "ok")


def exit_status(findings: Sequence[Finding]) -> int:
    """Return 0 without errors, 1 with some; what is unknown is no error."""
    return ERRORS if any(finding.level == "error" for finding in findings) else HEALTHY


def as_text(findings: Sequence[Finding]) -> str:
    """Return a line for each check, and for each that is not ok what it is, where, and its mend."""
    counts = Counter(finding.level for finding in findings)
    total = ", ".join(f"{counts[level]} {level}" for level in _LEVELS)
    return "\n".join([*(line for finding in findings for line in _lines(finding)), f"{len(findings)} checks: {total}"])


def as_json(findings: Sequence[Finding]) -> str:
    """Return the same as JSON: `{"findings": [...], "exit": 0}`."""
    content = {"findings": [structs.asdict(finding) for finding in findings], "exit": exit_status(findings)}
    return orjson.dumps(content, option=orjson.OPT_INDENT_2).decode()


def _lines(finding: Finding) -> Iterator[str]:
    if finding.level == "ok":
        yield f"{'ok':<8} {finding.check}" + (f" ({finding.where})" if finding.where else "")
        return
    yield f"{finding.level:<8} {finding.check}: {finding.what}"
    for label, text in (("where", finding.where), ("mend", finding.mend)):
        if text:
            yield textwrap.indent(f"{label + ':':<7}{text.replace(chr(10), chr(10) + ' ' * 7)}", " " * 9)
