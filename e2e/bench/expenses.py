"""What has it cost so far? CPU time and memory by /proc, so on Linux only; writes by the API server's own count."""

import os
import re
import time
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from e2e.bench.waiting_load import filter_calls
from e2e.cluster import Cluster

_TICK_S = 1 / os.sysconf("SC_CLK_TCK")
_QUIET_S = 2.0  # kube-scheduler writes an event within milliseconds; a failed write is repeated within a second
_LONGEST_S = 20.0
_COUNTED = re.compile(r"^apiserver_request_total\{(?P<labels>.*)\} (?P<value>\S+)$", re.MULTILINE)
_LABEL = re.compile(r'(\w+)="([^"]*)"')
_RESOURCES = {"pods", "bindings", "events", "podgroups"}
_VERBS = {"POST", "PUT", "PATCH", "APPLY"}


class Bill(Struct, frozen=True):
    """Sums since each process began."""

    cpu_s: Mapping[str, float]
    writes: float
    filter_calls: float

    def since(self, before: "Bill") -> "Bill":
        """Return what was spent since then."""
        cpu_s = {name: spent_s - before.cpu_s[name] for name, spent_s in self.cpu_s.items()}
        return Bill(cpu_s, self.writes - before.writes, self.filter_calls - before.filter_calls)


class MachineTime(Struct, frozen=True):
    """Ticks of all CPUs since the machine began; `stolen`: it had work, and its host let another machine run."""

    all_ticks: int
    stolen_ticks: int

    def stolen_percent_since(self, before: "MachineTime") -> float:
        """Return how much of the time since then was stolen: the clock of a run says little where that is much."""
        return 100 * (self.stolen_ticks - before.stolen_ticks) / max(1, self.all_ticks - before.all_ticks)


def machine_time() -> MachineTime:
    """Return the time so far."""
    user, nice, system, idle, io_wait, irq, soft_irq, stolen, *_ = map(
        int, Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]
    )
    return MachineTime(user + nice + system + idle + io_wait + irq + soft_irq + stolen, stolen)


def opening_bill(cluster: Cluster, pids: Mapping[str, int], *, asks: bool) -> Bill:
    """Return the sums, CPU time last: what the asking itself costs is then not in it. `asks`: an extender."""
    writes, calls = _writes(cluster), filter_calls(cluster) if asks else 0.0
    return Bill(_spent(pids), writes, calls)


def closing_bill(cluster: Cluster, pids: Mapping[str, int], *, asks: bool) -> Bill:
    """Return the sums once nothing is written any more, CPU time as it was before asking.

    A contender that never comes to rest, as one that could not bind all, is asked after a while.
    """
    time.sleep(_QUIET_S)
    end_s = time.monotonic() + _LONGEST_S
    spent, writes = _spent(pids), _writes(cluster)
    while time.monotonic() < end_s:
        time.sleep(_QUIET_S / 2)
        spent_now, writes_now = _spent(pids), _writes(cluster)
        if writes_now == writes:
            break
        spent, writes = spent_now, writes_now
    return Bill(spent, writes, filter_calls(cluster) if asks else 0.0)


def peak_mib(pid: int) -> float:
    """Return the most memory that the process ever had."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM:"))


def cpu_s(pid: int) -> float:
    """Return the CPU time that the process has had, in user and in system mode."""
    after_name = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(after_name[11]) + int(after_name[12])) * _TICK_S


def _spent(pids: Mapping[str, int]) -> dict[str, float]:
    return {name: cpu_s(pid) for name, pid in pids.items()}


def _writes(cluster: Cluster) -> float:
    return writes_counted(cluster.api.get("/metrics"))


def writes_counted(metrics: str) -> float:
    """Count the writes about pods that succeeded; not leases, nor deletions, which are the bench's own."""
    counted = _COUNTED.finditer(metrics)
    return sum(float(each["value"]) for each in counted if _is_write(dict(_LABEL.findall(each["labels"]))))


def _is_write(labels: Mapping[str, str]) -> bool:
    is_done = labels["code"].startswith("2") and not labels["dry_run"]
    return is_done and labels["verb"] in _VERBS and labels["resource"] in _RESOURCES
