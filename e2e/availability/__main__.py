"""`python -m e2e.availability`: end one of two pairs in each way while gangs keep coming, and print what came of it."""

import argparse
import sys

from e2e.availability.blows import BLOWS, strike
from e2e.availability.pairs import start_pairs


def main() -> int:
    """Run the scenarios that are named; return 1 where a gang was lost or a node overcommitted."""
    parser = argparse.ArgumentParser(prog="python -m e2e.availability", description=__doc__)
    parser.add_argument("--gangs", type=int, default=50, help="how many gangs come during each")
    parser.add_argument("--blow", nargs="+", choices=BLOWS, default=list(BLOWS), help="what is done")
    options = parser.parse_args()
    is_fine = True
    with start_pairs() as cluster:
        for name in options.blow:
            outcome = strike(cluster, name, options.gangs)
            print(outcome, flush=True)
            is_fine &= not outcome.faults
    return 0 if is_fine else 1


if __name__ == "__main__":
    sys.exit(main())
