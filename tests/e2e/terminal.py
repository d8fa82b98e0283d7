"""A terminal in which the command, or a shell, runs: it has a size, is typed into, and shows something."""

import codecs
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time

from tests.e2e.support import PATIENCE_S

FILA = (sys.executable, "-m", "fila.cli.main")
_INVISIBLE = re.compile(r"\x1b\[[0-9;]*m|\x1b\[\?2004[hl]|\a|\r")
"""Colours, the marks that a shell puts around what is pasted, the bell"""
_WHOLE = re.compile(r"\x1b\[H((?:(?!\x1b\[H).)*?)\x1b\[J", re.DOTALL)
"""A screen from its top to its end. One that is still being drawn is none."""
_TOP = "\x1b[H"
_BEGIN = "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execvp(sys.argv[1], sys.argv[1:])"
"""Makes the terminal that of the session, so that Ctrl-C on it interrupts."""


class Terminal:
    """One program on a terminal of its own. Leaving the context ends it."""

    def __init__(self, *args, env, columns=80, rows=24, program=FILA, cwd=None):
        self._ours, theirs = pty.openpty()
        self.written = ""
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._set_size(columns, rows)
        self.settings = termios.tcgetattr(self._ours)
        inherited = {name: value for name, value in os.environ.items() if name not in {"COLUMNS", "LINES"}}
        self.process = subprocess.Popen(
            [sys.executable, "-c", _BEGIN, *program, *args],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env={**inherited, "TERM": "xterm", **env},
            cwd=cwd,
            start_new_session=True,
        )
        os.close(theirs)

    def type(self, keys):
        os.write(self._ours, keys.encode())

    def resize(self, columns, rows):
        self._set_size(columns, rows)
        os.killpg(self.process.pid, signal.SIGWINCH)

    def await_text(self, text):
        """Wait until the screen shows it, and return the screen."""
        return self.await_screen(lambda screen: text in screen, text)

    def await_screen(self, condition, what):
        deadline = time.monotonic() + PATIENCE_S
        while not condition(screen := self.screen()):
            assert time.monotonic() < deadline, f"{what!r} is not on the screen:\n{screen}"
            assert self._read(deadline), f"it ended without {what!r} on the screen:\n{self.written}"
        return screen

    def finish(self):
        """Wait for the end of the command. Returns its exit code."""
        deadline = time.monotonic() + PATIENCE_S
        while self._read(deadline):
            assert time.monotonic() < deadline, f"it does not end:\n{self.screen()}"
        return self.process.wait(PATIENCE_S)

    def screen(self):
        """The text of the last whole screen, or of all that was written if the program draws none."""
        screens = _WHOLE.findall(self.written)
        shown = screens[-1] if screens else "" if _TOP in self.written else self.written
        return _INVISIBLE.sub("", shown)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        os.close(self._ours)

    def _set_size(self, columns, rows):
        fcntl.ioctl(self._ours, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def _read(self, deadline):
        """Whether there may be more."""
        if not select.select([self._ours], [], [], max(0.0, deadline - time.monotonic()))[0]:
            return True
        try:
            self.written += self._decoder.decode(os.read(self._ours, 1 << 16))
        except OSError:  # the other end is closed
            return False
        return True
