"""Waiting in tests: for as long as it takes, not for a guessed time."""

import asyncio
from collections.abc import Callable


async def eventually(holds: Callable[[], bool], within_s: float = 20.0) -> None:
    """Return as soon as `holds()` is true; fails the test when that takes longer than `within_s`.

    What is right comes within milliseconds; a machine that gets a tenth of its time must not look like a fault.
    """
    async with asyncio.timeout(within_s):
        while not holds():  # noqa: ASYNC110 - what is waited for knows of no Event
            await asyncio.sleep(0.002)
