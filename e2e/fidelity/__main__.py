"""`python -m e2e.fidelity`: compare our model with the real kube-scheduler, and print what differs as a test."""

import argparse
import asyncio
import sys

from e2e.fidelity.controlplane import start_bench
from e2e.fidelity.play import Tally, compare
from e2e.fidelity.replay import as_test


def main() -> int:
    """Run it; return 1 when they disagree on anything."""
    parser = argparse.ArgumentParser(prog="python -m e2e.fidelity", description=__doc__)
    parser.add_argument("--pairs", type=int, default=20_000, help="how many pods to judge")
    parser.add_argument("--seed", type=int, default=1, help="another seed makes other clusters")
    options = parser.parse_args()
    with start_bench() as bench:
        tally = asyncio.run(compare(bench, options.pairs, options.seed, print))
    print(summary(tally))
    for disagreement in tally.disagreements[:3]:
        print(as_test(disagreement))
    return 1 if tally.disagreements else 0


def summary(tally: Tally) -> str:
    """Say in a few lines what was compared."""
    shares = ", ".join(f"{plugin} {count}" for plugin, count in tally.decisive.most_common())
    return (
        f"{tally.pairs} (cluster, pod) pairs, {tally.verdicts} verdicts on nodes ({tally.passed} passed), "
        f"{len(tally.disagreements)} disagreements, {tally.took_s:.0f} s, {tally.pairs / tally.took_s:.0f} pairs/s\n"
        f"pairs in which a plugin was decisive: {shares}"
    )


if __name__ == "__main__":
    sys.exit(main())
