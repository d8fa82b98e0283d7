"""Commands that run until they are told to stop: by SIGTERM, or by Ctrl-C."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

_SIGNALS = (signal.SIGTERM, signal.SIGINT)

_before: dict[signal.Signals, Any] = {}
"""The handlers of others, while ours are there instead."""


@contextmanager
def stop_signals() -> Iterator[Callable[[], None]]:
    """A function that waits for the first signal, also one that came before. A second one ends the process at once.

    It waits for a byte in a pipe, which is written as soon as the signal is there. A `threading.Event` would miss a
    signal that comes while the main thread is about to wait for it: what sets the event would run after the waiting.
    """
    told = False
    reader, writer = os.pipe()
    os.set_blocking(writer, False)

    def stop(_number: int, _frame: object) -> None:
        nonlocal told
        told = True
        for number in _SIGNALS:
            signal.signal(number, signal.SIG_DFL)

    def wait() -> None:
        while not told:
            os.read(reader, 1)  # written for signals of others too, and by a child before it lets go

    others = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    _before.update({number: signal.getsignal(number) for number in _SIGNALS})
    for number in _SIGNALS:
        signal.signal(number, stop)
    try:
        yield wait
    finally:
        _give_back()
        signal.set_wakeup_fd(others)
        os.close(reader)
        os.close(writer)


def _give_back() -> None:
    for number, handler in _before.items():
        signal.signal(number, handler)
    _before.clear()


def _in_child() -> None:
    """What a child of the process is told is not for us, and ends it as it would end any other process."""
    if _before:
        signal.set_wakeup_fd(-1)
        _give_back()


os.register_at_fork(after_in_child=_in_child)
