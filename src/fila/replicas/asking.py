"""Asking an engine where a log ends.

Who asks may reach a leader that has been deposed and does not know, or one that has just been elected and has not
caught up. Both name an end that is too low for a while. So an end below what this member has itself been told is asked
for again. One that stays low is told: then the engine has lost entries.
"""

import asyncio
from collections.abc import Awaitable, Callable

AGAIN_S = 0.1


class Highest:
    """The highest position of a log that this member has been told of."""

    def __init__(self) -> None:
        self.position = -1

    def told(self, position: int) -> None:
        """By an answer to an append, or by a reader."""
        self.position = max(self.position, position)

    async def end(self, ask: Callable[[], Awaitable[int]], patience_s: float) -> int:
        """Where the log ends. Raises what `ask` raises."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + patience_s
        highest = self.position
        while True:
            end = await ask()
            if end > highest or loop.time() >= deadline:
                return end
            await asyncio.sleep(AGAIN_S)
