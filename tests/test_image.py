"""Is the image what the manifests expect? The Dockerfile is read here, and linted by `make lint`; it is not built."""

import json
import re
import shlex
import tomllib

import pytest

from tests.manifests.files import ROOT, container, pod_spec

Stage = list[tuple[str, str]]
"""(instruction, its arguments) in order; the first is FROM."""


def stages() -> list[Stage]:
    """Return the Dockerfile's stages."""
    text = re.sub(r"^\s*#.*\n", "", (ROOT / "Dockerfile").read_text(), flags=re.MULTILINE).replace("\\\n", " ")
    result: list[Stage] = []
    for line in filter(str.strip, text.splitlines()):
        instruction, arguments = line.split(maxsplit=1)
        if instruction == "FROM":
            result.append([])
        result[-1].append((instruction, arguments))
    return result


def last(instruction: str) -> str:
    """Return the arguments of the last such instruction of the image itself."""
    return [arguments for name, arguments in stages()[-1] if name == instruction][-1]


def test_both_stages_start_from_the_same_exact_version() -> None:
    bases = {stage[0][1].split()[0] for stage in stages()}
    assert len(stages()) == 2
    assert len(bases) == 1
    assert re.fullmatch(r"python:3\.\d+\.\d+-slim-\w+(@sha256:[0-9a-f]{64})?", bases.pop())


def test_whatever_is_installed_was_hashed_in_a_lock_or_built_here() -> None:
    installs = [
        command
        for stage in stages()
        for instruction, arguments in stage
        if instruction == "RUN"
        for command in arguments.split("&&")
        if re.search(r"\binstall\b", command)
    ]
    assert len(installs) == 3
    assert [c for c in installs if "--require-hashes" not in c and "--no-deps --no-index /dist/*.whl" not in c] == []


def test_the_image_has_no_installer_and_runs_none() -> None:
    commands = [arguments for instruction, arguments in stages()[-1] if instruction == "RUN"]
    assert len(commands) == 1
    assert "pip uninstall --yes" in commands[0]
    assert "ensurepip" in commands[0]


def test_it_runs_as_the_user_that_the_pod_runs_as() -> None:
    assert last("USER") == f"{pod_spec()['securityContext']['runAsUser']}:{pod_spec()['securityContext']['runAsGroup']}"


def test_it_starts_the_extender_without_a_shell_and_as_the_pod_does() -> None:
    assert json.loads(last("ENTRYPOINT")) == ["/opt/gang-extender/bin/gang-extender"]
    assert json.loads(last("CMD")) == container("extender")["args"]


def test_a_crash_leaves_its_stack_in_the_log() -> None:
    settings = dict(setting.split("=") for setting in shlex.split(last("ENV")))
    assert settings["PYTHONFAULTHANDLER"] == "1"
    assert settings["PYTHONUNBUFFERED"] == "1"


@pytest.mark.parametrize(("label", "key"), [("version", "version"), ("description", "description"), ("title", "name")])
def test_its_labels_say_what_the_project_says(label: str, key: str) -> None:
    labels = dict(pair.split("=", 1) for pair in shlex.split(last("LABEL")))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert labels[f"org.opencontainers.image.{label}"] == project[key]


def test_only_what_the_image_is_made_from_is_sent_to_the_builder() -> None:
    allowed = [line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")]
    copied = {
        name.removeprefix("./")
        for instruction, arguments in stages()[0]
        if instruction == "COPY"
        for name in arguments.split()[:-1]
    }
    assert set(allowed) == copied
