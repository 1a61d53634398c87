"""How are the processes of a cluster started, watched and ended?

No process outlives its starter: on Linux the kernel kills it then, however the starter ended. Linux means the starting
*thread*, so start processes from one that lives as long as they should.
"""

import os
import signal
import socket
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")

_POLL_S = 0.05
_STOP_S = 10.0  # kube-apiserver takes 1 s; what takes ten hangs

# Popen's preexec_fn could do this too, but may deadlock in a process with threads. 1 is PR_SET_PDEATHSIG, 9 is SIGKILL.
_DIE_WITH_PARENT = """
import ctypes, os, sys
ctypes.CDLL(None).prctl(1, 9)
if os.getppid() == int(sys.argv[1]):  # it may have died just before
    os.execvp(sys.argv[2], sys.argv[2:])
"""


class StartError(Exception):
    """The cluster cannot be started; the text says which part, why and what to do."""


class DeadlineExceededError(AssertionError):
    """What was waited for did not happen in time; the text names it, and the last answer."""


def wait_for(predicate: Callable[[], T], deadline_s: float, why: str) -> T:
    """Poll until `predicate` answers something true and return that; raises DeadlineExceededError."""
    end_s = time.monotonic() + deadline_s
    while not (answer := predicate()):
        if time.monotonic() >= end_s:
            raise DeadlineExceededError(f"not within {deadline_s:g} s: {why}; the last answer was {answer!r}")
        time.sleep(_POLL_S)
    return answer


def free_ports(count: int) -> list[int]:
    """Return different loopback ports that nobody listens on now; another program may still take one before you do."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def free_port() -> int:
    """Return one such port."""
    return free_ports(1)[0]


def is_ok(url: str, tls: ssl.SSLContext | None = None) -> bool:
    """Whether GET answers 200."""
    try:
        with urllib.request.urlopen(url, timeout=5, context=tls) as answer:  # noqa: S310 - our own processes' http(s)
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def figures(url: str) -> dict[str, float]:
    """Return the metrics that are served there, by name and labels; nothing while nobody answers."""
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:  # noqa: S310 - our own processes' http
            lines = answer.read().decode().splitlines()
    except (urllib.error.URLError, OSError):
        return {}
    pairs = (line.rpartition(" ") for line in lines if not line.startswith("#"))
    return {name: float(value) for name, _, value in pairs}


class Process:
    """One process with its log file; it runs from construction on."""

    def __init__(self, name: str, command: Sequence[str], log: Path, env: Mapping[str, str] | None = None) -> None:
        self.name = name
        self.log = log
        self.command = list(command)
        self._env = dict(env or {})
        self._is_stopped = False
        self._popen = self._start()

    def _start(self) -> subprocess.Popen[bytes]:
        launcher = [sys.executable, "-ISc", _DIE_WITH_PARENT, str(os.getpid())] if sys.platform == "linux" else []
        with self.log.open("ab") as log:
            return subprocess.Popen(
                [*launcher, *self.command],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=os.environ | self._env,
                start_new_session=True,  # the terminal's Ctrl-C is for the harness, which ends them in order
            )

    @property
    def pid(self) -> int:
        """The process's id, and its group's."""
        return self._popen.pid

    @property
    def has_ended(self) -> bool:
        """Whether it runs no more, for whatever reason."""
        return self._popen.poll() is not None

    def log_tail(self, lines: int = 30) -> str:
        """Return the last lines of the log."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])

    def check(self) -> None:
        """Raise StartError if the process has ended, and not because it was stopped."""
        code = self._popen.poll()
        if code is None or self._is_stopped:
            return
        raise StartError(
            f"{self.name} ended by itself with code {code}. Its last log lines:\n{self.log_tail()}\n"
            "If they say that a port is in use, start again: ports are chosen anew. "
            f"The command was: {' '.join(self.command)}"
        )

    def stop(self) -> None:
        """End it, by force if it does not end when asked."""
        self._is_stopped = True
        if self._popen.poll() is None:
            os.killpg(self.pid, signal.SIGTERM)
            self.go_on()  # one that was paused heeds nothing
        try:
            self._popen.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            os.killpg(self.pid, signal.SIGKILL)
            self._popen.wait()

    def restart(self) -> None:
        """End it, if it has not ended, and start it again with the same log."""
        self.stop()
        self._popen = self._start()
        self._is_stopped = False

    def kill(self) -> None:
        """End it as a crash does: at once, without a last word. `restart` starts it again."""
        self._is_stopped = True
        if self._popen.poll() is None:
            os.killpg(self.pid, signal.SIGKILL)
        self._popen.wait()

    def pause(self) -> None:
        """Stop it where it is, with its connections open, until `go_on`."""
        os.killpg(self.pid, signal.SIGSTOP)

    def go_on(self) -> None:
        """Let it run on after `pause`."""
        os.killpg(self.pid, signal.SIGCONT)
