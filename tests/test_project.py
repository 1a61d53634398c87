"""Does the repository keep its own rules, those that no linter knows?"""

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).parents[1]
CODE = ("extender", "e2e")
FOLDERS = {".ci", "e2e", "extender", "manifests", "scheduler-config", "tests"}
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

MACHINE_PATH = re.compile(r"(?<![\w.~*-])/(?:root|home|Users|work)/[\w.]")


@cache
def tracked_files() -> tuple[Path, ...]:
    """Return the repository's files, without what it ignores."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout  # noqa: S603 - constant
    return tuple(path for name in names.split("\0") if name and (path := ROOT / name).is_file())


def modules() -> Iterator[Path]:
    """Yield the Python files that are held to a size."""
    return (path for folder in CODE for path in (ROOT / folder).rglob("*.py"))


def test_the_map_of_the_code_names_only_what_is_there() -> None:
    text = (ROOT / "extender" / "README.md").read_text()
    paths = re.findall(r"`(\w[\w./-]*(?:/|\.(?:py|md|yaml|toml)))`", text)
    missing = [path for path in paths if not any((base / path).exists() for base in (ROOT, ROOT / "extender"))]
    assert len(paths) > 10, "the map names hardly any file: is it still a map?"
    assert not missing


def test_every_package_of_the_extender_is_on_the_map() -> None:
    text = (ROOT / "extender" / "README.md").read_text()
    packages = [folder.name for folder in (ROOT / "extender").iterdir() if (folder / "__init__.py").exists()]
    assert [name for name in packages if f"{name}/" not in text] == []


def test_files_stay_short_enough_to_be_read_at_once() -> None:
    assert [str(path) for path in modules() if len(path.read_text().splitlines()) > 400] == []


def test_functions_do_one_thing() -> None:
    long = [
        f"{path.relative_to(ROOT)}:{node.lineno} {node.name}"
        for path in modules()
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (node.end_lineno or node.lineno) - node.lineno >= 50
    ]
    assert long == []


def test_no_file_names_a_path_that_only_one_machine_has() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in tracked_files()
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if MACHINE_PATH.search(line)
    ]
    assert found == []


def test_the_locked_requirements_name_no_index() -> None:
    texts = [path.read_text() for path in sorted(ROOT.glob("requirements*.txt"))]
    assert len(texts) == 2
    assert [text for text in texts if "://" in text or "--index" in text or "--find-links" in text] == []


def test_there_are_no_folders_but_those_of_the_layout() -> None:
    folders = {path.relative_to(ROOT).parts[0] for path in tracked_files() if path.parent != ROOT}
    assert folders <= FOLDERS


def test_the_command_says_which_version_it_is() -> None:
    command = Path(sys.executable).parent / "gang-extender"
    said = subprocess.run([command, "--version"], check=True, capture_output=True, text=True).stdout  # noqa: S603 - ours
    assert said.split()[-1] == PROJECT["version"]


def test_the_version_is_installed_and_in_the_changelog() -> None:
    assert version("gang-extender") == PROJECT["version"]
    assert f"\n## {PROJECT['version']}" in (ROOT / "CHANGELOG.md").read_text()
