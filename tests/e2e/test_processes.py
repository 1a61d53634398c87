"""Do a cluster's processes end with it, whatever happens?"""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from e2e.processes import DeadlineExceededError, Process, StartError, free_ports, wait_for

STARTER = """
import sys, time
from pathlib import Path
from e2e.processes import Process
print(Process("sleeper", ["sleep", "60"], Path(sys.argv[1])).pid, flush=True)
time.sleep(60)
"""


def has_ended(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"  # nobody collects it here


def test_a_process_dies_with_its_starter_even_if_that_is_killed(tmp_path: Path) -> None:
    command = [sys.executable, "-c", STARTER, str(tmp_path / "log")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as starter:  # noqa: S603 - ourselves
        assert starter.stdout
        sleeper = int(starter.stdout.readline())
        assert not has_ended(sleeper)
        starter.kill()

    wait_for(lambda: has_ended(sleeper), deadline_s=5, why="the sleeper is killed")


def test_a_process_that_does_not_heed_term_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("e2e.processes._STOP_S", 0.2)
    stubborn = "import signal, time; signal.signal(15, signal.SIG_IGN); print('ready', flush=True); time.sleep(60)"
    process = Process("stubborn", [sys.executable, "-c", stubborn], tmp_path / "log")
    wait_for(process.log_tail, deadline_s=5, why="it ignores TERM")

    process.stop()

    assert has_ended(process.pid)


def test_only_a_process_that_ended_by_itself_is_a_failure(tmp_path: Path) -> None:
    process = Process("sleeper", ["sleep", "60"], tmp_path / "log")
    process.stop()
    process.check()
    process.restart()
    os.kill(process.pid, signal.SIGKILL)
    with pytest.raises(StartError, match=f"sleeper ended by itself with code -{signal.SIGKILL:d}"):
        wait_for(process.check, deadline_s=5, why="it is killed")


def test_a_process_that_was_killed_is_no_failure_and_runs_again(tmp_path: Path) -> None:
    process = Process("sleeper", ["sleep", "60"], tmp_path / "log")
    process.kill()
    assert process.has_ended
    process.check()
    process.restart()
    assert not process.has_ended
    process.stop()


def test_a_paused_process_stands_still_until_it_goes_on_and_can_be_stopped(tmp_path: Path) -> None:
    count = "import time\nwhile True: print('tick', flush=True); time.sleep(0.01)"
    process = Process("counter", [sys.executable, "-c", count], tmp_path / "log")
    wait_for(process.log_tail, deadline_s=5, why="it counts")
    process.pause()
    time.sleep(0.1)
    before = process.log.stat().st_size
    time.sleep(0.2)
    assert process.log.stat().st_size == before
    process.go_on()
    wait_for(lambda: process.log.stat().st_size > before, deadline_s=5, why="it counts again")
    process.pause()
    process.stop()
    assert has_ended(process.pid)


def test_a_process_that_ended_is_reported_with_its_last_words(tmp_path: Path) -> None:
    process = Process("etcd", ["sh", "-c", "echo first; echo port 1 is in use; exit 3"], tmp_path / "log")
    with pytest.raises(StartError, match=r"etcd ended by itself with code 3[^\0]*in use\n[^\0]*start again"):
        wait_for(process.check, deadline_s=5, why="it ends")


def test_ports_are_different_and_free() -> None:
    assert len(set(free_ports(20))) == 20


def test_waiting_in_vain_says_for_what_and_what_was_seen() -> None:
    with pytest.raises(DeadlineExceededError, match=r"not within 0 s: pods run; the last answer was \[\]"):
        wait_for(list, deadline_s=0, why="pods run")
