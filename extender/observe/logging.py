"""What does the log look like? One line per event on standard error, with its facts as fields."""

import logging
import sys
from typing import Any, Literal

import orjson
import structlog
from structlog.typing import Processor


def configure_logging(level: Literal["debug", "info", "warning", "error"], style: Literal["json", "text"]) -> None:
    """Write our lines and the libraries' warnings to standard error; `json` for log collectors, `text` for eyes."""
    number = logging.getLevelNamesMapping()[level.upper()]
    facts: list[Processor] = [
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    looks = _looks(style)
    structlog.configure(
        processors=[*facts, *looks],
        wrapper_class=structlog.make_filtering_bound_logger(number),
        logger_factory=structlog.WriteLoggerFactory(sys.stderr),
    )
    unmarked = structlog.stdlib.ProcessorFormatter.remove_processors_meta
    libraries = logging.StreamHandler(sys.stderr)
    libraries.setFormatter(structlog.stdlib.ProcessorFormatter(foreign_pre_chain=facts, processors=[unmarked, *looks]))
    logging.basicConfig(level=max(number, logging.WARNING), handlers=[libraries], force=True)


def _looks(style: Literal["json", "text"]) -> list[Processor]:
    # structlog's richer tracebacks show local variables, and ours may hold the API server's token.
    if style == "json":
        return [structlog.processors.format_exc_info, structlog.processors.JSONRenderer(_json)]
    plain = structlog.dev.plain_traceback
    return [structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty(), exception_formatter=plain)]


def _json(fields: Any, default: Any) -> str:
    return orjson.dumps(fields, default=default).decode()
