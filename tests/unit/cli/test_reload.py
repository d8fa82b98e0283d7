"""However the reloading parent is told to stop, the run under it ends too."""

import os
import signal
import subprocess
import sys

import pytest

LONG = 60
HELD = "import sys; sys.stdin.read()\n"
"""Both write to the same pipe: the run waits until its number is written."""
SLEEPING = "import time; time.sleep(600)"
STUBBORN = """
import signal, time
def once(*_):
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    print("stopping", flush=True)
signal.signal(signal.SIGTERM, once)
print("ready", flush=True)
while True:
    time.sleep(600)
"""


def program(folder, run, started="", hang_up="SIG_DFL"):
    """Reloads `run` in place of a worker; `started` is what happens while it is being started.

    Which signals are ignored is up to the program, not to whoever runs these tests.
    """
    code = f"""
import os, pathlib, signal, subprocess, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.{hang_up})
from fila.cli import reload
def start(arguments):
    child = subprocess.Popen([sys.executable, "-c", {(HELD + run)!r}], stdin=subprocess.PIPE, start_new_session=True)
    print(f"{{child.pid}}\\n", end="", flush=True)
    child.stdin.close()
    {started}
    return child
reload._start = start
sys.exit(reload.run_reloading([], pathlib.Path({str(folder)!r})))
"""
    return subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)


def end(pid):
    """End the process. Returns whether it was there."""
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_while_a_run_is_being_started_leaves_no_orphan(tmp_path, number):
    with program(tmp_path, SLEEPING, f"os.kill(os.getpid(), {number:d})") as parent:
        pid = int(parent.stdout.readline())
        try:
            assert parent.wait(LONG) == 128 + signal.SIGTERM
        finally:
            parent.kill()
            assert not end(pid)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_the_run_is_told_once_and_at_a_second_signal_ended(tmp_path, number):
    with program(tmp_path, STUBBORN) as parent:
        pid = int(parent.stdout.readline())
        try:
            assert parent.stdout.readline() == "ready\n"
            parent.send_signal(number)
            assert parent.stdout.readline() == "stopping\n"
            parent.send_signal(number)
            ended_by = signal.SIGINT if number == signal.SIGINT else signal.SIGTERM
            assert parent.wait(LONG) == 128 + ended_by
        finally:
            parent.kill()
            assert not end(pid)


def test_a_signal_that_is_ignored_stays_ignored(tmp_path):
    """As by nohup."""
    asked = "print(signal.getsignal(signal.SIGHUP), flush=True)"
    with program(tmp_path, SLEEPING, asked, hang_up="SIG_IGN") as parent:
        pid = int(parent.stdout.readline())
        try:
            assert parent.stdout.readline() == f"{signal.SIG_IGN}\n"
            parent.terminate()
            parent.wait(LONG)
        finally:
            parent.kill()
            assert not end(pid)
