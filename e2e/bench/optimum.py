"""How many whole cards could stay free at most, if all requests were known beforehand? Solved by CP-SAT."""

from collections.abc import Sequence

from ortools.sat.python import cp_model

from extender.model.device import WHOLE_MILLI, CardNeed, CardRequest
from extender.model.pod import PodShape


def most_whole_cards(shapes: Sequence[PodShape], nodes: int, cards: int) -> int:
    """Return how many of the cards nobody uses in the best of all placements; there must be one."""
    needs = [shape.cards.needs[0] for shape in shapes if isinstance(shape.cards, CardRequest)]
    model = cp_model.CpModel()
    whole = [need for need in needs if need.core_milli == WHOLE_MILLI]
    shared = [need for need in needs if need.core_milli < WHOLE_MILLI]
    used = {(node, card): model.new_bool_var("") for node in range(nodes) for card in range(cards)}
    for node in range(nodes):
        for card in range(1, cards):  # cards of a node are alike, so that the first ones are used
            model.add(used[node, card - 1] >= used[node, card])
    _put_shares(model, shared, used)
    places = [[model.new_bool_var("") for _ in range(nodes)] for _ in whole]
    for place in places:
        model.add_exactly_one(place)
    for node in range(nodes):
        taken = sum(need.count * place[node] for need, place in zip(whole, places, strict=True))
        model.add(taken + sum(used[node, card] for card in range(cards)) <= cards)
    model.minimize(sum(used.values()))
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    status = solver.solve(model)
    assert status == cp_model.OPTIMAL, "the set was made to fit"
    return nodes * cards - sum(need.count for need in whole) - round(solver.objective_value)


def _put_shares(
    model: cp_model.CpModel, shared: Sequence[CardNeed], used: dict[tuple[int, int], cp_model.IntVar]
) -> None:
    at = [{place: model.new_bool_var("") for place in used} for _ in shared]
    for places in at:
        model.add_exactly_one(places.values())
    for place, is_used in used.items():
        cores = [need.core_milli * places[place] for need, places in zip(shared, at, strict=True)]
        memory = [need.memory_milli * places[place] for need, places in zip(shared, at, strict=True)]
        model.add(sum(cores) <= WHOLE_MILLI * is_used)
        model.add(sum(memory) <= WHOLE_MILLI * is_used)
