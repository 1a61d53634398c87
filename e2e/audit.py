"""Has anything that we lock a known vulnerability, and what is in the image? `make audit`.

pip-audit finds nothing where nobody answers, and says so in the words of a clean audit. So its report is read here,
package by package: what was not looked up counts as not audited, and is never passed over in silence.
"""

import argparse
import subprocess
import sys
from pathlib import Path
from typing import Any

import orjson
from msgspec import Struct

_ROOT = Path(__file__).parent.parent
_LOCKS = ("requirements.txt", "requirements-dev.txt")
"""What is in the image, and what builds and tests it. The Go modules of e2e/ are not looked at: they make the control
plane that tests run on, and nothing of them is installed anywhere."""

_ANSWER_S = 10
"""For one package; a service that needs longer for one is not there for all."""

_AUDIT_S = 300

VULNERABLE = 1
NOT_AUDITED = 3


class Audit(Struct, frozen=True):
    """What came of one lock: known vulnerabilities, and what was not looked up, each as a line of text."""

    packages: int
    vulnerabilities: list[str]
    unanswered: list[str]


def main() -> int:
    """Write the bill of materials, audit every lock, say what came of it and return the exit status."""
    options = _parser().parse_args()
    _write_bill_of_materials(options.bill)
    return judge({lock: _audit(lock) for lock in _LOCKS}, may_be_unanswered=options.may_be_unanswered)


def judge(audits: dict[str, Audit], *, may_be_unanswered: bool) -> int:
    """Say what came of the audits, and return the exit status: 0 only where everything was looked up and is clean."""
    status = 0
    for lock, audit in audits.items():
        for each in audit.vulnerabilities:
            status = VULNERABLE
            print(f"VULNERABLE: {lock}: {each}")
        if audit.unanswered:
            status = status or (0 if may_be_unanswered else NOT_AUDITED)
            missed = f"{len(audit.unanswered)} of {audit.packages}"
            print(f"NOT AUDITED: {lock}: no answer from PyPI's vulnerability service for {missed} packages")
            print(f"  the first one: {audit.unanswered[0]}")
        elif not audit.vulnerabilities:
            print(f"audited: {lock}: {audit.packages} packages without a known vulnerability")
    return status


def read(report: bytes, complaints: str) -> Audit:
    """Read pip-audit's report; without one, nothing was audited."""
    try:
        found: list[dict[str, Any]] = orjson.loads(report)["dependencies"]
    except (orjson.JSONDecodeError, KeyError):
        return Audit(0, [], [(complaints.strip().splitlines() or ["pip-audit said nothing"])[-1]])
    return Audit(
        packages=len(found),
        vulnerabilities=[_line(package, each) for package in found for each in package.get("vulns", ())],
        unanswered=[package["skip_reason"] for package in found if "vulns" not in package]
        or ([] if found else ["the lock names no package"]),
    )


def _line(package: dict[str, Any], vulnerability: dict[str, Any]) -> str:
    mended = ", ".join(vulnerability["fix_versions"]) or "none yet"
    return f"{package['name']} {package['version']}: {vulnerability['id']}, mended in: {mended}"


def _audit(lock: str) -> Audit:
    flags = ["--disable-pip", "--require-hashes", "--progress-spinner=off", "--format=json", f"--timeout={_ANSWER_S}"]
    command = [str(Path(sys.executable).with_name("pip-audit")), *flags, "-r", str(_ROOT / lock)]
    try:
        done = subprocess.run(command, capture_output=True, check=False, timeout=_AUDIT_S)
    except subprocess.TimeoutExpired:
        return Audit(0, [], [f"pip-audit did not end within {_AUDIT_S} s"])
    return read(done.stdout, done.stderr.decode())


def _write_bill_of_materials(path: Path) -> None:
    """Write what the image may hold, as a CycloneDX SBOM: each package with its version and the hashes of its files."""
    path.parent.mkdir(parents=True, exist_ok=True)
    program = Path(sys.executable).with_name("cyclonedx-py")
    files = ["requirements.txt", "--pyproject", "pyproject.toml", "-o", str(path.absolute())]
    # It warns that a lock says nothing of who needs whom, which is so.
    command = [sys.executable, "-W", "ignore", str(program), "requirements", "--output-reproducible", *files]
    subprocess.run(command, check=True, cwd=_ROOT)
    print(f"the bill of materials is in {path}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m e2e.audit", description=__doc__)
    parser.add_argument("--bill", type=Path, default=Path(".cache/sbom.cdx.json"), help="where the SBOM is written")
    parser.add_argument(
        "--may-be-unanswered",
        action="store_true",
        help="let no answer pass, for machines that reach no such service; it is said all the same",
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
