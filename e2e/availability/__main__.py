"""`python -m e2e.availability`: end one of two pairs in each way while gangs keep coming, and print what came of it."""

import argparse
import sys
from typing import get_args

from e2e.availability.blows import BLOWS, SERVICE_BLOWS, strike
from e2e.availability.pairs import Mode, start_pairs


def main() -> int:
    """Run the scenarios that are named; return 1 where a gang was lost or a node overcommitted."""
    parser = argparse.ArgumentParser(prog="python -m e2e.availability", description=__doc__)
    parser.add_argument("--gangs", type=int, default=50, help="how many gangs come during each")
    parser.add_argument("--mode", choices=get_args(Mode), default="sidecar", help="where the extender runs")
    parser.add_argument("--blow", nargs="+", choices=BLOWS, help="what is done; by default all that the mode has")
    options = parser.parse_args()
    blows = options.blow or (BLOWS if options.mode == "sidecar" else SERVICE_BLOWS)
    is_fine = True
    with start_pairs(options.mode) as cluster:
        for name in blows:
            outcome = strike(cluster, name, options.gangs)
            print(outcome, flush=True)
            is_fine &= not outcome.faults
    return 0 if is_fine else 1


if __name__ == "__main__":
    sys.exit(main())
