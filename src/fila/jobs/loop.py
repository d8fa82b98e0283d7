"""The event loop on which the async handlers of a pool run, in a thread of its own."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Coroutine
from typing import Any

from fila.jobs.events import log_exception

logger = logging.getLogger(__name__)


class JobLoop:
    """Started by the first async job. It runs until it is stopped, whatever jobs raise."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopped = False

    def run(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        """Wait for what a coroutine returns. Raises what it raises, or CancelledError when the loop was stopped."""
        with self._lock:
            if self._stopped:
                coroutine.close()
                raise asyncio.CancelledError("the pool was stopped")
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                threading.Thread(target=self._live, args=(self._loop,), name="fila-worker-loop", daemon=True).start()
            ending = asyncio.run_coroutine_threadsafe(_ended(coroutine), self._loop)
        result, error = ending.result()
        if error is not None:
            raise error
        return result

    def stop(self) -> None:
        """Cancel what still runs, without waiting for it."""
        with self._lock:
            self._stopped = True
            if self._loop is not None:
                self._loop.call_soon_threadsafe(self._loop.stop)
                self._loop = None

    def _live(self, loop: asyncio.AbstractEventLoop) -> None:
        asyncio.set_event_loop(loop)
        _go_on(loop.run_forever)  # also when it was stopped before: what was to be run has been handed to it
        while not self._stopped:
            _go_on(loop.run_forever)
        while tasks := asyncio.all_tasks(loop):
            for task in tasks:
                task.cancel()
            _go_on(loop.run_until_complete, asyncio.gather(*tasks, return_exceptions=True))
        _go_on(loop.run_until_complete, loop.shutdown_asyncgens())
        loop.close()


async def _ended(coroutine: Coroutine[Any, Any, Any]) -> tuple[Any, BaseException | None]:
    """What it returned, or what it raised: a task that raises SystemExit would end the loop."""
    try:
        return await coroutine, None
    except BaseException as error:  # noqa: BLE001  it is raised in the thread of the job
        return None, error


def _go_on(run: Callable[..., Any], *arguments: Any) -> None:
    """A task that a handler has started may still raise what ends a loop."""
    try:
        run(*arguments)
    except BaseException:  # noqa: BLE001  the loop is that of other jobs too
        log_exception(logger, "a task of an async job tried to end the process")
