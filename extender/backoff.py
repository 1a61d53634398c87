"""How long until the next try?"""

import asyncio
from collections.abc import Callable
from random import SystemRandom

_chance = SystemRandom()


class Backoff:
    """Pauses whose upper bound doubles from `first_s` to `longest_s`.

    Each pause is drawn from zero to its bound (full jitter), so that many who failed together do not come back
    together.
    """

    def __init__(
        self, first_s: float, longest_s: float, uniform: Callable[[float, float], float] = _chance.uniform
    ) -> None:
        self._first_s = first_s
        self._longest_s = longest_s
        self._uniform = uniform
        self._bound_s = first_s

    def reset(self) -> None:
        """Start from `first_s` again."""
        self._bound_s = self._first_s

    def next_s(self) -> float:
        """Return the next pause."""
        pause_s = self._uniform(0.0, self._bound_s)
        self._bound_s = min(self._longest_s, 2 * self._bound_s)
        return pause_s

    async def pause(self, at_least_s: float = 0.0) -> None:
        """Sleep for the next pause, or as long as the server asked for where that is longer."""
        await asyncio.sleep(max(at_least_s, self.next_s()))
