"""Connections to one other: as few as carry its calls, and no more than it may be asked to bear.

A member is a caller like others to another member. Each of its connections carries as many calls as that allows, and
has its share of memory and of flood protection. What one member passes on are the calls of many callers: so there are
several connections, and a limit that is told instead of waited for.
"""

from collections.abc import Callable
from typing import Final

from fila.wire.channel import Channel

CALLS: Final = 500
"""On one connection: half of what the other allows there, as calls that have ended here may not have there."""
MOST: Final = 32
"""Connections"""


class Connections:
    """Opens a connection when all others are busy. A connection stays."""

    def __init__(self, make: Callable[[], Channel], most: int = MOST, calls: int = CALLS) -> None:
        self._make = make
        self._most = most
        self._calls = calls
        self._channels: list[Channel] = []

    @property
    def has_room(self) -> bool:
        """Whether another call may be made."""
        return len(self._channels) < self._most or self._free() is not None

    def next(self) -> Channel:
        """For a call: the first connection that is not busy, so that there are no more than are needed."""
        if len(self._channels) == self._most == 1:
            return self._channels[0]
        free = self._free()
        if free is None:
            if len(self._channels) == self._most:
                return self._channels[-1]  # whoever does not ask for room waits for it
            free = self._make()
            self._channels.append(free)
        return free

    def _free(self) -> Channel | None:
        return next((channel for channel in self._channels if channel.calls < self._calls), None)

    async def close(self) -> None:
        for channel in self._channels:
            await channel.close()
