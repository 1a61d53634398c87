"""Where are the binaries of the control plane, and how do they come about?

The Go modules beside this file pin what is built: each `tools.go` lists the programs, each `go.mod` their versions. A
binary in the folder that KUBEBUILDER_ASSETS names is used as it is; the others are built once per content of go.mod.
"""

import fcntl
import hashlib
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

_HERE = Path(__file__).parent
CONTROL_PLANE = _HERE / "controlplane"
TRAINING_OPERATOR = _HERE / "trainingoperator"

_BIN = _HERE / ".bin"
_PROGRESS_S = 10.0  # kube-apiserver compiles for minutes; silence of that length looks like a hang

Progress = Callable[[str], None]


class BuildError(Exception):
    """A binary cannot be had; the text says which, why and what to do."""


def report_to_stderr(line: str) -> None:
    """Show progress to a person, away from what a shell may evaluate."""
    print(line, file=sys.stderr, flush=True)


def control_plane_binaries(progress: Progress = report_to_stderr) -> dict[str, Path]:
    """Return etcd, kube-apiserver and their like by name, building what is missing; raises BuildError."""
    return _binaries(CONTROL_PLANE, progress)


def training_operator_binary(progress: Progress = report_to_stderr) -> Path:
    """Return Kubeflow's training operator, building it if it is missing; raises BuildError."""
    return _binaries(TRAINING_OPERATOR, progress)["training-operator"]


def all_binaries(progress: Progress = report_to_stderr) -> list[Path]:
    """Return every binary there is to build, building what is missing; raises BuildError."""
    return [*control_plane_binaries(progress).values(), training_operator_binary(progress)]


def kubernetes_version() -> str:
    """Return the version that go.mod pins, such as `v1.36.3`."""
    return _required_version(CONTROL_PLANE, "k8s.io/kubernetes")


def _binaries(module: Path, progress: Progress) -> dict[str, Path]:
    packages = _packages(module)
    paths = {name: _assets_binary(name) or _folder(module) / name for name in packages}
    missing = [name for name, path in paths.items() if not path.exists()]
    if missing:
        with _lock():
            for position, name in enumerate(missing, start=1):
                if not paths[name].exists():
                    progress(f"building {name} ({position} of {len(missing)})")
                    _build(module, packages[name], paths[name], progress)
    return paths


def _packages(module: Path) -> dict[str, str]:
    """Return the packages of tools.go by the name of their binary: `example.com/x/cmd/tool.v1` makes `tool`."""
    packages = re.findall(r'_ "(.+)"', (module / "tools.go").read_text(encoding="utf-8"))
    return {_binary_name(package): package for package in packages}


def _binary_name(package: str) -> str:
    if package.startswith("go.etcd.io/etcd/server/"):
        return "etcd"
    return re.sub(r"\.v\d+$", "", package.rpartition("/")[2])


def _assets_binary(name: str) -> Path | None:
    folder = os.environ.get("KUBEBUILDER_ASSETS")
    path = Path(folder) / name if folder else None
    return path if path and path.exists() else None


def _folder(module: Path) -> Path:
    digest = hashlib.sha256((module / "go.mod").read_bytes()).hexdigest()
    return _BIN / f"{module.name}-{digest[:12]}"


def _required_version(module: Path, path: str) -> str:
    match = re.search(rf"^\s*{re.escape(path)} (v\S+)", (module / "go.mod").read_text(encoding="utf-8"), re.MULTILINE)
    if match is None:
        raise BuildError(f"{module / 'go.mod'}: requires no {path}")
    return match[1]


@contextmanager
def _lock() -> Iterator[None]:
    """Two builds at a time would only slow each other down."""
    _BIN.mkdir(exist_ok=True)
    with (_BIN / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _build(module: Path, package: str, path: Path, progress: Progress) -> None:
    started_s = time.monotonic()
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f"{path.name}.unfinished")
    command = ["go", "build", "-v", "-trimpath", "-ldflags", _ldflags(), "-o", str(unfinished), package]
    output = _run(command, module, progress)
    if not unfinished.exists():
        raise BuildError(
            f"{' '.join(command)} failed in {module}:\n{output}\nIs this Go 1.26 or newer? See `go version`."
        )
    unfinished.rename(path)
    progress(f"built {path.name} in {time.monotonic() - started_s:.0f} s")


def _ldflags() -> str:
    """As upstream's own build stamps them; otherwise the server calls itself v0.0.0, which clients take for ancient."""
    version = kubernetes_version()
    major, minor, _ = version.removeprefix("v").split(".", 2)
    base = "k8s.io/component-base/version"
    stamps = {
        f"{base}.gitVersion": version,
        f"{base}.gitMajor": major,
        f"{base}.gitMinor": minor,
        "k8s.io/client-go/pkg/version.gitVersion": version,
    }
    return " ".join(["-s", "-w", *(f"-X {name}={value}" for name, value in stamps.items())])


def _run(command: list[str], module: Path, progress: Progress) -> str:
    """Run `go build -v`, which names each package as it is compiled, and return the last of what it said."""
    try:
        process = subprocess.Popen(command, cwd=module, stderr=subprocess.PIPE, text=True)
    except FileNotFoundError as error:
        message = "`go` is not on the PATH: install Go 1.26 or newer, or set KUBEBUILDER_ASSETS to a folder of binaries"
        raise BuildError(message) from error
    said: list[str] = []
    next_report_s = time.monotonic() + _PROGRESS_S
    with process:
        assert process.stderr
        for line in process.stderr:
            said.append(line)
            if time.monotonic() >= next_report_s:
                progress(f"  {len(said)} packages compiled, now {line.strip()}")
                next_report_s += _PROGRESS_S
    return "".join(said[-20:])
