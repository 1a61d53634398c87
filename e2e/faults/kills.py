"""What does it cost a gang when a process dies at a step of its life? `python -m e2e.faults.kills --times 20`.

Every step of a life is found by letting a gang live undisturbed; then gangs are stopped at each, and each process is
killed there so many times. In half of them a message that its sender did not outlive is delivered, in half it is lost.
"""

import argparse
import statistics
import sys
from collections.abc import Iterator, Sequence
from typing import get_args

from msgspec import Struct

from e2e.cluster import EXTENDER, GANG_SCHEDULER, StartError
from e2e.faults.blows import Blow
from e2e.faults.crossing import Fate
from e2e.faults.rounds import Course, Ground, Outcome, Rival, Round, open_ground
from e2e.faults.steps import API_SERVER, Step
from e2e.processes import DeadlineExceededError

TARGETS = (EXTENDER, GANG_SCHEDULER, API_SERVER, "etcd")

_OWN_KINDS: dict[Course, frozenset[str]] = {
    "fresh": frozenset({"added", "filter", "bind", "binding", "bound"}),
    "waiting": frozenset({"nomination"}),
    "held": frozenset({"release", "ungated"}),
}
"""Where a course differs from those before it: what is the same is not stopped again."""

_LISTINGS = 3
_LEAST_TRIES = 5


class Ask(Struct, frozen=True):
    """How often, and what."""

    times: int
    fates: tuple[Fate, ...] = get_args(Fate)
    rivals: tuple[Rival, ...] = get_args(Rival)
    blow: Blow = Blow()


class Row(Struct, frozen=True):
    """A line of the table."""

    course: Course
    step: Step
    target: str
    outcomes: tuple[Outcome, ...]

    @property
    def reached(self) -> list[Outcome]:
        """The rounds in which the life came to the step."""
        return [each for each in self.outcomes if each.reached]

    @property
    def failed(self) -> list[Outcome]:
        """The rounds that left something wrong."""
        return [each for each in self.outcomes if each.problems]

    def __str__(self) -> str:
        whole = sorted(each.recovery_s for each in self.reached if not each.problems) or [0.0]
        served = [each.served_s for each in self.reached] or [0.0]
        in_part = [each.in_part_s for each in self.reached] or [0.0]
        return (
            f"{self.course:<8}{self.target:<16}{self.step!s:<22}{len(self.reached):>5}"
            f"{sum(each.was_in_part for each in self.reached):>8}{len(self.failed):>8}"
            f"{statistics.median(served):>8.1f}{statistics.median(whole):>8.1f}{whole[-1]:>8.1f}{max(in_part):>8.1f}"
            f"  {self.step.describe()}"
        )


HEADER = (
    f"{'life':<8}{'killed':<16}{'step':<22}{'times':>5}{'in part':>8}{'partial':>8}{'serves':>8}{'whole':>8}"
    f"{'at most':>8}{'in part':>8}"
)
LEGEND = """\
times: gangs stopped at the step; in part (first): of these, how many were in part when the process was killed; partial:
gangs that stayed so, or anything else that was wrong afterwards. In seconds from the kill: until the process serves
(median), until a gang is whole (median, at most); in part (last): how long one was in part, at most, once it served."""


def find_steps(ground: Ground) -> list[Step]:
    """Return the steps that every life of this course has, in the order of the first."""
    first, *others = [ground.list_steps() for _ in range(_LISTINGS)]
    return [each for each in first if each.kind in _OWN_KINDS[ground.course] and all(each in life for life in others)]


def play_step(ground: Ground, step: Step, target: str, ask: Ask) -> Row:
    """Stop gangs at the step, until it was reached so many times, and strike the process."""
    outcomes: list[Outcome] = []
    for attempt in range(max(2 * ask.times, _LEAST_TRIES)):
        if sum(each.reached for each in outcomes) == ask.times:
            break
        fate = ask.fates[attempt % len(ask.fates)]
        rival = ask.rivals[attempt // len(ask.fates) % len(ask.rivals)]
        outcome = ground.play(Round(step, target, fate, rival, ask.blow))
        if outcome.problems:
            print(describe_failure(ground, outcome), flush=True)
        outcomes.append(outcome)
    return Row(ground.course, step, target, tuple(outcomes))


def describe_failure(ground: Ground, outcome: Outcome) -> str:
    """Say what went wrong in a round, and how to play it again."""
    played = outcome.round
    again = (
        f"python -m e2e.faults.kills --times 20 --life {ground.course} --target {played.target}"
        f" --step {played.step} --fate {played.fate} --rival {played.rival}{played.blow.option}"
    )
    return "\n".join(
        [
            f"FAILED: {'; '.join(outcome.problems)}",
            f"  what had crossed: {' '.join(outcome.trace)}",
            f"  again: {again}",
            *(ground.cluster.log_tail(name, 15) for name in (EXTENDER, GANG_SCHEDULER)),
        ]
    )


def play(courses: Sequence[Course], targets: Sequence[str], chosen: Sequence[str], ask: Ask) -> Iterator[Row]:
    """Play all that was asked for, on one control plane."""
    with open_ground() as ground:
        ground.expect(ask.blow)
        for course in courses:
            ground.follow(course)
            steps = find_steps(ground)
            wanted = [Step.parse(name) for name in chosen if not name.isdigit()]
            wanted += [steps[int(name) - 1] for name in chosen if name.isdigit()]
            for target in targets:
                for step in wanted or steps:
                    yield play_step(ground, step, target, ask)


def main() -> int:
    """Print the table; return 1 if a gang was left in part, or a step was not reached as often as asked."""
    options = _parser().parse_args()
    ask = Ask(
        options.times, tuple(options.fate or get_args(Fate)), tuple(options.rival or get_args(Rival)), _blow(options)
    )
    is_fine = True
    print(LEGEND, HEADER, sep="\n", flush=True)
    try:
        for row in play(options.life or get_args(Course), options.target or TARGETS, options.step, ask):
            print(row, flush=True)
            is_fine = is_fine and not row.failed and len(row.reached) == ask.times
    except (StartError, DeadlineExceededError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0 if is_fine else 1


def _blow(options: argparse.Namespace) -> Blow:
    if options.pause:
        return Blow("pause", options.pause)
    return Blow("jump", options.jump) if options.jump else Blow()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m e2e.faults.kills", description=__doc__)
    parser.add_argument("--times", type=int, default=20, help="how many gangs are stopped at each step (20)")
    parser.add_argument("--life", nargs="+", choices=get_args(Course), help="all by default")
    parser.add_argument("--target", nargs="+", choices=TARGETS, help="what is killed; each of them by default")
    parser.add_argument("--step", nargs="+", default=[], help="the number or name of steps; all by default")
    parser.add_argument("--fate", nargs="+", choices=get_args(Fate), help="of what its sender did not outlive")
    parser.add_argument(
        "--rival", nargs="+", choices=get_args(Rival), help="who wants the same room; in turn by default"
    )
    parser.add_argument("--pause", type=float, metavar="SECONDS", help="pause it for so long instead of killing it")
    parser.add_argument("--jump", type=float, metavar="SECONDS", help="set the extender's wall clock instead")
    return parser


if __name__ == "__main__":
    sys.exit(main())
