"""How well can a gang be placed at all? Found by CP-SAT, for gangs that need all their members."""

from collections.abc import Mapping, Sequence

from msgspec import Struct
from ortools.sat.python import cp_model

from extender.decide.leaders import LEADER_ROLES
from extender.model.snapshot import Snapshot
from extender.model.topology import Level
from extender.model.verdict import Placement
from tests.decide.oracle import Instance, add_placements, kinds_of

EFFORT = 10
"""CP-SAT's own measure, some seconds, so that on every machine the same gangs are left unsolved: hardly any."""

_MORE_THAN_PAIRS = 10_000
_MORE_THAN_NODES = 100
"""What is less by one outweighs any number of what comes after it."""


class Quality(Struct, frozen=True, order=True):
    """What sorts first is better.

    `level` is the nearest one from the preferred outward of which one domain has everybody, `domains` how many of the
    preferred level are used, `apart` how many pairs of a leader and another member are on two nodes.
    """

    level: int
    domains: int
    nodes: int
    apart: int


class Wish(Struct, frozen=True):
    """Where on the network the gang must be together, and where it would like to."""

    required: Level | None = None
    preferred: Level | None = None


class Optimum(Struct, frozen=True):
    """Whether the gang fits at all, and how well it can be placed; None for either where that was not found out."""

    fits: bool | None
    quality: Quality | None = None


def quality_of(placements: Sequence[Placement], wish: Wish, snapshot: Snapshot) -> Quality:
    """Return how well the gang is placed."""
    nodes = {each.node for each in placements}
    counts = [len({_domain(snapshot, level, node) for node in nodes}) for level in _levels(wish, snapshot)]
    level = next((number for number, count in enumerate(counts) if count == 1), len(counts))
    leaders = [each.node for each in placements if each.role in LEADER_ROLES]
    others = [each.node for each in placements if each.role not in LEADER_ROLES]
    apart = sum(leader != other for leader in leaders for other in others)
    return Quality(level, counts[0] if counts else 0, len(nodes), apart)


def find_optimum(instance: Instance, wish: Wish) -> Optimum:
    """Return the best that there is."""
    model = cp_model.CpModel()
    snapshot = instance.snapshot
    used = {name: model.new_bool_var("") for name in snapshot.rooms}
    together = _add_members(model, instance, used)
    if wish.required is not None:
        _add_requirement(model, used, wish.required, snapshot)
    level, domains = _add_levels(model, used, wish, snapshot)
    score = (level * _MORE_THAN_NODES + domains) * _MORE_THAN_NODES + cp_model.LinearExpr.sum(list(used.values()))
    model.minimize(score * _MORE_THAN_PAIRS - cp_model.LinearExpr.sum(together))
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.max_deterministic_time = EFFORT
    status = solver.solve(model)
    if status != cp_model.OPTIMAL:
        return Optimum({cp_model.INFEASIBLE: False, cp_model.FEASIBLE: True}.get(status))
    leaders = sum(member.role in LEADER_ROLES for member in instance.members)
    apart = leaders * (len(instance.members) - leaders) - sum(map(solver.value, together))
    nodes = sum(map(solver.value, used.values()))
    return Optimum(True, Quality(solver.value(level), solver.value(domains), nodes, apart))


def _add_members(
    model: cp_model.CpModel, instance: Instance, used: Mapping[str, cp_model.IntVar]
) -> list[cp_model.IntVar]:
    """Put everybody on used nodes; return how many pairs of a leader and another member are together on each."""
    kinds = kinds_of(instance)
    placed = add_placements(model, instance, used)
    for kind, count in kinds.items():
        model.add(sum(placed[kind, name] for name in used) == count)
    pairs = []
    for name in used:
        leaders, others = (
            model.new_int_var(0, len(instance.members), ""),
            model.new_int_var(0, len(instance.members), ""),
        )
        model.add(leaders == sum(placed[kind, name] for kind in kinds if kind[1] in LEADER_ROLES))
        model.add(others == sum(placed[kind, name] for kind in kinds if kind[1] not in LEADER_ROLES))
        pairs.append(model.new_int_var(0, len(instance.members) ** 2, ""))
        model.add_multiplication_equality(pairs[-1], [leaders, others])
    return pairs


def _add_requirement(
    model: cp_model.CpModel, used: Mapping[str, cp_model.IntVar], level: Level, snapshot: Snapshot
) -> None:
    """Have all used nodes in one domain of the level; one that is in none is of no use."""
    domains = snapshot.topology.domains(level)
    chosen = {domain: model.new_bool_var("") for domain in domains}
    model.add(sum(chosen.values()) <= 1)
    for name, is_used in used.items():
        domain = snapshot.topology.domain_of(level, name)
        model.add(is_used <= (chosen[domain] if domain else 0))


def _add_levels(
    model: cp_model.CpModel, used: Mapping[str, cp_model.IntVar], wish: Wish, snapshot: Snapshot
) -> tuple[cp_model.LinearExpr, cp_model.LinearExpr]:
    """Return the nearest level of which one domain has everybody, and how many of the preferred level are used."""
    levels = _levels(wish, snapshot)
    if not levels:
        return model.new_constant(0), model.new_constant(0)
    nearest = [model.new_bool_var("") for _ in (*levels, None)]
    model.add_exactly_one(nearest)
    counts: list[cp_model.LinearExpr] = []
    for level, is_nearest in zip(levels, nearest, strict=False):
        domains = {_domain(snapshot, level, name): model.new_bool_var("") for name in used}
        for name, is_used in used.items():
            model.add(is_used <= domains[_domain(snapshot, level, name)])
        counts.append(cp_model.LinearExpr.sum(list(domains.values())))
        model.add(counts[-1] <= 1).only_enforce_if(is_nearest)
    return cp_model.LinearExpr.weighted_sum(nearest, range(len(nearest))), counts[0]


def _levels(wish: Wish, snapshot: Snapshot) -> tuple[Level, ...]:
    return snapshot.topology.outward_from(wish.preferred) if wish.preferred else ()


def _domain(snapshot: Snapshot, level: Level, node: str) -> str:
    """Return the node's domain; one that is in none is by itself."""
    return snapshot.topology.domain_of(level, node) or f"/{node}"
