"""Do gangs come whole through so many faults? In rounds, each of which ends with the faults' end and everybody placed.

A round: its gangs come while API server, calls, nodes, pods and plugins fail; then nothing fails any more, and within
SETTLE_S every gang that fits must be whole, nobody's room held and no gate left. Most of them are deleted then.
"""

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from random import Random

from msgspec import Struct

from e2e.client import Object
from e2e.cluster import LEADING, Cluster, Mode, Namespace
from e2e.faults import standard
from e2e.faults.checker import Checker, Violation
from e2e.faults.detour import Detour, detoured
from e2e.faults.history import History, recorded
from e2e.faults.plugin import forgetful_plugin
from e2e.faults.reading import gang_of, is_held, node_of
from e2e.faults.rules import Tally
from e2e.faults.twins import Twins, two_extenders
from e2e.faults.weather import Doing, Weather
from e2e.faults.workload import GANGS_A_ROUND, Plan, round_of, staying
from e2e.nodes import is_usable
from e2e.processes import DeadlineExceededError, figures, wait_for

_LOOK_S = 0.5
_STORM_S = 20.0  # how long a round's faults last; all that is planned for it happens before
_ROUNDS_IN_A_MODE = 2
_STILL_AT_S = (3.0, 8.0)  # while gangs come
_STILL_FOR_S = (3.0, 12.0)  # less than the lease lasts, and more
_READY_S = 60.0


class Goal(Struct, frozen=True):
    """When a run may end: both are reached, or the time is over."""

    gangs: int
    faults: int
    within_s: float
    fails_over: bool = False
    """Whether there is a second extender, and the one that leads stands still for a while in the middle of each round.

    What is not covered: pairs in mode sidecar, which follow their kube-scheduler's lease. `e2e/availability` ends such
    pairs, with no other faults.
    """


class Outcome(Struct, frozen=True):
    """What a run came to."""

    violations: list[Violation]
    tally: Tally
    gangs: int
    rounds: int
    slowest_settling_s: float
    took_s: float
    checker: Checker
    lead_changes: int = 0
    """How often another extender took over."""


class ViolationError(AssertionError):
    """An invariant does not hold; the run ends here."""


def play(cluster: Cluster, seed: int, goal: Goal, say: Callable[[str], None]) -> Outcome:
    """Play rounds on a fresh cluster until the goal is reached or an invariant is violated."""
    with ExitStack() as stack:
        history = stack.enter_context(recorded(cluster, standard.BOUNDS, knows_calls=True))
        detour = stack.enter_context(detoured(cluster, seed, standard.rules()))
        detour.verbs.look = history.note_call
        namespace, nodes = cluster.namespace("faults"), list(standard.nodes())
        cluster.add_nodes(nodes)
        stack.enter_context(forgetful_plugin(namespace, seed, detour.tally))
        weather = Weather(namespace, nodes, detour.tally)
        twins = stack.enter_context(two_extenders(cluster, detour)) if goal.fails_over else None
        return Rounds(namespace, detour, history, weather, twins).play(seed, goal, say)


class Rounds:
    """The rounds of one run."""

    def __init__(
        self, namespace: Namespace, detour: Detour, history: History, weather: Weather, twins: Twins | None
    ) -> None:
        self._namespace = namespace
        self._cluster = namespace.cluster
        self._detour = detour
        self._history = history
        self._weather = weather
        self._twins = twins
        self._slowest_s = 0.0
        self._left: list[Plan] = []

    def play(self, seed: int, goal: Goal, say: Callable[[str], None]) -> Outcome:
        """Play until the goal is reached or an invariant is violated."""
        begun_s, number, violations = time.monotonic(), 0, list[Violation]()
        try:
            while not self._is_reached(goal, number, begun_s):
                self._play_round(seed, number)
                number += 1
                say(
                    f"round {number}: {number * GANGS_A_ROUND} gangs, {self._detour.tally.total} faults, "
                    f"{time.monotonic() - begun_s:.0f} s"
                )
            self._end(self._left)
            self._settle(())
        except (ViolationError, DeadlineExceededError) as error:
            violations = [Violation("all that fits is placed, and nothing is left", time.monotonic(), str(error))]
        checker = self._history.judged()
        violations = checker.violations + [each for each in violations if not checker.violations]
        took_s = time.monotonic() - begun_s
        gangs = number * GANGS_A_ROUND
        changes = self._twins.lead_changes if self._twins is not None else 0
        return Outcome(violations, self._detour.tally, gangs, number, self._slowest_s, took_s, checker, changes)

    def _is_reached(self, goal: Goal, number: int, begun_s: float) -> bool:
        is_enough = number * GANGS_A_ROUND >= goal.gangs and self._detour.tally.total >= goal.faults
        return is_enough or time.monotonic() - begun_s >= goal.within_s

    def _play_round(self, seed: int, number: int) -> None:
        mode: Mode = "hold" if number // _ROUNDS_IN_A_MODE % 2 else "filter"
        if number % _ROUNDS_IN_A_MODE == 0:
            self._cluster.set_mode(mode)
        plans = round_of(seed, number)
        doings = [Doing(plan.at_s, partial(self._create, plan)) for plan in plans]
        doings += self._weather.of_round(seed, number, plans)
        if self._twins is not None:
            chance = Random(f"{seed}/failover/{number}")  # noqa: S311 - the same for the same seed
            at_s, for_s = chance.uniform(*_STILL_AT_S), chance.uniform(*_STILL_FOR_S)
            doings += [Doing(at_s, self._twins.stand_still), Doing(at_s + for_s, self._twins.go_on)]
        self._detour.resume()
        self._do(sorted(doings, key=lambda each: each.at_s))
        self._detour.pause()
        self._weather.clear_up()
        self._wait_usable()
        self._settle(plans)
        before, self._left = self._left, staying(plans)
        self._end([*before, *(plan for plan in plans if plan not in self._left)])

    def _do(self, doings: Sequence[Doing]) -> None:
        """Do all in time, and judge meanwhile."""
        begun_s = time.monotonic()
        for doing in [*doings, Doing(_STORM_S, lambda: None)]:
            while (left_s := begun_s + doing.at_s - time.monotonic()) > 0:
                time.sleep(min(left_s, _LOOK_S))
                self._look()
            doing.do()

    def _look(self) -> None:
        if self._twins is not None:
            self._twins.follow()
        violations = self._history.look()
        if violations:
            raise ViolationError("; ".join(f"{each.invariant}: {each.text}" for each in violations))

    def _create(self, plan: Plan) -> None:
        for pod in plan.pods:
            self._cluster.api.create(f"{self._namespace.path}/pods", pod)

    def _end(self, plans: Sequence[Plan]) -> None:
        for plan in plans:
            self._cluster.api.delete(f"{self._namespace.path}/pods?labelSelector=gang%3D{plan.name}")

    def _wait_usable(self) -> None:
        def usable() -> bool:
            return all(is_usable(node) for node in self._cluster.api.get("/api/v1/nodes")["items"])

        wait_for(usable, _READY_S, "all nodes are Ready again")

    def _settle(self, plans: Sequence[Plan]) -> None:
        """Wait until all that fits is whole, and nothing is held or waits; raises ViolationError."""
        begun_s = time.monotonic()
        while problems := self._unsettled(plans):
            self._look()
            if time.monotonic() - begun_s > standard.SETTLE_S:
                raise ViolationError(f"{standard.SETTLE_S:g} s after the faults: {'; '.join(problems)}")
            time.sleep(_LOOK_S)
        self._slowest_s = max(self._slowest_s, time.monotonic() - begun_s)

    def _unsettled(self, plans: Sequence[Plan]) -> list[str]:
        hopeless = {f"{self._namespace.name}/{plan.name}" for plan in plans if not plan.fits}
        pods = self._namespace.pods()
        problems = [text for pod in pods if _gang_name(pod) not in hopeless and (text := _what_it_lacks(pod))]
        return problems + self._left_in_extender(len(hopeless))

    def _left_in_extender(self, hopeless: int) -> list[str]:
        probes = self._twins.probes if self._twins is not None else [self._cluster.probe_url]
        leading = [(probe, told) for probe in probes if (told := figures(f"{probe}/metrics")).get(LEADING) == 1]
        if len(leading) != 1:
            return [f"{len(leading)} extenders lead, instead of one"]
        ((probe, told),) = leading
        states = {state: told[f'gang_extender_gangs{{state="{state}"}}'] for state in ("placed", "stranded")}
        waiting = sum(
            told[f'gang_extender_gangs{{state="{state}"}}'] for state in ("waiting", "gathering", "undeclared")
        )
        problems = [f"{probe} says {count:g} gangs are {state}" for state, count in states.items() if count]
        if waiting != hopeless:
            problems.append(f"{probe} says {waiting:g} gangs wait")
        counts = {gauge: told[f"gang_extender_{gauge}"] for gauge in ("reservations", "held_binds", "queued_binds")}
        return problems + [f"{probe} has {count:g} {gauge}" for gauge, count in counts.items() if count]


def _gang_name(pod: Object) -> str:
    gang = gang_of(pod)
    return gang.name if gang else ""


def _what_it_lacks(pod: Object) -> str:
    if is_held(pod):
        return f"{pod['metadata']['name']} is held by our gate"
    return "" if node_of(pod) else f"{pod['metadata']['name']} is not bound"
