"""The event loop in a background thread on which blocking clients live.

All clients of a process share one, for threads that wake each other cost more than clients that take turns. It is never
closed: a client may be made at any time.
"""

import asyncio
import os
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import CancelledError, Future
from functools import lru_cache
from typing import Any, TypeVar, TypeVarTuple, Unpack

from fila.client.errors import ClientClosedError, forked

Args = TypeVarTuple("Args")
T = TypeVar("T")


class LoopThread:
    """Runs an event loop for as long as the process lives. As a daemon, it does not keep the process alive."""

    def __init__(self) -> None:
        self._loop = _new_loop()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._pid = os.getpid()
        threading.Thread(target=self._run, name="fila-client", daemon=True).start()

    @property
    def here(self) -> bool:
        """Whether it runs in this process. In a child nobody would ever answer."""
        return self._pid == os.getpid()

    def post(self, function: Callable[[Unpack[Args]], object], *args: *Args) -> None:
        """Call a function on the loop, some time soon. Raises ClientClosedError in a child process."""
        if not self.here:
            raise forked()
        self._loop.call_soon_threadsafe(function, *args)

    def start(self, coroutine: Coroutine[Any, Any, T]) -> Future[T]:
        """Run a coroutine on the loop; `result_of` waits for it. Raises ClientClosedError in a child process."""
        if not self.here:
            coroutine.close()
            raise forked()
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop)

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the loop and wait for its result. Raises ClientClosedError when it was cancelled."""
        return result_of(self.start(coroutine))

    def spawn(self, make: Callable[[], Coroutine[Any, Any, object]]) -> None:
        """Run a coroutine on the loop and do not wait for it. Nothing in a child process."""
        if self.here:
            self.post(self._spawn, make)

    def _spawn(self, make: Callable[[], Coroutine[Any, Any, object]]) -> None:
        task = self._loop.create_task(make())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()


def result_of(future: Future[T]) -> T:
    """Wait for what was started. Raises ClientClosedError when it was cancelled."""
    try:
        return future.result()
    except CancelledError as error:
        raise ClientClosedError("the client was closed") from error


def shared_loop_thread() -> LoopThread:
    """The loop of this process; a forked child gets its own."""
    return _loop_thread_of(os.getpid())


@lru_cache(maxsize=1)
def _loop_thread_of(_pid: int) -> LoopThread:
    return LoopThread()


def _new_loop() -> asyncio.AbstractEventLoop:
    """Against an echo server, in one run on a loaded machine, a round trip took 580 us with uvloop, 660 us without."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()
