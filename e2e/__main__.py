"""`python -m e2e`: the control plane from the command line."""

import argparse
import asyncio
import shlex
import signal
import sys
import time
from pathlib import Path
from typing import NoReturn, get_args

from e2e import demo
from e2e.build import BuildError, all_binaries, report_to_stderr
from e2e.client import ApiError
from e2e.cluster import DeadlineExceededError, Mode, StartError, start_cluster
from e2e.elasticjob.launcher import start_elasticjob_operator
from e2e.kubelet import run as run_kubelet_stand_in
from e2e.nodes import NodeFileError, read_nodes

_BAD_INPUT = 2
_FAILED = 1


def main() -> int:
    """Run the command that the arguments name; return the exit status."""
    options = _parser().parse_args()
    _end_as_on_ctrl_c()
    try:
        return int(options.run(options))
    except NodeFileError as error:
        print(error, file=sys.stderr)
        return _BAD_INPUT
    except (BuildError, StartError, ApiError, DeadlineExceededError) as error:
        print(f"error: {error}", file=sys.stderr)
        return _FAILED
    except KeyboardInterrupt:
        return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m e2e", description="A real control plane on this machine.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    build = commands.add_parser("build", help="build all binaries that are not there yet")
    build.set_defaults(run=_build)
    up = commands.add_parser("up", help="start a control plane with the extender and keep it until Ctrl-C")
    up.add_argument("--nodes", type=Path, required=True, metavar="FILE", help="a YAML stream of Node objects")
    up.add_argument(
        "--mode", choices=get_args(Mode), default="filter", help="how pods wait (see Hold mode in README.md)"
    )
    up.set_defaults(run=_up)
    show = commands.add_parser("demo", help="show on a control plane what the extender does for a gang")
    show.set_defaults(run=lambda _: demo.run())
    kubelet = commands.add_parser("kubelet-stand-in", help="play the kubelets of all nodes (used by `up`)")
    kubelet.add_argument("--kubeconfig", required=True, metavar="FILE")
    kubelet.set_defaults(run=_kubelet_stand_in)
    return parser


def _build(_: argparse.Namespace) -> int:
    for path in all_binaries():
        print(path)
    return 0


def _up(options: argparse.Namespace) -> NoReturn:
    nodes = read_nodes(options.nodes)
    with start_cluster(mode=options.mode) as cluster:
        cluster.add_nodes(nodes)
        start_elasticjob_operator(cluster)
        print(f"export KUBECONFIG={shlex.quote(str(cluster.kubeconfig))}", flush=True)
        report_to_stderr("stand-ins: the kubelets, and DLRover's operator and master for ElasticJobs")
        report_to_stderr(f"up with {len(nodes)} nodes; logs are in {cluster.logs}; Ctrl-C ends it")
        while True:
            time.sleep(1)
            cluster.check()


def _kubelet_stand_in(options: argparse.Namespace) -> NoReturn:
    asyncio.run(run_kubelet_stand_in(options.kubeconfig))


def _end_as_on_ctrl_c() -> None:
    """Let TERM and a closed terminal end a command as orderly as Ctrl-C; a second signal does not disturb that."""

    def interrupt(*_: object) -> None:
        for each in signals:
            signal.signal(each, signal.SIG_IGN)
        raise KeyboardInterrupt

    signals = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    for each in signals:
        signal.signal(each, interrupt)


if __name__ == "__main__":
    sys.exit(main())
