"""Is another try worth it?"""

from collections.abc import Awaitable

import structlog

from extender.apiserver import NoAnswerError, Response
from extender.backoff import Backoff

TRIES = 5
"""Of a patch, over some seconds; what an API server is away for longer is decided, and submitted, again anyway."""

TRY_S = 10.0
"""A patch takes milliseconds; an API server that needs longer than this has lost the request."""

_log = structlog.get_logger()


async def settle(request: Awaitable[Response], backoff: Backoff) -> Response | None:
    """Return the answer, or None, after a pause, when another try may well get a better one."""
    try:
        response = await request
    except NoAnswerError as error:
        _log.debug("no answer", text=str(error))
        await backoff.pause()
        return None
    if response.is_transient:
        _log.debug("not now", status=response.status, text=response.message)
        await backoff.pause(response.retry_after_s)
        return None
    return response
