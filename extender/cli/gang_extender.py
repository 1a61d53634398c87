"""`gang-extender serve --config FILE`: run the extender. `gang-extender doctor`: is it wired right?"""

import argparse
import asyncio
import sys
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

from extender.apiserver import KubeconfigError
from extender.app import serve
from extender.cli.doctor import add_doctor
from extender.config import ConfigError, load_config
from extender.observe.logging import configure_logging
from extender.verbs.certificates import CertificateError

BAD_CONFIGURATION = 2
"""The exit status for what the caller must change: as argparse's own for bad arguments."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit status."""
    options = _parser().parse_args(arguments)
    try:
        status: int = options.run(options)
    except (CertificateError, ConfigError, KubeconfigError) as error:
        return _fail(error, BAD_CONFIGURATION)
    except OSError as error:
        return _fail(error, 1)
    return status


def _serve(options: argparse.Namespace) -> int:
    config = load_config(options.config)
    configure_logging(config.log.level, config.log.format)
    asyncio.run(serve(config))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="gang-extender", description="A kube-scheduler extender for gangs.")
    parser.add_argument("--version", action="version", version=version("gang-extender"))
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    command = commands.add_parser("serve", help="serve the extender's verbs until stopped")
    command.add_argument("--config", type=Path, required=True, metavar="FILE", help="a GangExtenderConfiguration")
    command.set_defaults(run=_serve)
    add_doctor(commands)
    return parser


def _fail(error: Exception, status: int) -> int:
    print(f"gang-extender: {error}", file=sys.stderr)  # noqa: T201 - the caller's terminal, before there is a log
    return status


if __name__ == "__main__":
    sys.exit(main())
