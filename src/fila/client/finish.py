"""Waiting for the end of cancelled tasks."""

import asyncio
from collections.abc import Iterable
from typing import Any

#: A cancelled call ends at once. This only bounds a task that does not.
GRACE_S = 1.0


async def finished(tasks: Iterable[asyncio.Task[Any]]) -> None:
    """Wait for tasks whose calls were cancelled; cancel those that do not end."""
    tasks = list(tasks)
    if tasks:
        _, stuck = await asyncio.wait(tasks, timeout=GRACE_S)
        for task in stuck:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
