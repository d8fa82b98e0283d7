"""The event loop in a background thread that blocking clients use.

All clients of a process share one loop, since threads that wake each other cost more than clients that take turns. The
loop is never closed, because a client may be made at any time. At the end of the process it is frozen: a uvloop timer
that fires after the interpreter is gone would crash the process.
"""

import asyncio
import atexit
import os
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from concurrent.futures import CancelledError, Future
from functools import lru_cache
from typing import Any, TypeVar, TypeVarTuple, Unpack

from fila.client.errors import ClientClosedError, forked

Args = TypeVarTuple("Args")
T = TypeVar("T")

_FREEZE_TIMEOUT_S = 5.0
"""How long the end of the process waits for the loop to freeze. A loop that is not busy freezes at once."""


class LoopThread:
    """Runs an event loop while the process lives. A daemon thread: it does not keep the process alive.

    In a forked child, and when the process is about to end, the loop does not run. There `here` is False, and calls
    that need the loop raise ClientClosedError.
    """

    def __init__(self) -> None:
        _check_not_ending()
        self._loop = _new_loop()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._pid: int | None = os.getpid()
        self._ident = 0
        _loop_threads.append(self)
        _check_not_ending()  # again: either the exit handler finds it in the list, or this call raises
        threading.Thread(target=self._run, name="fila-client", daemon=True).start()

    @property
    def here(self) -> bool:
        """Whether the loop runs in this process."""
        return self._pid == os.getpid()

    def check(self) -> None:
        """Raises unless the caller may wait for the loop. Callbacks and finalizers may run on the loop's own thread,
        which would then wait for itself.
        """
        if not self.here:
            raise self._gone()
        if self._ident == threading.get_ident():
            raise RuntimeError("a blocking call on the client's own event loop thread would never return")

    def post(self, function: Callable[[Unpack[Args]], object], *args: *Args) -> None:
        """Call a function on the loop soon."""
        if not self.here:
            raise self._gone()
        self._loop.call_soon_threadsafe(function, *args)

    def ask(self, function: Callable[[Unpack[Args]], object], *args: *Args) -> None:
        """As `post`, for a caller who then waits for the outcome. Raises as `check`."""
        self.check()
        self._loop.call_soon_threadsafe(function, *args)

    def start(self, coroutine: Coroutine[Any, Any, T]) -> Future[T]:
        """Run a coroutine on the loop; `result_of` waits for it."""
        try:
            self.check()
        except BaseException:
            coroutine.close()
            raise
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop)

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the loop and wait for its result. Raises ClientClosedError when it was cancelled."""
        return result_of(self.start(coroutine))

    def spawn(self, make: Callable[[], Coroutine[Any, Any, object]]) -> None:
        """Run a coroutine on the loop without waiting for it. Does nothing when the loop does not run here."""
        if self.here:
            self.post(self._spawn, make)

    def finish(self, make: Callable[[], Coroutine[Any, Any, object]]) -> None:
        """Run a coroutine that closes something, and wait for it unless on the loop's own thread.

        Does nothing when the loop does not run here.
        """
        if self._ident == threading.get_ident():
            self.spawn(make)
        elif self.here:
            self.run(make())

    def freeze(self) -> None:
        """Stop the loop for the rest of the process. Returns once it is stopped."""
        if self.here:
            self._pid = None
            frozen = threading.Event()
            self._loop.call_soon_threadsafe(_sleep_for_ever, frozen)
            frozen.wait(_FREEZE_TIMEOUT_S)

    def _gone(self) -> ClientClosedError:
        return forked() if self._pid else _ending_error()

    def _spawn(self, make: Callable[[], Coroutine[Any, Any, object]]) -> None:
        task = self._loop.create_task(make())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _run(self) -> None:
        self._ident = threading.get_ident()
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()


_loop_threads: list[LoopThread] = []
_ending = threading.Event()


@atexit.register
def _freeze() -> None:
    _ending.set()
    for thread in _loop_threads:
        thread.freeze()


def _check_not_ending() -> None:
    if _ending.is_set():
        raise _ending_error()


def _ending_error() -> ClientClosedError:
    return ClientClosedError("the process is ending")


def _sleep_for_ever(frozen: threading.Event) -> None:
    frozen.set()
    threading.Event().wait()


def result_of(future: Future[T]) -> T:
    """Wait for a started coroutine. Raises ClientClosedError when it was cancelled. An interrupted wait cancels it."""
    try:
        return future.result()
    except CancelledError as error:
        raise ClientClosedError("the client was closed") from error
    except BaseException:  # such as Ctrl-C; what has ended cannot be cancelled any more
        future.cancel()
        raise


def blocking_iterator(thread: LoopThread, pieces: AsyncIterator[T]) -> Iterator[T]:
    """Iterates over an async generator of the loop, from another thread."""
    busy = asyncio.Lock()  # an interrupted step ends before the generator is closed

    async def step() -> T | None:
        async with busy:
            return await anext(pieces, None)

    async def close() -> None:
        async with busy:
            await pieces.aclose()  # type: ignore[attr-defined]  # it is a generator

    try:
        while (given := thread.run(step())) is not None:
            yield given
    finally:
        thread.finish(close)


def shared_loop_thread() -> LoopThread:
    """The loop thread of this process; a forked child gets its own."""
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
