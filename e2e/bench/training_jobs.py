"""Which training jobs come, and when?

Drawn from statistics of KubeShare's published trace of 1,158 jobs in a day, of which no row is kept here: the mean and
spread of the time between jobs, how many ask for how many GPUs, and how long those of each size run (25th to 90th
percentile). Between two percentiles runtimes rise in equal ratios. As KubeShare's own simulator has it, runtimes are
divided by 60, so that the trace's load of about 1,186 GPUs becomes one of 20.

Which pods a job has is ours to say: one of a single GPU is one worker; a larger one has a worker for each GPU, and a
parameter server, which needs none.
"""

from bisect import bisect
from collections.abc import Sequence
from random import Random

from msgspec import Struct

from extender.model.pod import Pod, PodShape
from extender.model.resources import CPU, MEMORY, PODS

BETWEEN_MEAN_S, BETWEEN_SPREAD = 74.5, 1.31
"""Seconds between two jobs: mean, and deviation as a part of it. A gamma distribution of these has the trace's median
and 90th percentile, too (35 and 196), within some percent."""

JOBS_BY_GPUS = {1: 766, 2: 22, 4: 175, 8: 165, 16: 27, 32: 3}

RUNTIMES_S = {
    1: (0, 60, 1740, 36780), 4: (120, 840, 23580, 121620), 8: (480, 3900, 14520, 174180), 16: (0, 120, 1800, 14400),
}  # fmt: skip
"""The 25th, 50th, 75th and 90th percentile. The few jobs of a size that is not named run like those of half of it."""

PERCENTILES = (25, 50, 75, 90, 100)

LONGEST = 4.1
"""The longest job of a size by its 90th percentile. Nothing is known of the tails but the longest job of all, which is
longer; with this the load is the trace's."""

COMPRESSION = 60
"""How much shorter jobs are than in the trace."""

GPU = "nvidia.com/gpu"
CPU_MILLI, MEMORY_BYTES = 4_000, 8 * 2**30
"""What each pod asks for in KubeShare's example."""


class Job(Struct, frozen=True):
    """A job that comes at a time; it takes `runtime_s` where all its workers are beside their parameter server."""

    number: int
    at: float
    workers: int
    runtime_s: float


def draw_jobs(chance: Random, count: int) -> list[Job]:
    """Return jobs in the order in which they come."""
    now, jobs = 0.0, []
    for number in range(count):
        now += chance.gammavariate(BETWEEN_SPREAD**-2, BETWEEN_MEAN_S * BETWEEN_SPREAD**2)
        gpus = chance.choices(list(JOBS_BY_GPUS), weights=list(JOBS_BY_GPUS.values()))[0]
        runtimes = RUNTIMES_S.get(gpus) or RUNTIMES_S[gpus // 2]
        jobs.append(Job(number, now, gpus, _runtime_s(runtimes, chance.uniform(0, 100)) / COMPRESSION))
    return jobs


def pods_of(job: Job) -> tuple[Pod, ...]:
    """Return the job's pods as they are created, the parameter server first."""
    roles = [*(["ps"] if job.workers > 1 else []), *(["worker"] * job.workers)]
    return tuple(_pod(job, index, role) for index, role in enumerate(roles))


def _pod(job: Job, index: int, role: str) -> Pod:
    name = f"job-{job.number}-{index:02}"
    return Pod(name, "default", name, _WORKER if role == "worker" else _SERVER, created_at=job.at, role=role)


_SERVER = PodShape(((CPU, CPU_MILLI), (MEMORY, MEMORY_BYTES), (PODS, 1)))
_WORKER = PodShape(((CPU, CPU_MILLI), (MEMORY, MEMORY_BYTES), (GPU, 1), (PODS, 1)))


def _runtime_s(percentiles: Sequence[int], percent: float) -> float:
    known = (*percentiles, percentiles[-1] * LONGEST)
    place = bisect(PERCENTILES, percent)
    if place == 0:
        return known[0] * percent / PERCENTILES[0]
    low, high = known[place - 1], known[place]
    part = (percent - PERCENTILES[place - 1]) / (PERCENTILES[place] - PERCENTILES[place - 1])
    return low * (high / low) ** part if low else high * part
