"""Which gangs come in a round? By the seed: whole GPUs, shares of cards, parameter servers with workers.

All of a round that is to fit does so together with what the round before left, with some of the GPUs to spare;
one gang of each round never fits.
"""

from collections.abc import Iterator, Mapping
from random import Random

from msgspec import Struct

from e2e.client import Object
from e2e.faults.reading import GANG_NAME, GPU, MIN_AVAILABLE

GANGS_A_ROUND = 25
_COMING_S = 12.0
_STAY = 0.2  # a part of a round's gangs
_ROLE = "training.kubeflow.org/replica-type"


class Plan(Struct, frozen=True):
    """A gang of a round, and when it comes, in seconds from the round's beginning."""

    name: str
    at_s: float
    pods: tuple[Object, ...]
    fits: bool = True


def round_of(seed: int, number: int, size: int = GANGS_A_ROUND) -> list[Plan]:
    """Return the gangs of a round, in the order in which they come."""
    chance = Random(f"{seed}/gangs/{number}")  # noqa: S311 - the same for the same seed
    plans = []
    for index in range(size):
        name = f"r{number}-{index}"
        pods = tuple(_too_large(name) if index == 0 else _pods(name, index, chance))
        plans.append(Plan(name, chance.uniform(0, _COMING_S), pods, fits=index > 0))
    return sorted(plans, key=lambda plan: plan.at_s)


def staying(plans: list[Plan]) -> list[Plan]:
    """Return which of a round's gangs are still there in the next one."""
    return [plan for plan in plans[: int(len(plans) * _STAY)] if plan.fits]


def replacement(pod: Object, suffix: str) -> Object:
    """Return the pod that an operator makes in the place of a lost one."""
    return {**pod, "metadata": {**pod["metadata"], "name": f"{pod['metadata']['name']}-{suffix}"}}


def _too_large(name: str) -> Iterator[Object]:
    """Yield a gang whose last member no node has the GPUs for."""
    for index in range(4):
        yield _pod(name, f"w{index}", 4, limits={GPU: "1" if index else "9"})


def _pods(name: str, index: int, chance: Random) -> Iterator[Object]:
    match index % 10:
        case 1 | 2 | 3 | 4:
            return _workers(name, chance.randint(2, 7), {GPU: chance.choice(("1", "1", "1", "2"))})
        case 5 | 6:
            return _servers_and_workers(name, chance.randint(1, 2), chance.randint(2, 4))
        case 7:
            return _workers(name, 2, {"volcano.sh/vgpu-number": "1", "volcano.sh/vgpu-memory": "4000"})
        case _:
            part = chance.choice(("0.25", "0.5"))
            return _sharing(name, chance.randint(2, 6), part)


def _workers(name: str, size: int, limits: Mapping[str, str]) -> Iterator[Object]:
    for index in range(size):
        yield _pod(name, f"w{index}", size, limits=limits)


def _sharing(name: str, size: int, part: str) -> Iterator[Object]:
    said = {"kubeshare/gpu_request": part, "kubeshare/gpu_limit": "1.0"}
    for index in range(size):
        yield _pod(name, f"s{index}", size, limits={"cpu": "1"}, annotations=said)


def _servers_and_workers(name: str, servers: int, workers: int) -> Iterator[Object]:
    size = servers + workers
    for index in range(servers):
        yield _pod(name, f"ps{index}", size, limits={"cpu": "2"}, labels={_ROLE: "ps"})
    for index in range(workers):
        yield _pod(name, f"w{index}", size, limits={GPU: "1", "cpu": "1"}, labels={_ROLE: "worker"})


def _pod(
    gang: str,
    suffix: str,
    size: int,
    *,
    limits: Mapping[str, str],
    annotations: Mapping[str, str] | None = None,
    labels: Mapping[str, str] | None = None,
) -> Object:
    said = {GANG_NAME: gang, MIN_AVAILABLE: str(size), **(annotations or {})}
    metadata = {"name": f"{gang}-{suffix}", "annotations": said, "labels": {"gang": gang, **(labels or {})}}
    container = {"name": "main", "image": "example.com/train", "resources": {"limits": dict(limits)}}
    spec = {"schedulerName": "gang-scheduler", "terminationGracePeriodSeconds": 0, "containers": [container]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
