"""The event loop in a background thread on which blocking clients live.

All clients of a process share one, for threads that wake each other cost more than clients that take turns. It is never
closed: a client may be made at any time. At the end of the process it stands still: a timer of uvloop's that went off
when the interpreter is gone would crash the process.
"""

import asyncio
import atexit
import os
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import CancelledError, Future
from functools import lru_cache
from typing import Any, TypeVar, TypeVarTuple, Unpack

from fila.client.errors import ClientClosedError, forked

Args = TypeVarTuple("Args")
T = TypeVar("T")

_PATIENCE_S = 5.0
"""How long the end of a process waits for the loop. It takes no time, unless somebody holds the loop up."""


class LoopThread:
    """Runs an event loop for as long as the process lives. As a daemon, it does not keep the process alive.

    Nobody would ever answer in a child of the process, or when the process is about to end: there it is not `here`, and
    what would need it raises ClientClosedError.
    """

    def __init__(self) -> None:
        _check_in_time()
        self._loop = _new_loop()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._pid: int | None = os.getpid()
        self._ident = 0
        _made.append(self)
        _check_in_time()  # once more: the end either finds it in the list, or was seen here
        threading.Thread(target=self._run, name="fila-client", daemon=True).start()

    @property
    def here(self) -> bool:
        """Whether it runs, in this process."""
        return self._pid == os.getpid()

    def check(self) -> None:
        """Raises unless one may wait for it here: on its own thread, to which callbacks and finalizers may come, one
        would wait for oneself.
        """
        if not self.here:
            raise self._gone()
        if self._ident == threading.get_ident():
            raise RuntimeError("this is the thread of the client's event loop: a call that blocks would never end")

    def post(self, function: Callable[[Unpack[Args]], object], *args: *Args) -> None:
        """Call a function on the loop, some time soon."""
        if not self.here:
            raise self._gone()
        self._loop.call_soon_threadsafe(function, *args)

    def ask(self, function: Callable[[Unpack[Args]], object], *args: *Args) -> None:
        """As `post`, by one who then waits for what the function does. Raises as `check`."""
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
        """Run a coroutine on the loop and do not wait for it. Nothing when it is not here."""
        if self.here:
            self.post(self._spawn, make)

    def finish(self, make: Callable[[], Coroutine[Any, Any, object]]) -> None:
        """Run a coroutine that ends something, and wait for it where one may. Nothing when it is not here."""
        if self._ident == threading.get_ident():
            self.spawn(make)
        elif self.here:
            self.run(make())

    def stand_still(self) -> None:
        """Do nothing any more, for the rest of the process. Returns when it is so."""
        if self.here:
            self._pid = None
            asleep = threading.Event()
            self._loop.call_soon_threadsafe(_sleep_for_ever, asleep)
            asleep.wait(_PATIENCE_S)

    def _gone(self) -> ClientClosedError:
        return forked() if self._pid else _too_late()

    def _spawn(self, make: Callable[[], Coroutine[Any, Any, object]]) -> None:
        task = self._loop.create_task(make())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _run(self) -> None:
        self._ident = threading.get_ident()
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()


_made: list[LoopThread] = []
_ending = threading.Event()


@atexit.register
def _stand_still() -> None:
    _ending.set()
    for thread in _made:
        thread.stand_still()


def _check_in_time() -> None:
    if _ending.is_set():
        raise _too_late()


def _too_late() -> ClientClosedError:
    return ClientClosedError("the process is about to end")


def _sleep_for_ever(asleep: threading.Event) -> None:
    asleep.set()
    threading.Event().wait()


def result_of(future: Future[T]) -> T:
    """Wait for what was started. Raises ClientClosedError when it was cancelled. Who stops waiting stops it."""
    try:
        return future.result()
    except CancelledError as error:
        raise ClientClosedError("the client was closed") from error
    except BaseException:  # such as Ctrl-C; what has ended cannot be cancelled any more
        future.cancel()
        raise


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
