"""Commands that run until they are told to stop: by SIGTERM, or by Ctrl-C."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_SIGNALS = (signal.SIGTERM, signal.SIGINT)


@contextmanager
def stop_signals() -> Iterator[Callable[[], None]]:
    """A function that waits for the first signal, also one that came before. A second one ends the process at once.

    It waits for a byte in a pipe, which is written as soon as the signal is there. A `threading.Event` would miss a
    signal that comes while the main thread is about to wait for it: what sets the event would run after the waiting.
    """
    reader, writer = os.pipe()
    os.set_blocking(writer, False)

    def wait() -> None:
        while os.read(reader, 1)[0] not in _SIGNALS:
            pass  # another signal, of somebody else

    handlers = {number: signal.signal(number, _the_next_one_ends_it) for number in _SIGNALS}
    others = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    try:
        yield wait
    finally:
        signal.set_wakeup_fd(others)
        for number, handler in handlers.items():
            signal.signal(number, handler)
        os.close(reader)
        os.close(writer)


def _the_next_one_ends_it(_number: int, _frame: object) -> None:
    for number in _SIGNALS:
        signal.signal(number, signal.SIG_DFL)
