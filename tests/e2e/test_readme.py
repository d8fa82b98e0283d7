"""What the README shows is what happens, in a shell in which nothing was activated."""

import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fila.testing import ServerProcess

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
QUICKSTART = README[README.index("## Quickstart") : README.index("## What it does")]
SHELL = [block.splitlines() for block in re.findall(r"```sh\n(.*?)```", QUICKSTART, re.DOTALL)]
CODE = re.search(r"<!-- quickstart -->\n```python\n(.*?)```", QUICKSTART, re.DOTALL)[1]
LONG = 60


@pytest.fixture
def checkout(tmp_path):
    """A folder with `.venv` in it, as the README's commands expect it."""
    folder = tmp_path / "checkout"
    folder.mkdir()
    (folder / ".venv").symlink_to(Path(sys.executable).parents[1])
    return folder


@pytest.fixture
def environment(server):
    return {"PATH": "/usr/bin:/bin", "HOME": os.environ.get("HOME", "/"), "FILA_ADDR": server.addr}


def run_code(server, checkout, environment):
    run = [".venv/bin/python", "-c", CODE.replace("localhost:5555", server.addr)]
    done = subprocess.run(run, cwd=checkout, env=environment, check=True, capture_output=True, text=True, timeout=LONG)
    return done.stdout.splitlines()


def test_the_quickstart_runs_as_it_is_printed_and_again(server, checkout, environment):
    """The quiet tenant's message overtakes the noisy one's backlog, and the noisy one's keep their order."""
    lines = run_code(server, checkout, environment)
    assert "quiet password reset" in lines
    assert [line for line in lines if line.startswith("noisy")] == [f"noisy newsletter {n}" for n in range(7)]
    assert "quiet password reset" in run_code(server, checkout, environment)


def test_the_commands_run_as_they_are_printed_and_again(server, checkout, environment):
    run_code(server, checkout, environment)
    for _ in range(2):
        for line in SHELL[1]:
            subprocess.run(line, shell=True, cwd=checkout, env=environment, check=True, timeout=LONG)


def test_the_broker_starts_as_it_is_printed(checkout, environment, tmp_path):
    setup, start = SHELL[0]
    assert setup == "make setup"
    holder = ServerProcess(tmp_path)  # never started: it keeps a port free for us
    command = shlex.split(start.replace("127.0.0.1:5555", holder.addr))
    environment["FILA_ADDR"] = holder.addr
    broker = subprocess.Popen(command, cwd=checkout, env=environment)
    try:
        deadline = time.monotonic() + LONG
        listing = [".venv/bin/fila", "queue", "list"]
        while subprocess.run(
            listing, cwd=checkout, env=environment, check=False, capture_output=True, timeout=LONG
        ).returncode:
            assert time.monotonic() < deadline
            assert broker.poll() is None
        broker.send_signal(signal.SIGINT)
        assert broker.wait(LONG) == 0
    finally:
        broker.kill()
        broker.wait()
        holder.close()
    assert (checkout / "data").is_dir()
