"""Where do the control plane's binaries come from, and what is said when they cannot be had?"""

from pathlib import Path

import pytest

from e2e.build import BuildError, control_plane_binaries, kubernetes_version, training_operator_binary

NAMES = ["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl", "kwok"]

GO = """#!/bin/sh
echo "go $*" >> "$0.log"
while [ "$1" != "-o" ]; do shift; done
touch "$2"
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an empty folder of binaries."""
    folder = tmp_path / "bin"
    monkeypatch.setattr("e2e.build._BIN", folder)
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
    return folder


def install_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> Path:
    """Put a stand-in for go on the PATH and return its log."""
    go = tmp_path / "go"
    go.write_text(script)
    go.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    return tmp_path / "go.log"


def test_each_missing_binary_is_built_once_with_its_version(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = install_go(tmp_path, monkeypatch, GO)
    said: list[str] = []

    first, second = control_plane_binaries(said.append), control_plane_binaries(said.append)

    assert sorted(first) == NAMES
    assert first == second
    assert all(path.is_relative_to(folder) and path.exists() for path in first.values())
    builds = log.read_text().splitlines()
    assert len(builds) == len(NAMES)
    assert all(f"-X k8s.io/component-base/version.gitVersion={kubernetes_version()}" in each for each in builds)
    assert said[:2] == ["building etcd (1 of 6)", "built etcd in 0 s"]


def test_the_training_operator_is_built_the_same_way(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install_go(tmp_path, monkeypatch, GO)
    assert training_operator_binary(lambda _: None).is_relative_to(folder)


def test_binaries_of_kubebuilder_are_used_as_they_are(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = install_go(tmp_path, monkeypatch, GO)
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path))
    (tmp_path / "etcd").touch()

    binaries = control_plane_binaries(lambda _: None)

    assert binaries["etcd"] == tmp_path / "etcd"
    assert binaries["kubectl"].is_relative_to(folder)
    assert "/etcd" not in log.read_text().replace(str(tmp_path), "")


def test_a_build_that_fails_shows_what_go_said_and_leaves_no_binary(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install_go(tmp_path, monkeypatch, "#!/bin/sh\necho module not found >&2; exit 1\n")
    with pytest.raises(BuildError, match=r"-trimpath[^\0]*\nmodule not found\n[^\0]*go version"):
        control_plane_binaries(lambda _: None)
    assert not [path for path in folder.rglob("*") if path.is_file() and path.name != "lock"]


@pytest.mark.usefixtures("folder")
def test_a_machine_without_go_is_told_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(BuildError, match=r"install Go 1\.26 or newer, or set KUBEBUILDER_ASSETS"):
        control_plane_binaries(lambda _: None)
