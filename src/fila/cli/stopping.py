"""Stop signals (SIGTERM, Ctrl-C) of commands that run until they are stopped."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

_SIGNALS = (signal.SIGTERM, signal.SIGINT)

_before: dict[signal.Signals, Any] = {}
"""The previous handlers, while ours are installed."""


@contextmanager
def stop_signals() -> Iterator[Callable[[], None]]:
    """Yields a function that waits for the first stop signal, even if it came before. A second one ends the process.

    The function waits for a byte in a pipe, which is written as soon as the signal arrives. A `threading.Event` could
    miss a signal that arrives just before the main thread waits, since handlers run on that thread.
    """
    stopped = False
    reader, writer = os.pipe()
    os.set_blocking(writer, False)

    def stop(_number: int, _frame: object) -> None:
        nonlocal stopped
        stopped = True
        for number in _SIGNALS:
            signal.signal(number, signal.SIG_DFL)

    def wait() -> None:
        while not stopped:
            os.read(reader, 1)  # other signals write to the pipe too, and so may a forked child

    others = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    _before.update({number: signal.getsignal(number) for number in _SIGNALS})
    for number in _SIGNALS:
        signal.signal(number, stop)
    try:
        yield wait
    finally:
        _restore()
        signal.set_wakeup_fd(others)
        os.close(reader)
        os.close(writer)


def _restore() -> None:
    for number, handler in _before.items():
        signal.signal(number, handler)
    _before.clear()


def _in_child() -> None:
    """In a forked child, signals act as they would without us."""
    if _before:
        signal.set_wakeup_fd(-1)
        _restore()


os.register_at_fork(after_in_child=_in_child)
