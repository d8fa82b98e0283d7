"""Two-way streams: read a batch, do it, answer it; and end politely when the server stops."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from fila.core.errors import ShuttingDown
from fila.server.types import Context
from fila.wire.stream import EOF


class Streams:
    """The open two-way streams of one server."""

    def __init__(self) -> None:
        self._reading: set[asyncio.Task[Any]] = set()
        self._stopping = False

    async def serve(self, context: Context, answer: Callable[[Any], Awaitable[Any]]) -> None:
        """Answer every request of a stream, in order. Raises ShuttingDown when the server stops."""
        task = asyncio.current_task()
        assert task is not None
        try:
            while not self._stopping:
                self._reading.add(task)
                request = await context.read()
                self._reading.discard(task)
                if request is EOF:
                    return
                await context.write(await answer(request))
        except asyncio.CancelledError:
            if not self._stopping:
                raise
        finally:
            self._reading.discard(task)
        raise ShuttingDown

    def stop(self) -> None:
        """End the streams: those that wait for a request now, the others after their answer."""
        self._stopping = True
        for task in self._reading:
            task.cancel()
