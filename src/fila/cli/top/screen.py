"""The terminal while a live view has it: an own screen, and keys as they are pressed.

Rules of this file:
- Whatever ends the view, the terminal is as it was before: screen, cursor, echo.
- Bytes that are no known key are ignored.
"""

from __future__ import annotations

import os
import re
import select
import signal
import sys
import termios
import tty
from collections.abc import Sequence
from contextlib import suppress
from threading import RLock
from types import FrameType
from typing import Any, Self

_ENTER = "\x1b[?1049h\x1b[?25l"
_LEAVE = "\x1b[?25h\x1b[?1049l"
_READ_BYTES = 1024
_UNKNOWN = (80, 24)
"""The size of a terminal that says none."""
_KEY = re.compile(rb"\x1b[\[O][0-9;]*[A-Za-z~]|[\x00-\x7f]")
_PARTIAL = re.compile(rb"\x1b[\[O][0-9;]*\Z")
_LONGEST = 16
"""Bytes of a key. What is longer and not complete is none."""
_NAMES = {
    b"\x1b": "esc",
    b"\r": "enter",
    b"\n": "enter",
    b"\x7f": "backspace",
    b"\x08": "backspace",
    b"\x1b[5~": "page up",
    b"\x1b[6~": "page down",
    **{b"\x1b" + lead + end: name for lead in (b"[", b"O") for end, name in (
        (b"A", "up"), (b"B", "down"), (b"C", "right"), (b"D", "left"))},
}  # fmt: skip


class Keys:
    """Bytes of a terminal as names of keys."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> list[str]:
        """The keys that are complete with these bytes."""
        data = self._rest + data
        partial = _PARTIAL.search(data)
        self._rest = partial[0] if partial and len(partial[0]) < _LONGEST else b""
        complete = data[: len(data) - len(partial[0])] if partial else data
        found = (_NAMES.get(each, "" if each[:1] < b" " else each.decode()) for each in _KEY.findall(complete))
        return [key for key in found if key]


class Screen:
    """Draws whole screens on stdout, and waits for keys of stdin, for a change of size, or to be woken."""

    def __init__(self) -> None:
        self._keys = Keys()
        self._stdin: int | None = sys.stdin.fileno() if sys.stdin.isatty() else None
        self._settings: list[Any] = []
        self._handlers: dict[signal.Signals, Any] = {}
        self._lock = RLock()  # a suspension may come while it is held
        self._woken = -1
        self._waker: int | None = None

    @property
    def size(self) -> tuple[int, int]:
        """Columns and lines. $COLUMNS does not count: it would not change with the terminal."""
        size = os.get_terminal_size(sys.stdout.fileno())
        return size.columns or _UNKNOWN[0], size.lines or _UNKNOWN[1]

    def draw(self, lines: Sequence[str]) -> None:
        """Replace what is on the screen. Lines are as wide as the screen at most."""
        shown = lines[: self.size[1]]
        sys.stdout.write("\x1b[H" + "\x1b[K\r\n".join(shown) + "\x1b[K\x1b[J")
        sys.stdout.flush()

    def wait(self, seconds: float | None) -> list[str]:
        """The keys that were pressed; none when the time is over, the size has changed or `wake` was called."""
        inputs = [self._woken] if self._stdin is None else [self._woken, self._stdin]
        ready, _, _ = select.select(inputs, [], [], seconds)
        if self._woken in ready:
            os.read(self._woken, _READ_BYTES)
        if self._stdin not in ready:
            return []
        data = os.read(self._stdin, _READ_BYTES)
        if not data:  # the terminal is gone
            self._stdin = None
        return self._keys.feed(data)

    def wake(self) -> None:
        """End `wait`. May be called from another thread, also when the screen is left."""
        with self._lock, suppress(BlockingIOError):  # then it is full of reasons to wake up
            if self._waker is not None:
                os.write(self._waker, b"\0")

    def __enter__(self) -> Self:
        self._woken, self._waker = os.pipe()
        os.set_blocking(self._waker, False)
        # A signal that comes just before `select` would not end it otherwise.
        self._others = signal.set_wakeup_fd(self._waker, warn_on_full_buffer=False)
        self._handlers = {
            number: signal.signal(number, handler)
            for number, handler in (
                (signal.SIGWINCH, lambda *_: None),  # the byte of the signal wakes us
                (signal.SIGTSTP, self._suspend),
                (signal.SIGTERM, _end),
                (signal.SIGHUP, _end),
            )
        }
        self._take()
        return self

    def __exit__(self, *_: object) -> None:
        self._give_back()
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(self._others)
        with self._lock:
            waker, self._waker = self._waker, None
            for each in (self._woken, waker):
                if each is not None:
                    os.close(each)

    def _take(self) -> None:
        if self._stdin is not None:
            self._settings = termios.tcgetattr(self._stdin)
            tty.setcbreak(self._stdin)
        sys.stdout.write(_ENTER)
        sys.stdout.flush()

    def _give_back(self) -> None:
        sys.stdout.write(_LEAVE)
        sys.stdout.flush()
        if self._stdin is not None:
            termios.tcsetattr(self._stdin, termios.TCSAFLUSH, self._settings)

    def _suspend(self, number: int, _frame: FrameType | None) -> None:
        """Ctrl-Z: the shell has the terminal until `fg`."""
        self._give_back()
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)  # returns when the process goes on
        signal.signal(number, self._suspend)
        self._take()
        self.wake()


def _end(number: int, _frame: FrameType | None) -> None:
    sys.exit(128 + number)
