"""Does an audit that nobody answered ever look like a clean one?"""

from typing import Any

import orjson
import pytest

from e2e.audit import NOT_AUDITED, VULNERABLE, judge, read

CLEAN = {"name": "a", "version": "1", "vulns": []}
HOLED = {"name": "b", "version": "2", "vulns": [{"id": "PYSEC-1", "fix_versions": ["3"], "aliases": []}]}
SKIPPED = {"name": "c", "skip_reason": "Dependency not found on PyPI and could not be audited: c (3)"}


def said(capsys: pytest.CaptureFixture[str], *packages: dict[str, Any], lenient: bool = False) -> tuple[int, str]:
    report = orjson.dumps({"dependencies": packages, "fixes": []})
    status = judge({"requirements.txt": read(report, "")}, may_be_unanswered=lenient)
    return status, capsys.readouterr().out


def test_a_clean_audit_says_of_how_many(capsys: pytest.CaptureFixture[str]) -> None:
    expected = "audited: requirements.txt: 2 packages without a known vulnerability\n"
    assert said(capsys, CLEAN, CLEAN) == (0, expected)


@pytest.mark.parametrize("lenient", [False, True])
def test_a_known_vulnerability_fails_it_in_any_case(capsys: pytest.CaptureFixture[str], *, lenient: bool) -> None:
    status, text = said(capsys, SKIPPED, HOLED, lenient=lenient)
    assert status == VULNERABLE
    assert "VULNERABLE: requirements.txt: b 2: PYSEC-1, mended in: 3\n" in text


@pytest.mark.parametrize(("lenient", "expected"), [(False, NOT_AUDITED), (True, 0)])
def test_what_was_not_looked_up_is_said_and_fails_it_unless_that_is_allowed(
    capsys: pytest.CaptureFixture[str], *, lenient: bool, expected: int
) -> None:
    status, text = said(capsys, CLEAN, SKIPPED, lenient=lenient)
    assert status == expected
    assert text.startswith("NOT AUDITED: requirements.txt: no answer from PyPI's vulnerability service for 1 of 2 pack")
    assert "without a known vulnerability" not in text


@pytest.mark.parametrize("report", [b"", b"oops", b"{}", b'{"dependencies": []}'])
def test_no_report_is_no_audit(report: bytes) -> None:
    audit = read(report, "WARNING: x\nERROR: the service is away\n")
    assert audit.unanswered
    assert judge({"requirements.txt": audit}, may_be_unanswered=False) == NOT_AUDITED
