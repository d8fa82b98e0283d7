"""The HTTP server's thread: when it ends, and that it never outlives the interpreter."""

import asyncio
import subprocess
import sys
import time
from types import SimpleNamespace

import pytest

from fila.reconcile import serving
from fila.reconcile.serving import HttpServer


async def nothing(scope, receive, send):
    """An application that answers nothing."""


class NeverStarted(HttpServer):
    """Starts until it is told to stop."""

    def __init__(self):
        super().__init__(nothing)
        self._server.startup = self.hang

    async def hang(self, sockets):
        while not self._server.should_exit:
            await asyncio.sleep(0.01)


def test_a_server_that_does_not_start_leaves_nothing_behind(monkeypatch):
    monkeypatch.setattr(serving, "START_TIMEOUT_S", 0.0)
    server = NeverStarted()
    with pytest.raises(RuntimeError, match="did not start"):
        server.start()
    assert not server._thread.is_alive()
    HttpServer(nothing, port=server.port).stop()


def test_who_gives_up_waiting_for_the_start_leaves_nothing_behind(monkeypatch):
    def interrupted(_seconds):
        raise KeyboardInterrupt

    server = NeverStarted()
    with monkeypatch.context() as patched:
        patched.setattr(serving, "time", SimpleNamespace(monotonic=time.monotonic, sleep=interrupted))
        with pytest.raises(KeyboardInterrupt):
            server.start()
    assert not server._thread.is_alive()


@pytest.mark.parametrize("end", ["", "server.stop()"])
def test_a_program_that_leaves_without_a_word_ends_in_peace(end):
    """The C library sleeps at the end of the program for as many microseconds as its exit status says."""
    program = f"""
import ctypes, sys
libc = ctypes.CDLL(None)
libc.on_exit(libc.usleep, None)
from fila.reconcile.serving import HttpServer
async def nothing(scope, receive, send): pass
server = HttpServer(nothing)
server.start()
{end}
sys.exit(900_000)
"""
    ended = subprocess.run([sys.executable, "-c", program], check=False, timeout=60)
    assert ended.returncode == 900_000 % 256
