"""What befalls a process in the midst of a gang's life, and when does it serve again?

kill: it dies at once, and is started again as its pod would be. pause: it stands still, with its connections open, for
longer than anybody waits for it. jump: its wall clock is set; only the extender's, which runs with a clock of ours.
"""

import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from msgspec import Struct

from e2e.cluster import EXTENDER, Cluster
from e2e.faults.crossing import Crossing, Fate

_CLOCK = """
import pathlib, runpy, sys, time
offset, right, sys.argv = pathlib.Path(sys.argv[1]), time.time, sys.argv[2:]
time.time = lambda: right() + float(offset.read_text())
runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
"""


class Blow(Struct, frozen=True):
    """What befalls it; `seconds` is how long it stands still, or how far its clock jumps."""

    kind: Literal["kill", "pause", "jump"] = "kill"
    seconds: float = 0.0

    @property
    def option(self) -> str:
        """The command line's words for it."""
        return "" if self.kind == "kill" else f" --{self.kind} {self.seconds:g}"


def strike(cluster: Cluster, crossing: Crossing, target: str, blow: Blow, fate: Fate) -> None:
    """Do it, let go of what is held, and return once the process serves again."""
    match blow.kind:
        case "kill":
            cluster.processes[target].kill()
            crossing.go_on(target, fate)
            cluster.revive(target)
        case "pause":
            process = cluster.processes[target]
            process.pause()
            try:
                crossing.go_on()
                time.sleep(blow.seconds)
            finally:
                process.go_on()
            cluster.wait_serving(target)
        case "jump":
            _offset(cluster).write_text(str(blow.seconds), encoding="utf-8")
            crossing.go_on()


def fit_clock(cluster: Cluster) -> None:
    """Start the extender anew with a wall clock that can be set."""
    _offset(cluster).write_text("0", encoding="utf-8")
    process = cluster.processes[EXTENDER]
    if _CLOCK not in process.command:
        process.command = _with_clock(process.command, _offset(cluster))
    cluster.revive(EXTENDER)


def right_clock(cluster: Cluster) -> None:
    """Set the clock right again, where there is one."""
    if _offset(cluster).exists():
        _offset(cluster).write_text("0", encoding="utf-8")


def _with_clock(command: Sequence[str], offset: Path) -> list[str]:
    python, flag, module, *arguments = command
    if python != sys.executable or flag != "-m":
        raise ValueError(f"not started as a module of ours: {command}")
    return [python, "-c", _CLOCK, str(offset), module, *arguments]


def _offset(cluster: Cluster) -> Path:
    return cluster.folder / "clock-offset"
