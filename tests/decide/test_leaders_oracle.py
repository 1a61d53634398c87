"""Do gangs use as few nodes as can be, and sit as near to their leaders? Up to 64 pods on 16 nodes, judged by CP-SAT.

CP-SAT looks for the fewest nodes first, and on these for the fewest pairs of leader and worker that are apart.
ORACLE_INSTANCES says how many; `make oracle` runs many.
"""

import os
from collections import Counter
from random import Random

from msgspec import Struct
from ortools.sat.python import cp_model

from extender.decide.gang import admit_gang
from extender.decide.leaders import LEADER_ROLES
from extender.model.claim import GangKey
from extender.model.gang import Gang
from extender.model.node import Node, NodeRoom
from extender.model.pod import PodShape
from extender.model.snapshot import Snapshot
from extender.model.verdict import Placed, Placement
from tests.builders import GIB, a_node, a_pod, a_shape

INSTANCES = int(os.environ.get("ORACLE_INSTANCES", "60"))
"""Some seconds. Most of the time is CP-SAT's, so that `make oracle` takes no more than AT_MOST."""

AT_MOST = 1000

MOST_ABOVE = 0.02
"""How far above CP-SAT's both sums may be, over all gangs."""

PAIRS_WEIGH = 10_000
"""More than there are pairs, so that a node less goes before any of them."""


class Job(Struct, frozen=True):
    """Parameter servers and workers, and the nodes that they may use."""

    nodes: tuple[Node, ...]
    servers: int
    server: PodShape
    workers: int
    worker: PodShape


class Spread(Struct, frozen=True):
    """How many nodes are used, and how many pairs of server and worker are on two nodes."""

    nodes: int
    apart: int


def draw_job(chance: Random) -> Job:
    nodes = tuple(
        a_node(
            f"n{number:02}",
            gpu=chance.choice([2, 4, 4, 8]),
            cpu_milli=chance.choice([8, 16, 32]) * 1000,
            memory_bytes=chance.choice([64, 128]) * GIB,
        )
        for number in range(chance.randint(3, 16))
    )
    server, worker = (
        a_shape(gpu=gpu, cpu_milli=chance.choice([1, 2, 4]) * 1000, memory_bytes=chance.choice([4, 8]) * GIB)
        for gpu in (0, 1)
    )
    workers = chance.randint(2, 60 if chance.random() < 0.3 else 20)
    return Job(nodes, chance.randint(1, 4), server, workers, worker)


def plan(job: Job) -> tuple[Placement, ...] | None:
    size = job.servers + job.workers
    pods = [a_pod(f"ps-{i}", shape=job.server, role="ps") for i in range(job.servers)]
    pods += [a_pod(f"worker-{i}", shape=job.worker) for i in range(job.workers)]
    gang = Gang(GangKey("default/job"), size, waiting=tuple(pods))
    admission = admit_gang(gang, Snapshot(1, {node.name: NodeRoom(node) for node in job.nodes}))
    return admission.placements if isinstance(admission, Placed) else None


def spread_of(placements: tuple[Placement, ...]) -> Spread:
    leaders = Counter(each.node for each in placements if each.role in LEADER_ROLES)
    workers = Counter(each.node for each in placements if each.role not in LEADER_ROLES)
    together = sum(leaders[node] * workers[node] for node in leaders)
    return Spread(len(leaders | workers), leaders.total() * workers.total() - together)


def best_spread(job: Job) -> Spread | None:
    """Return the best that there is, or None where the job does not fit."""
    model = cp_model.CpModel()
    servers, workers, used, together = [], [], [], []
    for node in job.nodes:
        few, many = model.new_int_var(0, job.servers, ""), model.new_int_var(0, job.workers, "")
        is_used, pairs = model.new_bool_var(""), model.new_int_var(0, job.servers * job.workers, "")
        for name, there in node.allocatable.items():
            of_server, of_worker = dict(job.server.requests).get(name, 0), dict(job.worker.requests).get(name, 0)
            model.add(of_server * few + of_worker * many <= there * is_used)
        model.add_multiplication_equality(pairs, [few, many])
        servers.append(few)
        workers.append(many)
        used.append(is_used)
        together.append(pairs)
    model.add(sum(servers) == job.servers)
    model.add(sum(workers) == job.workers)
    model.minimize(PAIRS_WEIGH * sum(used) - sum(together))
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    status = solver.solve(model)
    if status == cp_model.INFEASIBLE:
        return None
    assert status == cp_model.OPTIMAL
    apart = job.servers * job.workers - sum(solver.value(pairs) for pairs in together)
    return Spread(sum(solver.value(each) for each in used), apart)


def test_few_nodes_and_workers_beside_their_servers() -> None:
    nodes, apart = Counter[str](), Counter[str]()
    distribution = Counter[tuple[int, int]]()
    for number in range(min(INSTANCES, AT_MOST)):
        job = draw_job(Random(f"leaders/{number}"))  # noqa: S311 - chance that can be repeated is what is wanted
        placements, best = plan(job), best_spread(job)
        assert (placements is None) == (best is None), f"job {number}: whether it fits"
        if placements is None or best is None:
            continue
        mine = spread_of(placements)
        nodes.update(planned=mine.nodes, best=best.nodes)
        apart.update(planned=mine.apart, best=best.apart)
        distribution[mine.nodes - best.nodes, mine.apart - best.apart] += 1
    print(f"\nnodes {dict(nodes)}, pairs apart {dict(apart)}; more nodes and pairs than need be, how often:")  # noqa: T201 - to look at
    print(", ".join(f"+{n} {p:+}: {often}" for (n, p), often in sorted(distribution.items())))  # noqa: T201 - as above
    assert nodes["planned"] <= (1 + MOST_ABOVE) * nodes["best"]
    assert apart["planned"] <= (1 + MOST_ABOVE) * apart["best"]
