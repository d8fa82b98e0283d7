"""The tests pass wherever they are started from."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
PROGRAM = """
import signal, subprocess, sys

def test_a_child_can_be_interrupted():
    shown = "import signal; print(signal.getsignal(signal.SIGINT).__name__, signal.getsignal(signal.SIGHUP).name)"
    child = subprocess.run([sys.executable, "-c", shown], capture_output=True, text=True)
    assert child.stdout.split() == ["default_int_handler", "SIG_DFL"]
    signal.raise_signal(signal.SIGHUP)
    signal.raise_signal(signal.SIGINT)
"""
# Not preexec_fn: a fork of this process would run what gRPC does after a fork, on file descriptors that are closed.
IGNORING = """
import os, signal, sys

signal.signal(signal.SIGINT, signal.SIG_IGN)
signal.signal(signal.SIGHUP, signal.SIG_IGN)
os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
"""


def test_processes_of_tests_get_signals_that_the_caller_ignores(tmp_path):
    """As under nohup, in a background job and in some CI systems. The tests themselves go on ignoring them."""
    (tmp_path / "conftest.py").write_text((ROOT / "tests" / "conftest.py").read_text())
    (tmp_path / "test_child.py").write_text(PROGRAM)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    for workers in ("0", "1"):
        command = [
            sys.executable,
            "-c",
            IGNORING,
            "-m",
            "pytest",
            "-q",
            "-n",
            workers,
            "-p",
            "no:cacheprovider",
            str(tmp_path),
        ]
        run = subprocess.run(
            command,
            cwd=tmp_path,
            env=environment,
            check=False,
            capture_output=True,
            text=True,
            timeout=100,
        )
        assert run.returncode == 0, run.stdout + run.stderr
