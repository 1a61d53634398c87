"""`python -m e2e.faults`: gangs on a real control plane that fails by chance: what failed, and what came of it."""

import argparse
import shutil
import sys
from pathlib import Path

import orjson

from e2e.build import report_to_stderr
from e2e.cluster import Cluster, start_cluster
from e2e.faults.play import Goal, Outcome, play

_KEPT = Path(".cache")


def main() -> int:
    """Run it; return 1 when an invariant was violated or the goal was not reached."""
    parser = argparse.ArgumentParser(prog="python -m e2e.faults", description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="another seed makes other gangs and other faults")
    parser.add_argument("--gangs", type=int, default=500, help="so many at least")
    parser.add_argument("--faults", type=int, default=10_000, help="so many at least")
    parser.add_argument("--minutes", type=float, default=60.0, help="begin no round after that")
    parser.add_argument(
        "--fail-over",
        action="store_true",
        help="let two extenders share a lease; the one that leads stands still in the middle of each round, for "
        "less than the lease lasts or for more, and runs on",
    )
    options = parser.parse_args()
    goal = Goal(options.gangs, options.faults, options.minutes * 60, options.fail_over)
    with start_cluster() as cluster:
        outcome = play(cluster, options.seed, goal, report_to_stderr)
        if outcome.violations:
            keep(cluster, options.seed)
    print(summary(outcome, options.seed))
    is_reached = outcome.gangs >= goal.gangs and outcome.tally.total >= goal.faults
    return 0 if is_reached and not outcome.violations else 1


def summary(outcome: Outcome, seed: int) -> str:
    """Say what failed, how often, and what came of it."""
    in_part = outcome.checker.in_part
    spells = f"{in_part.spells} times in all, for {in_part.longest_s:.1f} s at most ({in_part.longest_of or 'none'})"
    lines = [
        outcome.tally.table(),
        f"{outcome.gangs} gangs in {outcome.rounds} rounds, {outcome.took_s:.0f} s",
        f"{len(outcome.violations)} violations; a gang was seen in part {spells}",
        f"{outcome.checker.cards.given} pods were given shares of cards",
        f"another extender took over {outcome.lead_changes} times",
        f"all placed and nothing held {outcome.slowest_settling_s:.0f} s after the faults' end at the latest",
        *(f"VIOLATED: {each.invariant}: {each.text}" for each in outcome.violations[:10]),
        f"To play it again: python -m e2e.faults --seed {seed}, and --fail-over if that was given",
    ]
    return "\n".join(lines)


def keep(cluster: Cluster, seed: int) -> None:
    """Keep the logs of a run in which an invariant was violated, and all pods and nodes at its end."""
    folder = _KEPT / f"faults-{seed}"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(cluster.logs, folder)
    (folder / "pods.json").write_bytes(orjson.dumps(cluster.api.get("/api/v1/pods")))
    (folder / "nodes.json").write_bytes(orjson.dumps(cluster.api.get("/api/v1/nodes")))
    report_to_stderr(f"logs, pods and nodes are kept in {folder}")


if __name__ == "__main__":
    sys.exit(main())
